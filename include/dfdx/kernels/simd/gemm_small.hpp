// SPDX-License-Identifier: BSL-1.0
//
// gemm_small - matrix products whose extents and strides the compiler knows and whose operands fit the cache.
//
// Tiles are cut to the exact size, so there are no loops over leftovers. Lanes run over the columns of C
// (direct), or over its rows (swapped: C^T is computed block by block and transposed in registers on its way
// to the epilogue), or over k (dot products of rows). Whichever is cheapest is chosen by gemm.hpp; an operand
// that runs the wrong way is transposed into the caller's workspace first, and no other operand is copied.
#pragma once

#include <dfdx/kernels/simd/gemm_micro.hpp>
#include <dfdx/kernels/simd/gemv.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

/// Rows per tile: a divisor of rows close to the limit (one kernel, no tail), else nearly equal tiles.
constexpr int rows_per_tile(Index rows, int limit) {
  if (rows <= limit) return static_cast<int>(rows);
  for (int r = limit; 2 * r > limit; --r)
    if (rows % r == 0) return r;
  return static_cast<int>(ceil_div(rows, ceil_div(rows, limit)));
}

/// Rows `stride` bytes apart that a tile may read side by side: at a multiple of 4 KiB all of them compete
/// for the same 8 lines of the first cache, at 2 KiB for 16.
constexpr int rows_in_first_cache(Index stride) {
  return stride == 0 ? tile_sums : stride % 4096 == 0 ? 8 : stride % 2048 == 0 ? 16 : tile_sums;
}

/// Lanes per tile when there are so many lanes of columns and rows of A: equal panels of at most the limit.
constexpr int lanes_per_tile(Index lanes, Index rows) {
  Index const limit = tile_sums / (rows < tile_rows ? rows : tile_rows);
  return static_cast<int>(ceil_div(lanes, ceil_div(lanes, limit)));
}

/// A panel of C: Rows rows, C lanes of which the last holds Last columns; `out` as for gemm_tile, below(m)
/// rows down.
template <class T, int Rows, int C, int Last, Index ARow, Index ACol, Index BRow, class Out>
inline void gemm_panel(T const* a, T const* b, Index k, Out const out) {
  constexpr int limit = rows_in_first_cache(ARow * static_cast<Index>(sizeof(T)));
  constexpr int R = rows_per_tile(Rows, tile_sums / C < limit ? tile_sums / C : limit), rest = Rows % R;
  for (int m = 0; m + R <= Rows; m += R)
    gemm_tile<T, R, C, Last, ARow, ACol, BRow>(a + m * ARow, b, k, out.below(m));
  if constexpr (rest > 0)
    gemm_tile<T, rest, C, Last, ARow, ACol, BRow>(a + (Rows - rest) * ARow, b, k, out.below(Rows - rest));
}

/// Lanes go through the epilogue into C. Lane C - 1 of the panel holds Last columns; CRow is -1 for a
/// run-time stride.
template <class T, int C, int Last, Index CRow, class Epilogue>
struct into_c {
  static constexpr bool heavy = is_heavy<Epilogue>();
  T* c;  // element (m, n)
  Index c_stride, m, n;
  Epilogue epilogue;

  Index row() const { return CRow >= 0 ? CRow : c_stride; }
  into_c below(Index rows) const { return {c + rows * row(), c_stride, m + rows, n, epilogue}; }
  static constexpr int count(int j) { return j == C - 1 ? Last : lane_size<T>; }
  DFDX_INLINE void prefetch(int rows) const {
    if constexpr (requires { epilogue.prefetch(m, n, rows, 1); })
      epilogue.prefetch(m, n, rows, (C - 1) * lane_size<T> + Last);
  }
  DFDX_INLINE lane<T> finish(lane<T> sum, int r, int j) const {
    return finished(epilogue, sum, m + r, n + j * lane_size<T>, count(j));
  }
  DFDX_INLINE void store(lane<T> value, int r, int j) const {
    constexpr int W = lane_size<T>;
    put(epilogue, value, c + r * row() + j * W, m + r, n + j * W, count(j));
  }
};

/// Lanes go into a row-major block of whole lanes.
template <class T, int Pitch>
struct into_block {
  static constexpr bool heavy = false;
  T* block;
  into_block below(Index rows) const { return {block + rows * Pitch}; }
  DFDX_INLINE lane<T> finish(lane<T> sum, int, int) const { return sum; }
  DFDX_INLINE void store(lane<T> value, int r, int j) const {
    value.store_aligned(block + r * Pitch + j * lane_size<T>);
  }
};

/// How N columns are cut: `panels` panels of C lanes, then one of rest_lanes whose last lane holds last
/// columns.
template <class T, Index N, Index Rows>
struct column_cut {
  static constexpr int W = lane_size<T>;
  static constexpr Index lanes = ceil_div(N, W);
  static constexpr int C = lanes_per_tile(lanes, Rows);
  static constexpr Index panels = (lanes - 1) / C;
  static constexpr int rest_lanes = static_cast<int>(lanes - panels * C);
  static constexpr int last = static_cast<int>(N - (lanes - 1) * W);
  /// What may be read of the last lane when the row is padded.
  static constexpr int padded_last = last <= half_size<T> ? half_size<T> : W;
};

/// Lanes over columns: C[m, n] from A with any strides and B with contiguous (or packed and padded) rows.
template <class T, Index M, Index N, Index ARow, Index ACol, Index BRow, Index CRow, bool Padded,
          class Epilogue>
void gemm_direct(Index k, T const* a, T const* b, T* c, Index c_stride, Epilogue const epilogue) {
  using Cut = column_cut<T, N, M>;
  constexpr int W = Cut::W;
  constexpr Index done = Cut::panels * Cut::C * W;
  for (Index n = 0; n < done; n += Cut::C * W)
    gemm_panel<T, M, Cut::C, W, ARow, ACol, BRow>(
        a, b + n, k, into_c<T, Cut::C, W, CRow, Epilogue>{c + n, c_stride, 0, n, epilogue});
  gemm_panel<T, M, Cut::rest_lanes, Padded ? Cut::padded_last : Cut::last, ARow, ACol, BRow>(
      a, b + done, k,
      into_c<T, Cut::rest_lanes, Cut::last, CRow, Epilogue>{c + done, c_stride, 0, done, epilogue});
}

/// Transposes a block of C^T (n rows of m lanes, `pitch` apart) and sends it through the epilogue.
template <class T, class Epilogue>
void gemm_flush(T const* block, Index pitch, Index m, Index m_count, Index n, Index n_count, T* c,
                Index c_row, Epilogue const epilogue) {
  constexpr int W = lane_size<T>;
  for (Index j = 0; j < n_count; j += W) {
    int const count = n_count - j < W ? static_cast<int>(n_count - j) : W;
    for (Index i = 0; i < m_count; i += W) {
      int const rows = m_count - i < W ? static_cast<int>(m_count - i) : W;
      lane<T> v[W];
      // The block has whole lanes of rows, so rows past the count are read too; they end in lanes not stored.
      DFDX_UNROLL for (int r = 0; r < W; ++r) v[r] = lane<T>::load_aligned(block + (j + r) * pitch + i);
      transpose_tile(v);
      T* const to = c + (m + i) * c_row + n + j;
      if (rows == W && count == W) {
        if constexpr (!is_heavy<Epilogue>()) {
          DFDX_UNROLL for (int r = 0; r < W; ++r) v[r] = epilogue(v[r], m + i + r, n + j);
          DFDX_UNROLL for (int r = 0; r < W; ++r) v[r].store_unaligned(to + r * c_row);
          continue;
        }
      }
      {
        alignas(64) T part[W * W];
        DFDX_UNROLL for (int r = 0; r < W; ++r) v[r].store_aligned(part + r * W);
        for (int r = 0; r < rows; ++r)
          finish_and_put(epilogue, lane<T>::load_aligned(part + r * W), to + r * c_row, m + i + r, n + j,
                         count);
      }
    }
  }
}

/// Lanes over rows: xt is A^T with contiguous (or packed and padded) rows, B has any strides.
template <class T, Index M, Index N, Index BRow, Index BCol, Index XRow, bool Padded, class Epilogue>
void gemm_swapped(Index k, T const* xt, T const* b, T* c, Index c_row, Epilogue const& epilogue) {
  constexpr int W = lane_size<T>;
  constexpr Index chunk = N <= 4 * W ? N : 3 * W;  // columns of C between two transposes; 3 W has divisors
  using Cut = column_cut<T, M, chunk>;
  alignas(64) T block[round_up(chunk, W) * Cut::C * W] = {};
  auto panel = [&]<int Lanes, int Last>(Index m, Index m_count) {
    constexpr int pitch = Lanes * W;
    into_block<T, pitch> const keep{block};
    Index n = 0;
    for (; n + chunk <= N; n += chunk) {
      gemm_panel<T, chunk, Lanes, Last, BCol, BRow, XRow>(b + n * BCol, xt + m, k, keep);
      gemm_flush(block, pitch, m, m_count, n, chunk, c, c_row, epilogue);
    }
    if constexpr (N % chunk > 0) {
      gemm_panel<T, N % chunk, Lanes, Last, BCol, BRow, XRow>(b + n * BCol, xt + m, k, keep);
      gemm_flush(block, pitch, m, m_count, n, Index(N % chunk), c, c_row, epilogue);
    }
  };
  constexpr Index done = Cut::panels * Cut::C * W;
  for (Index m = 0; m < done; m += Cut::C * W) panel.template operator()<Cut::C, W>(m, Cut::C * W);
  panel.template operator()<Cut::rest_lanes, Padded ? Cut::padded_last : Cut::last>(done, M - done);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
