// SPDX-License-Identifier: BSL-1.0
//
// gemm_panels - what the blocked matrix product goes through: blocks for the caches, and operands packed as panels.
//
// A panel of A is mr rows, one of B up to nr columns, both k-major: a tile reads them in order. It says how large
// blocks are, packs, and asks for what will be packed or read next; gemm_blocked multiplies.
#pragma once

#include <bit>

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
  /// All rows are one block: a panel of B is done with before the next is packed, in its place.
  bool one_panel;

  constexpr blocks_of(Index m, Index n, Index k)
      : kc(block_size(k, blocking<T>::kc, 1)),
        mc(rows_of_block<T>(m, kc)),
        nc(block_size(n, blocking<T>::nc, blocking<T>::nr)) {
    constexpr Index near = 1024 * 1024 / static_cast<Index>(sizeof(T));
    along_rows = m * n > near && (n < nc ? n : nc) * (k < kc ? k : kc) <= near / 2;
    one_panel = m <= mc && !along_rows;
  }
  constexpr Index packed_a() const {  // its last panel may be stored a little over
    return round_up(mc * kc + blocking<T>::W, blocking<T>::W);
  }
  constexpr Index packed_b() const { return (one_panel ? Index(blocking<T>::nr) : nc) * kc; }
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

/// What a panel of B is made of, asked for by the tiles of the panel before it, so that it has come near when it is
/// packed or read. The first tiles ask for all of it, each for `each` lines in every step: where rows of B are
/// contiguous for those of row p, else for what as many steps read of some columns.
template <class T>
struct panel_ahead {
  static constexpr Index line = 64 / static_cast<Index>(sizeof(T));
  struct lines {
    T const* at;
    Index within, near, far, each, apart;
    int group;
    DFDX_INLINE void ask(Index p) const {
      T const* from = at + (p & within) * near + (p >> group) * far;
      for (Index i = 0; i < each; ++i, from += apart) ask_to_read(from);
    }
  };

  strided<T> b{};
  Index columns = 0;

  /// How many lines, or columns, each of so many tiles asks for.
  Index lines_each(Index tiles) const { return ceil_div(ceil_div(columns, line), tiles); }
  /// What the tile `i` asks for; nothing if `each` is 0.
  lines of_tile(Index i, Index most) const {
    Index const all = ceil_div(columns, line), from = i * most;
    Index const each = from >= all ? 0 : all - from < most ? all - from : most;
    if (b.col == 1) return {b.at + from * line, 0, 0, b.row, each, line, 0};
    if (b.row != 1) return {nullptr, 0, 0, 0, 0, 0, 0};
    return {b.at + from * line * b.col,
            line - 1,
            b.col,
            line,
            each,
            line * b.col,
            std::countr_zero(static_cast<unsigned>(line))};
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
