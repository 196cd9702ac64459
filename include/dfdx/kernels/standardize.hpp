// SPDX-License-Identifier: BSL-1.0
// Rows brought to mean 0 and variance 1, in one step: what norms that are called on their own begin with where no
// derivative flows.
#pragma once

#include <cmath>

#include <dfdx/kernels/reduce.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

// The sum of (x - mean)^2, in lanes for blocks, which are added up in double.
template <class T>
double squares_about(T mean, T const* x, index_t n) {
  double total = 0;
  index_t i = 0;
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
  constexpr index_t w = lane_size<T>, block = 4096;
  lane<T> const m(mean);
  while (n - i >= 4 * w) {
    lane<T> part[4];
    DFDX_UNROLL for (auto& p : part) p = lane<T>(T(0));
    index_t const end = i + (n - i < block ? n - i : block);
    for (; i + 4 * w <= end; i += 4 * w) DFDX_UNROLL for (int k = 0; k < 4; ++k) {
        lane<T> const d = lane<T>::load_unaligned(x + i + k * w) - m;
        part[k] = part[k] + d * d;
      }
    T sums[w];
    ((part[0] + part[1]) + (part[2] + part[3])).store_unaligned(sums);
    total += fold_line<Code::reduce_sum>(0.0, sums, w);
  }
#endif
  for (; i < n; ++i) {
    double const d = static_cast<double>(x[i] - mean);
    total += d * d;
  }
  return total;
}

// y = (x - mean) scale.
template <class T>
void shift_and_scale(T* y, T const* x, index_t n, T mean, T scale) {
  index_t i = 0;
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
  lane<T> const m(mean), s(scale);
  for (constexpr index_t w = lane_size<T>; i + w <= n; i += w)
    ((lane<T>::load_unaligned(x + i) - m) * s).store_unaligned(y + i);
#endif
  for (; i < n; ++i) y[i] = (x[i] - mean) * scale;
}

}  // namespace detail

/// standardize - of so many rows of n numbers, dense: (x - mean) / sqrt(variance + eps), the variance the mean of the
/// squares.
template <class T>
void standardize(T const* x, T* y, index_t rows, index_t n, double eps) {
  int const parts = parts_of(8 * rows * n, rows);
  in_parallel(parts, [&](int i) {
    Part const p = part_of(rows, i, parts);
    for (index_t r = p.begin; r < p.end; ++r) {
      T const* const row = x + r * n;
      auto const count = static_cast<double>(n);
      auto const mean = static_cast<T>(fold_line<Code::reduce_sum>(0.0, row, n) / count);
      double const variance = detail::squares_about(mean, row, n) / count;
      detail::shift_and_scale(y + r * n, row, n, mean, static_cast<T>(1 / std::sqrt(variance + eps)));
    }
  });
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
