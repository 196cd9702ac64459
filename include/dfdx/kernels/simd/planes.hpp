// SPDX-License-Identifier: BSL-1.0
//
// planes - a matrix product whose second factor is read where it lies: row k of it is x from step[k] on, and lanes run
// along it.
//
// With steps to the elements of a window in lines of a plane that is a convolution whose lanes run over positions; with
// equal steps it is a product with a matrix. The first factor, the weights, is packed in strips of rows, of which one
// stays in the first cache while lanes of x go by.
#pragma once

#include <dfdx/kernels/simd/gathered.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Rows of a strip, and lanes of a tile of so many rows: three if registers suffice for eight rows. Lanes of x seldom
/// begin where lines of memory do, and each that crosses one costs two reads; numbers of the strip never do.
inline constexpr int plane_rows = tile_sums >= 24 ? 8 : tile_sums / gathered_lanes;
constexpr int plane_lanes(Index rows) {
  return rows * gathered_lanes <= tile_sums ? gathered_lanes : tile_sums / plane_rows;
}
/// Rows and products of plane_dots.
inline constexpr int sums_lanes = gathered_lanes, sums_rows = tile_sums / sums_lanes;

/// Place - a lane of positions: where it begins in x and in a row of the result, and how many of it there are.
struct Place {
  Index from, to;
  int count;
};

/// How sums are put where they go: in place of what is there, `store_far` where that is in no near cache; added to it;
/// or past the caches.
enum class Put { store, store_far, add, stream };

/// Room for strips of m rows.
constexpr Index strips_size(Index m, Index k) { return (m + plane_rows - 1) / plane_rows * plane_rows * k; }

/// Packs k columns of m rows, whose elements are `row` and `column` apart, into strips: strip[k][row]; rows past m are
/// zero.
template <class T>
void pack_strips(T const* a, Index row, Index column, Index m, Index k, T* to) {
  for (Index i = 0; i < m; i += plane_rows, a += plane_rows * row) {
    if (m - i >= plane_rows) {
      for (Index p = 0; p < k; ++p, to += plane_rows)
        DFDX_UNROLL for (int r = 0; r < plane_rows; ++r) to[r] = a[r * row + p * column];
    } else {
      for (Index p = 0; p < k; ++p)
        for (int r = 0; r < plane_rows; ++r) *to++ = i + r < m ? a[r * row + p * column] : T(0);
    }
  }
}

/// Ahead - rows of memory that are used next, asked for one after the other while turns of tiles go by: a line in each
/// of them, or two where the turns would not suffice. In the order of addresses, in which the hardware helps. Tiles of
/// few turns have no time for what panel_ahead computes for each.
template <class T>
class Ahead {
 public:
  /// None: to ask for an address that is not mapped costs a walk through page tables each time.
  explicit Ahead(T const* mapped) : at_(mapped) {}
  /// So many rows of n numbers, `apart` from each other, within so many turns.
  Ahead(T const* p, Index n, Index apart, Index rows, Index turns) : at_(p), apart_(apart), rows_(rows) {
    Index const lines = (n + line - 1) / line + 1;  // rows need not begin where lines do
    if (lines * rows > turns) second_ = line;
    step_ = line + second_, row_ = left_ = (lines * line + step_ - 1) / step_ * step_;
  }
  DFDX_INLINE void ask() {
    ask_to_read(at_);
    ask_to_read(at_ + second_);
    at_ += step_;
    left_ -= step_;
    if (left_ <= 0) next_row();
  }

 private:
  static constexpr Index line = 64 / sizeof(T);

  // After the last row, that again.
  void next_row() {
    if (rows_ > 1) --rows_, at_ += apart_;
    at_ -= row_, left_ = row_;
  }
  T const* at_;
  Index apart_ = 0, rows_ = 0, row_ = 0, left_ = 1, second_ = 0, step_ = 0;
};

/// sum[r][c] += a[r] times the lane of x at[c] + s.
template <int R, int C, class T>
DFDX_INLINE void add_products(T const* const (&at)[C], Index s, T const* a, lane<T> (&sum)[R][C]) {
  lane<T> v[C];
  DFDX_UNROLL for (int c = 0; c < C; ++c) v[c] = lane<T>::load_unaligned(at[c] + s);
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    lane<T> const factor(a[r]);
    DFDX_UNROLL for (int c = 0; c < C; ++c) sum[r][c] = xsimd::fma(factor, v[c], sum[r][c]);
  }
}

/// R rows and C lanes of sums over k; of the rows `rows` exist. Where lanes are streamed, those that do not begin where
/// registers may are stored.
template <int R, int C, class T>
void plane_tile(T const* x, Place const* place, Index const* step, Index k, T const* DFDX_RESTRICT a,
                Index rows, T* DFDX_RESTRICT y, Index y_row, Put put, Ahead<T>& upcoming) {
  Ahead<T> ahead = upcoming;  // in registers
  using V = lane<T>;
  T const* at[C];
  V sum[R][C];
  DFDX_UNROLL for (int c = 0; c < C; ++c) {
    at[c] = x + place[c].from;
    DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][c] = V(T(0));
  }
  bool whole = true;
  DFDX_UNROLL for (int c = 0; c < C; ++c) {
    whole = whole && place[c].count == lane_size<T>;
    if (put == Put::store_far || (k > 32 && put != Put::stream))
      DFDX_UNROLL for (int r = 0; r < R; ++r) ask_to_write(y + (r < rows ? r : 0) * y_row + place[c].to);
  }
  Index p = 0;
  for (; p + tile_turn <= k; p += tile_turn, step += tile_turn, a += tile_turn * plane_rows) {
    ahead.ask();
    DFDX_UNROLL for (int u = 0; u < tile_turn; ++u) add_products<R, C>(at, step[u], a + u * plane_rows, sum);
  }
  for (; p < k; ++p, ++step, a += plane_rows) add_products<R, C>(at, *step, a, sum);
  upcoming = ahead;
  if (whole && rows >= R) {
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      DFDX_UNROLL for (int c = 0; c < C; ++c) {
        T* const to = y + r * y_row + place[c].to;
        if (put == Put::add) sum[r][c] = sum[r][c] + V::load_unaligned(to);
        if (put == Put::stream && reinterpret_cast<std::uintptr_t>(to) % sizeof(V) == 0)
          stream(to, sum[r][c]);
        else sum[r][c].store_unaligned(to);
      }
    }
    return;
  }
  alignas(64) T sums[R][C][lane_size<T>];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int c = 0; c < C; ++c) sum[r][c].store_aligned(sums[r][c]);
  }
  for (int r = 0; r < R && r < rows; ++r)
    for (int c = 0; c < C; ++c) {
      T* const to = y + r * y_row + place[c].to;
      V const v = V::load_aligned(sums[r][c]);
      store_n(to, put == Put::add ? v + load_n(to, place[c].count) : v, place[c].count);
    }
}
template <int C, class T>
void plane_rows_of(T const* x, Place const* place, Index const* step, Index k, T const* a, Index rows, T* y,
                   Index y_row, Put put, Ahead<T>& ahead) {
  if constexpr (C <= gathered_lanes) {
    constexpr int R = C * plane_rows <= tile_sums ? plane_rows : tile_sums / C, few = C == 3 ? 6 : R;
    if (R > 4 && rows > few) plane_tile<R, C>(x, place, step, k, a, rows, y, y_row, put, ahead);
    else if (R > 4 && rows > 4) plane_tile<few, C>(x, place, step, k, a, rows, y, y_row, put, ahead);
    else if (rows > 2) plane_tile<4, C>(x, place, step, k, a, rows, y, y_row, put, ahead);
    else plane_tile<2, C>(x, place, step, k, a, rows, y, y_row, put, ahead);
  }
}

/// y[i * y_row + place.to + j] = the sum over k of a[i, k] x[place.from + step[k] + j], or that added to what is there,
/// for m rows and j < place.count of so many places. Whole lanes of x are read. Strips have `depth` columns, of which
/// the k from a on are meant. Who has sums streamed ends that (end_streams).
template <class T>
void plane_product(T const* x, Place const* places, Index lanes, Index const* step, Index k, T const* a,
                   Index depth, Index m, T* y, Index y_row, Put put, Ahead<T> ahead) {
  for (Index i = 0; i < m; i += plane_rows, a += depth * plane_rows)
    for (Index j = 0; j < lanes;) {
      int const width = next_panel(lanes - j, plane_lanes(m - i));
      Place const* const p = places + j;
      T* const to = y + i * y_row;
      if (width == 1) plane_rows_of<1>(x, p, step, k, a, m - i, to, y_row, put, ahead);
      else if (width == 2) plane_rows_of<2>(x, p, step, k, a, m - i, to, y_row, put, ahead);
      else if (width == 3) plane_rows_of<3>(x, p, step, k, a, m - i, to, y_row, put, ahead);
      else plane_rows_of<4>(x, p, step, k, a, m - i, to, y_row, put, ahead);
      j += width;
    }
}

/// Products of the nine elements of a window, and rows beside them.
inline constexpr int window_lanes = 9, window_rows = 3;

/// sums[r * sum_row + t * W] += the products of places of row r of y with those of x that lie at[t] on: R rows, T such
/// products each. Sums are lanes, to be added up. Of the rows `rows` exist, of the others `others`.
template <int R, int T, class E>
void plane_dots(E const* x, E const* y, Index y_row, Index rows, Place const* place, Index places,
                Index const* at, Index others, E* sums, Index sum_row) {
  using V = lane<E>;
  constexpr int W = lane_size<E>;
  E const *from[T], *row[R];
  V sum[R][T];
  DFDX_UNROLL for (int t = 0; t < T; ++t) from[t] = x + at[t < others ? t : 0];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    row[r] = y + (r < rows ? r : 0) * y_row;
    DFDX_UNROLL for (int t = 0; t < T; ++t) sum[r][t] = V(E(0));
  }
  auto const add = [&](Index i, auto const& load) {
    V v[R];
    DFDX_UNROLL for (int r = 0; r < R; ++r) v[r] = load(row[r] + place[i].to);
    if (T == window_lanes)  // the rows after these, which not many products hide
      DFDX_UNROLL for (int r = 0; r < R; ++r) ask_to_read(row[r] + place[i].to + R * y_row);
    DFDX_UNROLL for (int t = 0; t < T; ++t) {
      V const u = held(load(from[t] + place[i].from));
      DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][t] = xsimd::fma(v[r], u, sum[r][t]);
    }
  };
  for (Index i = 0; i < places; ++i) {
    if (int const count = place[i].count; count == W) add(i, [](E const* p) { return V::load_unaligned(p); });
    else add(i, [&](E const* p) { return load_n(p, count); });
  }
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int t = 0; t < T; ++t) {
      E* const to = sums + r * sum_row + t * W;
      if (r < rows && t < others) (sum[r][t] + V::load_aligned(to)).store_aligned(to);
    }
  }
}
template <int T, class E>
void plane_dots_of(E const* x, E const* y, Index y_row, Index rows, Place const* place, Index places,
                   Index const* at, Index others, E* sums, Index sum_row) {
  if constexpr (T == window_lanes)
    return plane_dots<window_rows, T>(x, y, y_row, rows, place, places, at, others, sums, sum_row);
  else if (sums_rows > 4 && rows > 4)
    plane_dots<sums_rows, T>(x, y, y_row, rows, place, places, at, others, sums, sum_row);
  else if (rows > 2) plane_dots<4, T>(x, y, y_row, rows, place, places, at, others, sums, sum_row);
  else plane_dots<2, T>(x, y, y_row, rows, place, places, at, others, sums, sum_row);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
