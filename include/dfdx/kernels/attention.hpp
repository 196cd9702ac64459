// SPDX-License-Identifier: BSL-1.0
// Attention of one head, block by block: scores of some queries and some keys are all that exists of the matrix of
// weights at a time, and they stay in the second cache. Sums over the blocks of keys are kept relative to the largest
// score so far (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/exponential.hpp>
#include <dfdx/kernels/gemm.hpp>
#include <dfdx/kernels/reference/attention.hpp>
#include <dfdx/kernels/rvv/attention.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

#if !defined(__CUDACC__)

namespace detail {

#if defined(DFDX_RVV)
using rvv::add_log_row, rvv::exp_row, rvv::pull_back_row, rvv::scale_row, rvv::scale_to_largest;
#else
/// x[i] *= factor.
template <class T>
void scale_row(T* x, index_t n, T factor) {
  constexpr int W = lane_size<T>;
  lane<T> const by(factor);
  index_t i = 0;
  for (; i + W <= n; i += W) (lane<T>::load_unaligned(x + i) * by).store_unaligned(x + i);
  if (int const rest = static_cast<int>(n - i); rest > 0) store_n(x + i, load_n(x + i, rest) * by, rest);
}

/// x[i] *= factor; the largest of them.
template <class T>
T scale_to_largest(T* x, index_t n, T factor) {
  constexpr int W = lane_size<T>;
  constexpr T least = -std::numeric_limits<T>::infinity();
  lane<T> most(least), by(factor);
  index_t i = 0;
  for (; i + W <= n; i += W) {
    lane<T> const v = lane<T>::load_unaligned(x + i) * by;
    v.store_unaligned(x + i);
    most = xsimd::max(most, v);
  }
  if (int const rest = static_cast<int>(n - i); rest > 0) {
    lane<T> const v = load_n(x + i, rest) * by;
    store_n(x + i, v, rest);
    most = xsimd::max(most, select(mask_first_n<T>(rest), v, lane<T>(least)));
  }
  return xsimd::reduce_max(most);
}

/// x[i] = exp(x[i] - shift); their sum. (Scores have been scaled and rounded as the largest was, which is so less than
/// itself by nothing, also where rounding is by 1e6. Scaled here, rounded once, it could be a power of e above 1.)
template <class T>
T exp_row(T* x, index_t n, T shift) {
  constexpr int W = lane_size<T>;
  lane<T> const less(shift);
  lane<T> sum(T(0));
  index_t i = 0;
  for (; i + W <= n; i += W) {
    lane<T> const e = lane_exp(lane<T>::load_unaligned(x + i) - less);
    e.store_unaligned(x + i);
    sum = sum + e;
  }
  if (i < n) {
    int const rest = static_cast<int>(n - i);
    lane<T> const e = lane_exp(load_n(x + i, rest) - less);
    store_n(x + i, e, rest);
    sum = sum + select(mask_first_n<T>(rest), e, lane<T>(T(0)));
  }
  return xsimd::reduce_add(sum);
}

/// y[i] = x[i] + log(sum[i]).
template <class T>
void add_log_row(T const* x, T const* sum, index_t n, T* y) {
  constexpr int W = lane_size<T>;
  for (index_t i = 0; i < n; i += W) {
    int const count = static_cast<int>(std::min<index_t>(W, n - i));
    store_n(y + i, load_n(x + i, count) + xsimd::log(load_n(sum + i, count)), count);
  }
}

/// y[i] = p[i] (y[i] - d) factor.
template <class T>
void pull_back_row(T* y, T const* p, index_t n, T d, T factor) {
  constexpr int W = lane_size<T>;
  lane<T> const less(d), by(factor);
  index_t i = 0;
  for (; i + W <= n; i += W)
    ((lane<T>::load_unaligned(y + i) - less) * (lane<T>::load_unaligned(p + i) * by)).store_unaligned(y + i);
  if (int const rest = static_cast<int>(n - i); rest > 0)
    store_n(y + i, (load_n(y + i, rest) - less) * (load_n(p + i, rest) * by), rest);
}
#endif

}  // namespace detail

/// BlockedAttention - the two passes over one head, with the memory that they need.
template <class T>
class BlockedAttention {
 public:
  explicit BlockedAttention(AttentionHead const& head)
      : h(head),
        rows(rows_of(head)),
        columns(std::min(most_columns, h.keys)),
        tile_size((rows * columns + 63) / 64 * 64),
        memory_(static_cast<std::size_t>(2 * tile_size + 2 * rows) + workspace() / sizeof(T)) {}

  /// y = the attention, log_sums[i] = the logarithm of the sum of query i's exponentials.
  void forward(MatrixRows<T const> q, MatrixRows<T const> k, MatrixRows<T const> v, MatrixRows<T> y,
               T* log_sums) const {
    for (index_t i0 = 0; i0 < h.queries; i0 += rows) {
      index_t const m = std::min(rows, h.queries - i0);
      std::fill_n(largest(), m, -std::numeric_limits<T>::infinity());
      std::fill_n(sums(), m, T(0));
      for (index_t i = 0; i < m; ++i) std::fill_n(y.row(i0 + i), h.width, T(0));
      index_t const keys = h.seen(i0 + m - 1, 0, h.keys);  // by the last of these queries
      for (index_t j0 = 0; j0 < keys; j0 += columns) {
        index_t const n = std::min(columns, keys - j0);
        product(m, n, h.size, {q.row(i0), q.step, 1}, {k.row(j0), 1, k.step}, tile(), columns);
        for (index_t i = 0; i < m; ++i) weigh(i, h.seen(i0 + i, j0, n), n, y.row(i0 + i));
        add_product(m, h.width, n, {tile(), columns, 1}, {v.row(j0), v.step, 1}, y.row(i0), y.step);
      }
      for (index_t i = 0; i < m; ++i) detail::scale_row(y.row(i0 + i), h.width, 1 / sums()[i]);
      detail::add_log_row(largest(), sums(), m, log_sums + i0);
    }
  }

  /// Adds the gradients with respect to q, k and v to dq, dk and dv, from the cotangents of y, the log_sums, and d.
  void backward(MatrixRows<T const> q, MatrixRows<T const> k, MatrixRows<T const> v, MatrixRows<T const> ct,
                T const* log_sums, T const* d, MatrixRows<T> dq, MatrixRows<T> dk, MatrixRows<T> dv) const {
    T* const p = tile();
    T* const r = tile() + tile_size;
    auto const scale = static_cast<T>(h.scale);
    for (index_t j0 = 0; j0 < h.keys; j0 += columns) {
      for (index_t i0 = 0; i0 < h.queries; i0 += rows) {
        index_t const m = std::min(rows, h.queries - i0);
        index_t const n = h.seen(i0 + m - 1, j0, std::min(columns, h.keys - j0));
        if (n == 0) continue;
        product(m, n, h.size, {q.row(i0), q.step, 1}, {k.row(j0), 1, k.step}, p, columns);
        product(m, n, h.width, {ct.row(i0), ct.step, 1}, {v.row(j0), 1, v.step}, r, columns);
        for (index_t i = 0; i < m; ++i) {
          T *const weights = p + i * columns, *const scores = r + i * columns;
          index_t const seen = h.seen(i0 + i, j0, n);
          detail::scale_row(weights, seen, scale);
          detail::exp_row(weights, seen, log_sums[i0 + i]);
          detail::pull_back_row(scores, weights, seen, d[i0 + i], scale);
          std::fill(weights + seen, weights + n, T(0));
          std::fill(scores + seen, scores + n, T(0));
        }
        add_product(n, h.width, m, {p, 1, columns}, {ct.row(i0), ct.step, 1}, dv.row(j0), dv.step);
        add_product(m, h.size, n, {r, columns, 1}, {k.row(j0), k.step, 1}, dq.row(i0), dq.step);
        add_product(n, h.size, m, {r, 1, columns}, {q.row(i0), q.step, 1}, dk.row(j0), dk.step);
      }
    }
  }

 private:
  static constexpr index_t most_rows = 128, most_columns = 256;
  static constexpr index_t most_causal = 64, few_causal = 48;
  // Of causal attention fewer rows at a time, for the keys that none of them sees are left out: two blocks at least,
  // unless these were too small.
  static index_t rows_of(AttentionHead const& h) {
    if (!h.causal) return std::min(most_rows, h.queries);
    if (h.queries <= few_causal) return h.queries;
    return std::min(most_causal, (h.queries + 31) / 32 * 16);
  }
  using Any = gemm_shape<T, run_time, run_time, run_time, run_time, run_time, run_time, run_time, run_time>;
  struct Factor {
    T const* at;
    index_t row, column;
  };

  T* tile() const { return memory_.get(); }
  T* largest() const { return tile() + 2 * tile_size; }
  T* sums() const { return largest() + rows; }
  void* product_memory() const { return sums() + rows; }
  std::size_t workspace() const {
    index_t const size = std::max(h.size, h.width);
    std::size_t most = 0;
    for (auto const& [m, n, k] :
         {Product{rows, columns, size}, Product{rows, size, columns}, Product{columns, size, rows}})
      most = std::max(most, multiply_workspace_up_to<T, add_scaled_sum<T>>(m, n, k));
    return most + 64;
  }
  struct Product {
    index_t m, n, k;
  };
  static gemm_sizes sizes(index_t m, index_t n, index_t k, Factor a, Factor b, index_t c_row) {
    return {m, n, k, a.row, a.column, b.row, b.column, c_row};
  }
  void product(index_t m, index_t n, index_t k, Factor a, Factor b, T* c, index_t c_row) const {
    multiply<Any>(a.at, b.at, c, aligned_memory(), store_sum{}, sizes(m, n, k, a, b, c_row));
  }
  void add_product(index_t m, index_t n, index_t k, Factor a, Factor b, T* c, index_t c_row) const {
    multiply<Any>(a.at, b.at, c, aligned_memory(), add_scaled_sum<T>{T(1), c, c_row},
                  sizes(m, n, k, a, b, c_row));
  }
  void* aligned_memory() const {
    auto const at = reinterpret_cast<std::uintptr_t>(product_memory());
    return reinterpret_cast<void*>((at + 63) / 64 * 64);
  }

  // Row i of the tile becomes weights relative to the largest score so far; so do the sums before them.
  void weigh(index_t i, index_t seen, index_t n, T* y) const {
    T* const scores = tile() + i * columns;
    if (seen > 0) {
      auto const scale = static_cast<T>(h.scale);
      T const before = largest()[i], now = std::max(before, detail::scale_to_largest(scores, seen, scale));
      largest()[i] = now;
      T const sum = detail::exp_row(scores, seen, now);
      if (before == now ||
          before == -std::numeric_limits<T>::infinity()) {  // the first scores: nothing before them
        sums()[i] += sum;
      } else {
        T const kept = std::exp(before - now);
        sums()[i] = sums()[i] * kept + sum;
        detail::scale_row(y, h.width, kept);
      }
    }
    std::fill(scores + seen, scores + n, T(0));
  }

  AttentionHead const h;
  index_t const rows, columns, tile_size;
  Scratch<T> memory_;
};

#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET
