// SPDX-License-Identifier: BSL-1.0
//
// gemm_blocked - the matrix product for large or run-time sizes: packed operands, blocked for the caches.
//
//   for a block of columns that fits the last cache        (nc)
//     for a block of k                                     (kc)   pack B: panels of nr columns, k-major
//       for a block of rows that fits the second cache     (mc)   pack A: panels of mr rows, k-major
//         for every panel of B, for every panel of A: one register tile -> buffer -> C
//
// All sizes are run-time values, so one instantiation per element type and epilogue serves every shape. It allocates
// nothing (the caller lends the workspace) and starts no threads.
// Source: Goto, van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34 (2008).
#pragma once

#include <dfdx/kernels/simd/gemm_small.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::detail {

/// Tile and block sizes. The tile is narrow in rows and wide in lanes where registers abound: B's panel then streams
/// from the second cache at a rate it can sustain, and A's panel stays in the first.
template <class T>
struct blocking {
  static constexpr int W = lane_size<T>;
  static constexpr int C = tile_sums >= 24 ? 4 : 2;
  static constexpr int mr = tile_sums / C;
  static constexpr int nr = C * W;
  static constexpr Index kc = 256 * 4 / static_cast<Index>(sizeof(T)) < 192 ? 192 : 256;
  static constexpr Index mc = round_up(240 * 4 / static_cast<Index>(sizeof(T)), mr);
  static constexpr Index nc = round_up(1536, nr);

  static constexpr Index a_elements = mc * kc + W;  // the last store of a packed panel of A may run over
  static constexpr Index b_elements = nc * kc;
};

/// Cuts `total` into equal blocks of at most `limit`, each a multiple of `unit`.
constexpr Index block_size(Index total, Index limit, Index unit) {
  if (total <= 0) return unit;
  return round_up(ceil_div(total, ceil_div(total, limit)), unit);
}

/// A strided operand.
template <class T>
struct strided {
  T const* at;
  Index row, col;
};

/// A[m, k] -> panels of mr rows: dst[panel][p][r], rows past m zero.
template <class T>
void pack_rows(strided<T> a, Index m, Index k, T* dst) {
  constexpr int mr = blocking<T>::mr;
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
          DFDX_UNROLL for (int r = 0; r < 8; ++r) v[r] = Square::load_unaligned(from + (r < mr ? r : 0) * a.row + p);
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
        lane<T> const v = columns - j >= W ? lane<T>::load_unaligned(from + j) : load_n(from + j, columns - j);
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

/// Packed panels of B for n columns: as many of nr as fit, then panels of one lane.
template <class T>
void pack_all_columns(strided<T> b, Index k, Index n, T* dst) {
  constexpr int W = lane_size<T>, nr = blocking<T>::nr;
  Index j = 0;
  for (; j < n;) {
    int const width = n - j >= nr ? nr : W;
    int const columns = n - j < width ? static_cast<int>(n - j) : width;
    pack_columns(strided<T>{b.at + j * b.col, b.row, b.col}, k, columns, width, dst + j * k);
    j += width;
  }
}

/// A tile of packed panels, left in a buffer of mr rows of C lanes.
template <class T, int C>
void packed_tile(T const* a, T const* b, Index k, T* buffer) {
  constexpr int W = lane_size<T>, mr = blocking<T>::mr;
  gemm_tile<T, mr, C, W, 1, mr, C * W>(
      a, b, k, [buffer](lane<T> sum, int r, int c) { sum.store_aligned(buffer + (r * C + c) * W); });
}

/// Where the sums of one block of k go: into `partial` (not the last block), or through the epilogue into C.
template <class T>
struct block_sums {
  T* partial;
  Index partial_row, partial_column;  // its first column is this column of C
  bool first, last;
};

template <class T, class Epilogue>
void finish_tile(T const* buffer, int width, int rows, int columns, Index m, Index n, block_sums<T> const to, T* c,
                 Index c_row, Epilogue const epilogue) {
  constexpr int W = lane_size<T>;
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; j += W) {
      int const count = columns - j < W ? columns - j : W;
      lane<T> sum = lane<T>::load_aligned(buffer + r * width + j);
      T* const partial = to.partial + (m + r) * to.partial_row + (n + j - to.partial_column);
      if (!to.first) sum = sum + (count == W ? lane<T>::load_unaligned(partial) : load_n(partial, count));
      if (to.last) put(epilogue, sum, c + (m + r) * c_row + n + j, m + r, n + j, count);
      else if (count == W) sum.store_unaligned(partial);
      else store_n(partial, sum, count);
    }
  }
}

/// Whether an epilogue may read the C it is about to overwrite; then partial sums cannot live there.
template <class Epilogue>
constexpr bool epilogue_reads_c() {
  if constexpr (requires { Epilogue::reads_c; }) return Epilogue::reads_c;
  else return true;
}

/// Elements of workspace for C (m,n) = A (m,k) B (k,n); an extent that is not known yet is -1.
template <class T, class Epilogue>
constexpr Index blocked_workspace(Index m, Index n, Index k) {
  using B = blocking<T>;
  Index const rows = m < 0 ? B::mc : block_size(m, B::mc, B::mr), depth = k < 0 ? B::kc : block_size(k, B::kc, 1);
  Index const columns = n < 0 ? B::nc : block_size(n, B::nc, B::nr);
  Index const partial = epilogue_reads_c<Epilogue>() && k > B::kc ? m * columns : 0;
  return round_up(rows * depth + B::W, B::W) + columns * depth + partial;
}

template <class T, class Epilogue>
void gemm_blocked(Index m, Index n, Index k, strided<T> a, strided<T> b, T* c, Index c_row, T* workspace,
                  Epilogue const& epilogue) {
  using B = blocking<T>;
  Index const mc = block_size(m, B::mc, B::mr), nc = block_size(n, B::nc, B::nr), kc = block_size(k, B::kc, 1);
  T* const packed_a = workspace;
  T* const packed_b = packed_a + round_up(mc * kc + B::W, B::W);
  constexpr bool reads_c = epilogue_reads_c<Epilogue>();
  alignas(64) T buffer[B::mr * B::nr];
  for (Index jc = 0; jc < n; jc += nc) {
    Index const columns = n - jc < nc ? n - jc : nc;
    Index pc = 0;
    do {  // k == 0 is one empty block: C still goes through the epilogue
      Index const depth = k - pc < kc ? k - pc : kc;
      block_sums<T> const to{reads_c ? packed_b + nc * kc : c, reads_c ? nc : c_row, reads_c ? jc : 0, pc == 0,
                             pc + depth >= k};
      pack_all_columns(strided<T>{b.at + pc * b.row + jc * b.col, b.row, b.col}, depth, columns, packed_b);
      for (Index ic = 0; ic < m; ic += mc) {
        Index const rows = m - ic < mc ? m - ic : mc;
        pack_rows(strided<T>{a.at + ic * a.row + pc * a.col, a.row, a.col}, rows, depth, packed_a);
        for (Index j = 0; j < columns;) {
          bool const full = columns - j >= B::nr;
          int const width = full ? B::nr : B::W;
          int const valid = columns - j < width ? static_cast<int>(columns - j) : width;
          for (Index i = 0; i < rows; i += B::mr) {
            T const* const panel = packed_a + i * depth;
            if (full) packed_tile<T, B::C>(panel, packed_b + j * depth, depth, buffer);
            else packed_tile<T, 1>(panel, packed_b + j * depth, depth, buffer);
            int const height = rows - i < B::mr ? static_cast<int>(rows - i) : B::mr;
            finish_tile(buffer, width, height, valid, ic + i, jc + j, to, c, c_row, epilogue);
          }
          j += width;
        }
      }
      pc += depth;
    } while (pc < k);
  }
}

/// Few rows of A: no packing of B pays. Otherwise the blocked product.
template <class T, class Epilogue>
void gemm_run_time(Index m, Index n, Index k, strided<T> a, strided<T> b, T* c, Index c_row, T* workspace,
                   Epilogue const& epilogue) {
  if (m <= 4 && a.col == 1 && b.row == 1) {
    gemm_dot(m, n, k, a.at, a.row, b.at, b.col, [&](lane<T> sums, Index i, Index j, int count) {
      put(epilogue, sums, c + i * c_row + j, i, j, count);
    });
  } else if (n == 1 && a.col == 1 && b.row == 1) {
    gemm_column(m, k, a.at, a.row, b.at, c, c_row, epilogue);
  } else if (m == 1 && b.col == 1) {
    gemm_row(n, k, a.at, a.col, b.at, b.row, c, epilogue);
  } else {
    gemm_blocked(m, n, k, a, b, c, c_row, workspace, epilogue);
  }
}

}  // namespace dfdx::kernels::detail

#endif  // !__CUDACC__
