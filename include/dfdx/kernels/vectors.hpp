// SPDX-License-Identifier: BSL-1.0
// The vectors that elementary functions are written for: xsimd's, and where vectors have no size, symbols of them
// (rvv/formula.hpp).
#pragma once

#include <cmath>

#include <dfdx/kernels/rvv/formula.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// vectors - their functions, by xsimd's names.
#if defined(DFDX_RVV)
namespace vectors {
using rvv::abs, rvv::fma, rvv::fms, rvv::fnma, rvv::min, rvv::max, rvv::copysign, rvv::nearbyint, rvv::floor;
using rvv::bitwise_cast, rvv::batch_cast, rvv::sqrt, rvv::trunc, rvv::ceil;
using xsimd::abs, xsimd::copysign, xsimd::nearbyint;
using xsimd::bitwise_cast, xsimd::batch_cast, xsimd::sqrt, xsimd::trunc, xsimd::ceil, xsimd::floor,
    xsimd::any;

// Of xsimd's portable vectors: the second operand where one is NaN, and multiply-adds that are rounded once. Its own
// are neither.
template <class T, class A>
xsimd::batch<T, A> min(xsimd::batch<T, A> const& x, xsimd::batch<T, A> const& y) {
  return xsimd::select(x < y, x, y);
}
template <class T, class A>
xsimd::batch<T, A> max(xsimd::batch<T, A> const& x, xsimd::batch<T, A> const& y) {
  return xsimd::select(x > y, x, y);
}
template <class T, class A>
xsimd::batch<T, A> fma(xsimd::batch<T, A> const& x, xsimd::batch<T, A> const& y,
                       xsimd::batch<T, A> const& z) {
  constexpr std::size_t n = xsimd::batch<T, A>::size;
  alignas(64) T a[n], b[n], c[n];
  x.store_aligned(a), y.store_aligned(b), z.store_aligned(c);
  for (std::size_t i = 0; i < n; ++i) c[i] = std::fma(a[i], b[i], c[i]);
  return xsimd::batch<T, A>::load_aligned(c);
}
template <class T, class A>
xsimd::batch<T, A> fms(xsimd::batch<T, A> const& x, xsimd::batch<T, A> const& y,
                       xsimd::batch<T, A> const& z) {
  return vectors::fma(x, y, -z);
}
template <class T, class A>
xsimd::batch<T, A> fnma(xsimd::batch<T, A> const& x, xsimd::batch<T, A> const& y,
                        xsimd::batch<T, A> const& z) {
  return vectors::fma(-x, y, z);
}
}  // namespace vectors
#else
namespace vectors = xsimd;
#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
