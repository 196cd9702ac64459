// SPDX-License-Identifier: BSL-1.0
//
// gemm_panels - what the blocked matrix product goes through: blocks for the caches, and operands packed as panels.
//
// A panel of A is mr rows, one of B up to nr columns, both k-major: a tile reads them in order. It says how large
// blocks are, packs, and has the tiles of a panel pack the next one or ask for it; gemm_blocked multiplies.
#pragma once

#include <dfdx/kernels/simd/gemm_small.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Tile and block sizes. The tile is narrow in rows and wide in lanes where registers abound: B's panel then
/// streams from the second cache at a rate it can sustain, and A's panel stays in the first.
template <class T>
struct blocking {
  static constexpr int W = lane_size<T>;
  static constexpr int C = tile_sums >= 24 ? 4 : 2;
  static constexpr int mr = tile_sums / C;
  static constexpr int nr = C * W;
  /// Steps of k in one turn of a tile's loop: one where few registers leave no place for what more need.
  static constexpr int unroll = tile_sums > 8 ? 4 : 1;
  static constexpr Index kc = 512;
  static constexpr Index nc = round_up(1024, nr);
  /// Elements of a block of A: where registers have 512 bits, the second cache has a megabyte.
  static constexpr Index of_a = (C == 4 ? 144 : 96) * 1024 * 4 / static_cast<Index>(sizeof(T));
};

/// Cuts `total` into equal blocks of at most `limit`, each a multiple of `unit`.
constexpr Index block_size(Index total, Index limit, Index unit) {
  if (total <= 0) return unit;
  return round_up(ceil_div(total, ceil_div(total, limit)), unit);
}

/// Rows of a block of A that is so deep; m may be unknown.
template <class T>
constexpr Index rows_of_block(Index m, Index depth) {
  using B = blocking<T>;
  Index const most = B::of_a / depth > B::mr ? B::of_a / depth : B::mr;
  return block_size(m < 0 ? most : m, most, B::mr);
}

/// The blocks of a product of known extents, and how it goes through them.
template <class T>
struct blocks_of {
  Index kc, mc, nc;
  /// A C that no cache holds is written along rows, as memory likes it, if a block of B stays in the second cache.
  bool along_rows;
  /// All rows are one block: a panel of B is done with before the one after the next is packed, in its place.
  bool two_panels;

  constexpr blocks_of(Index m, Index n, Index k)
      : kc(block_size(k, blocking<T>::kc, 1)),
        mc(rows_of_block<T>(m, kc)),
        nc(block_size(n, blocking<T>::nc, blocking<T>::nr)) {
    constexpr Index near = 1024 * 1024 / static_cast<Index>(sizeof(T));
    along_rows = m * n > near && (n < nc ? n : nc) * (k < kc ? k : kc) <= near / 2;
    two_panels = m <= mc && !along_rows;
  }
  constexpr Index packed_a() const {  // its last panel may be stored a little over
    return round_up(mc * kc + blocking<T>::W, blocking<T>::W);
  }
  constexpr Index packed_b() const {
    constexpr Index two = 2 * blocking<T>::nr;
    return (two_panels && two < nc ? two : nc) * kc;
  }
  /// Where a panel is packed: the one of so many before it in its block, from column j on, in panels that are so deep.
  constexpr Index packed_at(Index number, Index j, Index depth) const {
    return (two_panels ? number % 2 * blocking<T>::nr : j) * depth;
  }
};

/// A strided operand.
template <class T>
struct strided {
  T const* at;
  Index row, col;
};

/// How many lanes the next panel of B has when so many columns are left: panels of nearly the same width.
template <class T>
constexpr int panel_lanes_of(Index columns) {
  Index const lanes = ceil_div(columns, blocking<T>::W);
  return static_cast<int>(ceil_div(lanes, ceil_div(lanes, blocking<T>::C)));
}

/// Panels of mr rows of an A whose columns are contiguous, several at a time, so that each line of A is read once. Of
/// the last rows some may be left, where eight from the first of a panel on do not exist. Returns the rows done.
template <class T>
Index pack_row_chunks(strided<T> a, Index m, Index k, T* dst) {
  constexpr int mr = blocking<T>::mr;
  using Chunk = xsimd::make_sized_batch_t<T, 8>;  // void where the target has none
  if constexpr (std::is_void_v<Chunk> || mr > 8) return 0;
  else {
    constexpr Index most = 8;
    Index i = 0;
    while (i + 8 <= m) {
      Index const fit = (m - i - 8) / mr + 1, panels = fit < most ? fit : most;
      for (Index p = 0; p < k; ++p)
        for (Index q = 0; q < panels; ++q) {
          T const* const from = a.at + (i + q * mr) + p * a.col;
          T* const to = dst + (i + q * mr) * k + p * mr;
          // Eight are stored: what runs over is overwritten by the next store, but for that into the next panel.
          if (p + 1 < k) Chunk::load_unaligned(from).store_unaligned(to);
          else std::memcpy(to, from, mr * sizeof(T));
        }
      i += panels * mr;
    }
    return i;
  }
}

/// A[m, k] -> panels of mr rows: dst[panel][p][r], rows past m zero.
template <class T>
void pack_rows(strided<T> a, Index m, Index k, T* dst) {
  constexpr int mr = blocking<T>::mr;
  if (a.row == 1) {
    Index const done = pack_row_chunks(a, m, k, dst);
    a.at += done, m -= done, dst += done * k;
  }
  using Square = xsimd::make_sized_batch_t<T, 8>;  // void where the target has none
  for (Index i = 0; i < m; i += mr, dst += mr * k) {
    T const* const from = a.at + i * a.row;
    int const rows = m - i < mr ? static_cast<int>(m - i) : mr;
    Index p = 0;
    if (rows == mr && a.row == 1) {
      for (; p < k; ++p) std::memcpy(dst + p * mr, from + p * a.col, mr * sizeof(T));
    } else if constexpr (!std::is_void_v<Square> && mr <= 8) {
      if (rows == mr && a.col == 1) {
        // Eight lanes are stored every mr elements: what runs over is overwritten by the next store.
        for (; p + 8 <= k; p += 8) {
          Square v[8];
          DFDX_UNROLL for (int r = 0; r < 8; ++r) {
            v[r] = Square::load_unaligned(from + (r < mr ? r : 0) * a.row + p);
          }
          transpose_tile(v);
          DFDX_UNROLL for (int q = 0; q < 8; ++q) v[q].store_unaligned(dst + (p + q) * mr);
        }
      }
    }
    for (; p < k; ++p)
      for (int r = 0; r < mr; ++r) dst[p * mr + r] = r < rows ? from[r * a.row + p * a.col] : T(0);
  }
}

/// One panel of B: dst[p][j] for j < width (a multiple of W), columns past `columns` zero or copies.
template <class T>
void pack_columns(strided<T> b, Index k, int columns, int width, T* dst) {
  constexpr int W = lane_size<T>;
  if (b.col == 1) {
    for (Index p = 0; p < k; ++p) {
      T const* const from = b.at + p * b.row;
      for (int j = 0; j < width; j += W) {
        lane<T> const v =
            columns - j >= W ? lane<T>::load_unaligned(from + j) : load_n(from + j, columns - j);
        v.store_aligned(dst + p * width + j);
      }
    }
  } else if (b.row == 1) {
    transpose<true>(b.at, b.col, columns, k, dst, Index(width));
  } else {
    for (Index p = 0; p < k; ++p)
      for (int j = 0; j < width; ++j) dst[p * width + j] = j < columns ? b.at[p * b.row + j * b.col] : T(0);
  }
}

/// Packed panels of B for n columns. Where B is read in place only the last is packed, if it ends within a lane.
template <class T>
void pack_all_columns(strided<T> b, Index k, Index n, bool in_place, T* dst) {
  for (Index j = 0; j < n;) {
    int const width = panel_lanes_of<T>(n - j) * blocking<T>::W;
    int const columns = n - j < width ? static_cast<int>(n - j) : width;
    if (!in_place || columns < width)
      pack_columns(strided<T>{b.at + j * b.col, b.row, b.col}, k, columns, width, dst + j * k);
    j += width;
  }
}

/// What the tiles of a panel of B do for the one that follows, a little in each turn of their loops, so that it is near
/// when it is read: they ask for its lines or, where rows of B are contiguous and `packed` is given, copy them to there
/// and ask for those that the tile after them will copy.
template <class T>
struct panel_ahead {
  static constexpr Index line = 64 / static_cast<Index>(sizeof(T)), W = lane_size<T>;
  strided<T> b{};
  Index columns = 0, depth = 0;  // none of either: nothing is done
  T* packed = nullptr;

  /// The work of one tile: so many lines, or lanes, in each turn. They are `near` each other; after a run of them the
  /// next is `far` from where it would be.
  struct work {
    T const* at = nullptr;
    T* to = nullptr;
    Index each = 0, left = 0, near = 0, run = 0, left_of_run = 0, far = 0, ask = 0;

    DFDX_INLINE void step() {
      for (Index i = 0; i < each; ++i) {
        ask_to_read(at + ask);
        if (to != nullptr) {
          lane<T>::load_unaligned(at).store_aligned(to);
          to += W;
        }
        at += near;
        if (--left_of_run == 0) left_of_run = run, at += far;
        if (--left == 0) each = 0;
      }
    }
  };
  /// What each of some tiles does, in so many turns.
  struct plan {
    T const* at = nullptr;
    T* to = nullptr;
    Index all = 0, of_tile = 0, each = 0, unit = 0, run = 0, between = 0;

    work operator()(Index tile) const {
      Index const first = tile * of_tile;
      if (first >= all) return {};
      work w;
      w.each = each, w.left = all - first < of_tile ? all - first : of_tile;
      w.near = unit, w.run = run, w.left_of_run = run - first % run, w.far = between - run * unit;
      w.at = at + first / run * between + first % run * unit;
      if (to != nullptr) w.to = to + first * W, w.ask = of_tile / run * between;
      return w;
    }
  };
  /// All of it is done if there are turns.
  plan of_tiles(Index tiles, Index turns) const {
    bool const by_rows = b.col == 1;
    if (depth == 0 || tiles * turns == 0 || (!by_rows && b.row != 1)) return {};
    plan p;
    p.at = b.at, p.to = packed, p.unit = packed != nullptr ? W : line;
    p.run = ceil_div(by_rows ? columns : depth, p.unit), p.between = by_rows ? b.row : b.col;
    p.all = p.run * (by_rows ? depth : columns);
    p.each = ceil_div(p.all, tiles * turns), p.of_tile = p.each * turns;
    return p;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
