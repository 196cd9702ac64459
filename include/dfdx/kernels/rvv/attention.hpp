// SPDX-License-Identifier: BSL-1.0
// What attention block by block (kernels/attention.hpp) does to rows, on vectors of any length.
#pragma once

#include <cmath>
#include <limits>

#include <dfdx/kernels/exponential.hpp>
#include <dfdx/kernels/rvv/evaluate.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// part_of - how many of the n numbers of a row a vector at i takes.
DFDX_INLINE std::size_t part_of(index_t n, index_t i, index_t w) {
  return static_cast<std::size_t>(n - i < w ? n - i : w);
}

struct Exponential {
  static constexpr auto eval(auto const& x) { return lane_exp(x); }
};

/// scale_row - x[i] *= factor.
template <class T>
void scale_row(T* x, index_t n, T factor) {
  index_t const w = lanes();
  for (index_t i = 0; i < n; i += w) {
    std::size_t const count = part_of(n, i, w);
    store_part(x + i, 1, __riscv_vfmul(load_part(x + i, 1, count), factor, count), count);
  }
}

/// scale_to_largest - x[i] *= factor; the largest of them, NaN left out.
template <class T>
T scale_to_largest(T* x, index_t n, T factor) {
  vector_t<T> most = splat(-std::numeric_limits<T>::infinity());
  index_t const w = lanes();
  for (index_t i = 0; i < n; i += w) {
    std::size_t const count = part_of(n, i, w);
    vector_t<T> const v = __riscv_vfmul(load_part(x + i, 1, count), factor, count);
    store_part(x + i, 1, v, count);
    most = __riscv_vfmax_tu(most, most, v, count);
  }
  if constexpr (sizeof(T) == 4)
    return __riscv_vfmv_f(__riscv_vfredmax(most, __riscv_vlmul_trunc_f32m1(most), every));
  else return __riscv_vfmv_f(__riscv_vfredmax(most, __riscv_vlmul_trunc_f64m1(most), every));
}

/// exp_row - x[i] = exp(x[i] - shift); their sum.
template <class T>
T exp_row(T* x, index_t n, T shift) {
  vector_t<T> sum = splat(T(0));
  index_t const w = lanes();
  for (index_t i = 0; i < n; i += w) {
    std::size_t const count = part_of(n, i, w);
    vector_t<T> const e = evaluate<Exponential, T>(__riscv_vfsub(load_part(x + i, 1, count), shift, count));
    store_part(x + i, 1, e, count);
    sum = __riscv_vfadd_tu(sum, sum, e, count);
  }
  return sum_of<T>(sum);
}

/// add_log_row - y[i] = x[i] + log(sum[i]).
template <class T>
void add_log_row(T const* x, T const* sum, index_t n, T* y) {
  for (index_t i = 0; i < n; ++i) y[i] = x[i] + std::log(sum[i]);
}

/// pull_back_row - y[i] = p[i] (y[i] - d) factor.
template <class T>
void pull_back_row(T* y, T const* p, index_t n, T d, T factor) {
  index_t const w = lanes();
  for (index_t i = 0; i < n; i += w) {
    std::size_t const count = part_of(n, i, w);
    vector_t<T> const apart = __riscv_vfsub(load_part(y + i, 1, count), d, count);
    vector_t<T> const by = __riscv_vfmul(load_part(p + i, 1, count), factor, count);
    store_part(y + i, 1, __riscv_vfmul(apart, by, count), count);
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
