// SPDX-License-Identifier: BSL-1.0
//
// gathered - a matrix product whose first factor is not stored: element (m, k) is x[row[m] + step[k]].
//
// The windows of a convolution are such a matrix, whose rows are positions and whose columns are the elements of a
// window; so is its transpose. Tiles read the elements where they are, so windows are never copied out. Lanes run over
// the columns of the other factor, which is packed in panels.
#pragma once

#include <utility>

#include <dfdx/kernels/simd/gemm_micro.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Lanes of a panel at most, and rows of a tile for so many lanes.
inline constexpr int gathered_lanes = tile_sums >= 24 ? 4 : 2;
constexpr int gathered_rows(int lanes) { return tile_sums / lanes < 12 ? tile_sums / lanes : 12; }
/// A multiple of the rows of all tiles.
inline constexpr Index gathered_unit = 24;

/// How many lanes the next of several equal panels of at most so many has, when so many are left.
constexpr int next_panel(Index left, int most = gathered_lanes) {
  if (left > most * (most - 1)) return most;  // without a division
  Index const panels = (left + most - 1) / most;
  return static_cast<int>((left + panels - 1) / panels);
}

/// The lanes of n columns.
template <class T>
constexpr Index lanes_of(Index n) {
  return (n + lane_size<T> - 1) / lane_size<T>;
}

/// f(columns before the panel, lanes of the panel) for the panels of so many lanes.
template <class T, class F>
void for_panels(Index lanes, F const& f) {
  for (Index done = 0; done < lanes;) {
    int const width = next_panel(lanes - done);
    f(done * lane_size<T>, width);
    done += width;
  }
}

/// Packs k rows of n columns, column j of which is contiguous at src + j * src_column, as rows `from` and on of panels
/// that have k_all of them; what is beyond the columns is copies of valid numbers.
template <class T>
void pack_panels(T const* src, Index src_column, Index n, Index k, T* panels, Index from, Index k_all) {
  for_panels<T>(lanes_of<T>(n), [&](Index j, int lanes) {
    Index const width = lanes * Index(lane_size<T>);
    transpose<true>(src + j * src_column, src_column, n - j < width ? n - j : width, k,
                    panels + j * k_all + from * width, width);
  });
}

/// R rows and C lanes of sums over k, added to what is there or not: row r goes to `to + target[r]`. Rows from `rows`
/// on do not exist. `Beside`: they all do, and are neighbours in x, so that one address serves them.
template <int R, int C, bool Beside = false, class T>
void gathered_tile(T const* x, Index const* row, Index rows, Index const* step, Index k,
                   T const* DFDX_RESTRICT b, T* DFDX_RESTRICT to, Index const* target, bool more, Index ask) {
  using V = lane<T>;
  constexpr int W = lane_size<T>;
  T const* at[Beside ? 1 : R];
  V sum[R][C];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    if (!Beside || r == 0) at[r] = x + row[r < rows ? r : rows - 1];
    DFDX_UNROLL for (int c = 0; c < C; ++c) sum[r][c] = V(T(0));
  }
  auto const add = [&](Index s, T const* panel) DFDX_INLINE_LAMBDA {
    V y[C];
    DFDX_UNROLL for (int c = 0; c < C; ++c) y[c] = V::load_aligned(panel + c * W);
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      V const factor(Beside ? (at[0] + s)[r] : at[Beside ? 0 : r][s]);
      DFDX_UNROLL for (int c = 0; c < C; ++c) sum[r][c] = xsimd::fma(factor, y[c], sum[r][c]);
    }
  };
  Index p = 0;
  // Two steps to neighbours in x share all but one of its numbers: half as many are read.
  if constexpr (Beside && C == 1)
    while (p + 1 < k) {
      if (step[1] != step[0] + 1) {
        add(*step++, b);
        ++p, b += W;
        continue;
      }
      T const* const from = at[0] + step[0];
      V const first = V::load_aligned(b), second = V::load_aligned(b + W);
      V factor[R + 1];
      DFDX_UNROLL for (int r = 0; r <= R; ++r) factor[r] = V(from[r]);
      DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][0] = xsimd::fma(factor[r], first, sum[r][0]);
      DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][0] = xsimd::fma(factor[r + 1], second, sum[r][0]);
      p += 2, step += 2, b += 2 * W;
    }
  for (; p + tile_turn <= k; p += tile_turn, step += tile_turn, b += tile_turn * C * W) {
    if (!Beside && (p & ask) == 0) {  // what the next tile reads
      DFDX_UNROLL for (int r = 0; r < R; ++r) ask_to_read(x + row[R + r < rows ? R + r : rows - 1] + *step);
    }
    DFDX_UNROLL for (int u = 0; u < tile_turn; ++u) add(step[u], b + u * C * W);
  }
  if (p < k) add(*step, b);
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    if (Beside || r < rows) {
      T* const put = to + target[r];
      DFDX_UNROLL for (int c = 0; c < C; ++c) {
        if (more) sum[r][c] = sum[r][c] + V::load_aligned(put + c * W);
        sum[r][c].store_aligned(put + c * W);
      }
    }
  }
}

/// Neighbours of a tile of one lane: addresses for each of as many rows would not fit into registers.
inline constexpr int fewest_beside = 7, most_beside = tile_sums >= 24 ? 14 : fewest_beside - 1;

/// A tile of the neighbours that rows begin with, or a part of them; how many rows those were.
template <class T>
Index gathered_beside(T const* x, Index const* row, Index rows, Index const* step, Index k, T const* b, T* to,
                      Index const* target, bool more) {
  Index n = 1;
  while (n < rows && row[n] == row[0] + n) ++n;
  if (n < fewest_beside) return 0;
  int const size = next_panel(n, most_beside);
  auto const tile = [&]<int N>(std::integral_constant<int, N>) {
    if (size == N) gathered_tile<N, 1, true>(x, row, N, step, k, b, to, target, more, -1);
  };
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (tile(std::integral_constant<int, fewest_beside + I>{}), ...);
  }(std::make_integer_sequence<int, most_beside - fewest_beside + 1>{});
  return size;
}

template <int C, class T>
void gathered_panel(T const* x, Index const* row, Index m, Index const* step, Index k, T const* b, T* to,
                    Index const* target, bool more, Index ask, Upcoming& next) {
  if constexpr (C <= gathered_lanes) {
    constexpr int R = gathered_rows(C);
    for (Index i = 0; i < m;) {
      next.ask();
      if constexpr (C == 1 && most_beside >= fewest_beside)
        if (Index const n = gathered_beside(x, row + i, m - i, step, k, b, to, target + i, more); n > 0) {
          i += n;
          continue;
        }
      gathered_tile<R, C>(x, row + i, m - i, step, k, b, to, target + i, more, ask);
      i += R;
    }
  }
}

/// In how many parts k is taken: panels stay in the second cache.
constexpr Index gathered_parts(Index k) { return k > 512 ? (k + 511) / 512 : 1; }
/// About how many tiles m rows are.
constexpr Index gathered_tiles(Index m, Index k, Index lanes) {
  return (m + 11) / 12 * gathered_parts(k) * ((lanes + gathered_lanes - 1) / gathered_lanes);
}

/// to[target[i] + j] = the sum over k of x[row[i] + step[k]] b[k, j], or that added to what is there, for m rows and so
/// many lanes of columns; b is packed, and its panels have k rows. Targets are whole lanes, all different. Where steps
/// go along memory (`streams`) lines of x are asked for beforehand. A part of what is `next` is asked for with each of
/// gathered_tiles(m, k, lanes) tiles.
template <class T>
void gathered_product(T const* x, Index const* row, Index m, Index const* step, Index k, T const* b,
                      Index lanes, T* to, Index const* target, bool more, bool streams, Upcoming& next) {
  constexpr Index line = 64 / static_cast<Index>(sizeof(T));
  Index const ask = streams ? line - 1 : Index(-1);
  Index const parts = gathered_parts(k), depth = (k + parts - 1) / parts;
  for_panels<T>(lanes, [&](Index j, int width) {
    for (Index p = 0; p < k; p += depth) {
      Index const here = k - p < depth ? k - p : depth;
      T const* const panel = b + j * k + p * width * Index(lane_size<T>);
      bool const adds = more || p > 0;
      if (width == 1) gathered_panel<1>(x, row, m, step + p, here, panel, to + j, target, adds, ask, next);
      else if (width == 2)
        gathered_panel<2>(x, row, m, step + p, here, panel, to + j, target, adds, ask, next);
      else if (width == 3)
        gathered_panel<3>(x, row, m, step + p, here, panel, to + j, target, adds, ask, next);
      else gathered_panel<4>(x, row, m, step + p, here, panel, to + j, target, adds, ask, next);
    }
  });
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
