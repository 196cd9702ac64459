// SPDX-License-Identifier: BSL-1.0
//
// gemm_small - matrix products whose extents and strides the compiler knows and whose operands fit the cache.
//
// Tiles are cut to the exact size, so there are no loops over leftovers. Lanes run over the columns of C (direct), or
// over its rows (swapped: C^T is computed block by block and transposed in registers on its way to the epilogue), or
// over k (dot products of rows). Whichever is cheapest is chosen by gemm.hpp; an operand that runs the wrong way is
// transposed into the caller's workspace first, and no other operand is copied.
#pragma once

#include <dfdx/kernels/simd/gemm_micro.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::detail {

constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

/// Rows per tile: a divisor of rows close to the limit (one kernel, no tail), else what makes tiles most equal.
constexpr int rows_per_tile(Index rows, int limit) {
  if (rows <= limit) return static_cast<int>(rows);
  for (int r = limit; 2 * r > limit; --r)
    if (rows % r == 0) return r;
  return static_cast<int>(ceil_div(rows, ceil_div(rows, limit)));
}

/// Lanes per tile when there are so many lanes of columns and rows of A: equal panels of at most the limit.
constexpr int lanes_per_tile(Index lanes, Index rows) {
  Index const limit = tile_sums / (rows < tile_rows ? rows : tile_rows);
  return static_cast<int>(ceil_div(lanes, ceil_div(lanes, limit)));
}

/// A panel of C: Rows rows, C lanes of which the last holds Last columns; store(sum, row, lane in panel).
template <class T, int Rows, int C, int Last, Index ARow, Index ACol, Index BRow, class Store>
inline void gemm_panel(T const* a, T const* b, Index k, Store const store) {
  constexpr int R = rows_per_tile(Rows, tile_sums / C), rest = Rows % R;
  for (int m = 0; m + R <= Rows; m += R)
    gemm_tile<T, R, C, Last, ARow, ACol, BRow>(a + m * ARow, b, k,
                                               [=](lane<T> sum, int r, int c) { store(sum, m + r, c); });
  if constexpr (rest > 0)
    gemm_tile<T, rest, C, Last, ARow, ACol, BRow>(
        a + (Rows - rest) * ARow, b, k, [=](lane<T> sum, int r, int c) { store(sum, Rows - rest + r, c); });
}

/// How N columns are cut: `panels` panels of C lanes, then one of rest_lanes whose last lane holds last columns.
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
template <class T, Index M, Index N, Index ARow, Index ACol, Index BRow, Index CRow, bool Padded, class Epilogue>
void gemm_direct(Index k, T const* a, T const* b, T* c, Index c_stride, Epilogue const epilogue) {
  using Cut = column_cut<T, N, M>;
  constexpr int W = Cut::W;
  Index const c_row = CRow >= 0 ? CRow : c_stride;
  for (Index n = 0; n < Cut::panels * Cut::C * W; n += Cut::C * W)
    gemm_panel<T, M, Cut::C, W, ARow, ACol, BRow>(a, b + n, k, [=](lane<T> sum, int m, int j) {
      put(epilogue, sum, c + m * c_row + n + j * W, m, n + j * W, W);
    });
  constexpr Index n = Cut::panels * Cut::C * W;
  gemm_panel<T, M, Cut::rest_lanes, Padded ? Cut::padded_last : Cut::last, ARow, ACol, BRow>(
      a, b + n, k, [=](lane<T> sum, int m, int j) {
        put(epilogue, sum, c + m * c_row + n + j * W, m, n + j * W, j == Cut::rest_lanes - 1 ? Cut::last : W);
      });
}

/// Transposes a block of C^T (n rows of m lanes, `pitch` apart) and sends it through the epilogue.
template <class T, class Epilogue>
void gemm_flush(T const* block, Index pitch, Index m, Index m_count, Index n, Index n_count, T* c, Index c_row,
                Epilogue const epilogue) {
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
        DFDX_UNROLL for (int r = 0; r < W; ++r) put(epilogue, v[r], to + r * c_row, m + i + r, n + j, W);
      } else {
        alignas(64) T part[W * W];
        DFDX_UNROLL for (int r = 0; r < W; ++r) v[r].store_aligned(part + r * W);
        for (int r = 0; r < rows; ++r)
          put(epilogue, lane<T>::load_aligned(part + r * W), to + r * c_row, m + i + r, n + j, count);
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
    constexpr Index pitch = Lanes * W;
    T* const to = block;
    auto keep = [=](lane<T> sum, int n, int j) { sum.store_aligned(to + n * pitch + j * W); };
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

/// Lanes over k: put_dots(lane of sums, m, n, count) for C[m, n .. n+count), rows of A and columns of B contiguous.
///
/// For few rows of A, where transposing B would cost more than the product; each row of B comes from memory once.
template <class T, class Put>
void gemm_dot(Index m_count, Index n_count, Index k, T const* a, Index a_row, T const* b, Index b_col,
              Put const& put_dots) {
  using V = lane<T>;
  constexpr int W = lane_size<T>, group = W < 8 ? W : 8;  // rows of B read side by side
  Index const whole = k - k % W;
  int const rest = static_cast<int>(k - whole);
  for (Index n = 0; n < n_count; n += W) {
    int const count = n_count - n < W ? static_cast<int>(n_count - n) : W;
    for (Index m = 0; m < m_count; ++m) {
      T const* const x = a + m * a_row;
      V sum[W];
      DFDX_UNROLL for (int g = 0; g < W; g += group) {
        T const* y[group];  // a row that does not exist is a copy of the last: its sum is not stored
        V part[group];
        DFDX_UNROLL for (int i = 0; i < group; ++i) {
          y[i] = b + (n + (g + i < count ? g + i : count - 1)) * b_col;
          part[i] = V(T(0));
        }
        for (Index p = 0; p < whole; p += W) {
          V const xs = V::load_unaligned(x + p);
          DFDX_UNROLL for (int i = 0; i < group; ++i) part[i] = xsimd::fma(xs, V::load_unaligned(y[i] + p), part[i]);
        }
        if (rest > 0) {
          V const xs = load_n(x + whole, rest);
          DFDX_UNROLL for (int i = 0; i < group; ++i) part[i] = xsimd::fma(xs, load_n(y[i] + whole, rest), part[i]);
        }
        DFDX_UNROLL for (int i = 0; i < group; ++i) sum[g + i] = part[i];
      }
      transpose_tile(sum);
      DFDX_UNROLL for (int step = W / 2; step > 0; step /= 2)
        DFDX_UNROLL for (int i = 0; i < step; ++i) sum[i] = sum[i] + sum[i + step];
      put_dots(sum[0], m, n, count);
    }
  }
}

/// C of one column, as dot products of the rows of A with b.
template <class T, class Epilogue>
void gemm_column(Index m, Index k, T const* a, Index a_row, T const* b, T* c, Index c_row,
                 Epilogue const& epilogue) {
  gemm_dot(Index(1), m, k, b, Index(0), a, a_row, [&](lane<T> sums, Index, Index i, int count) {
    alignas(64) T part[lane<T>::size];
    sums.store_aligned(part);
    for (int r = 0; r < count; ++r) c[(i + r) * c_row] = epilogue(part[r], i + r, Index(0));
  });
}

/// C of one row, lanes over columns: B's rows are contiguous and stream through once, in order.
template <class T, class Epilogue>
void gemm_row(Index n, Index k, T const* a, Index a_col, T const* b, Index b_row, T* c, Epilogue const& epilogue) {
  constexpr int W = lane_size<T>, C = tile_sums / 3;
  auto panel = [&]<int Lanes>(Index j, int last) {
    lane<T> sum[Lanes];
    DFDX_UNROLL for (int i = 0; i < Lanes; ++i) sum[i] = lane<T>(T(0));
    T const* from = b + j;
    for (Index p = 0; p < k; ++p, from += b_row) {
      lane<T> const x(a[p * a_col]);
      DFDX_UNROLL for (int i = 0; i < Lanes - 1; ++i)
        sum[i] = xsimd::fma(x, lane<T>::load_unaligned(from + i * W), sum[i]);
      sum[Lanes - 1] = xsimd::fma(x, load_n(from + (Lanes - 1) * W, last), sum[Lanes - 1]);
    }
    DFDX_UNROLL for (int i = 0; i < Lanes; ++i)
      put(epilogue, sum[i], c + j + i * W, Index(0), j + i * W, i == Lanes - 1 ? last : W);
  };
  Index j = 0;
  for (; j + C * W <= n; j += C * W) panel.template operator()<C>(j, W);
  for (; j < n; j += W) panel.template operator()<1>(j, n - j < W ? static_cast<int>(n - j) : W);
}

}  // namespace dfdx::kernels::detail

#endif  // !__CUDACC__
