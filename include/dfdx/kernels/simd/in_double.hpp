// SPDX-License-Identifier: BSL-1.0
// in_double - a function of vectors of floats by way of doubles, for functions that would need pairs of floats.
#pragma once

#include <array>
#include <tuple>

#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// widened, narrowed - a vector of floats as two of doubles, and back.
template <class A>
DFDX_INLINE std::array<xsimd::batch<double, A>, 2> widened(xsimd::batch<float, A> const& x) {
  using D = xsimd::batch<double, A>;
#if defined(__AVX512F__)
  if constexpr (sizeof(x) == 64)
    return {D(_mm512_cvtps_pd(_mm512_castps512_ps256(x))),
            D(_mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1))))};
#endif
#if defined(__AVX__)
  if constexpr (sizeof(x) == 32)
    return {D(_mm256_cvtps_pd(_mm256_castps256_ps128(x))), D(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)))};
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(x) == 16) return {D(_mm_cvtps_pd(x)), D(_mm_cvtps_pd(_mm_movehl_ps(x, x)))};
#elif defined(__aarch64__) && !defined(__ARM_FEATURE_SVE_BITS)
  if constexpr (sizeof(x) == 16) return {D(vcvt_f64_f32(vget_low_f32(x))), D(vcvt_high_f64_f32(x))};
#endif
  constexpr std::size_t n = D::size;
  alignas(64) float single[2 * n];
  alignas(64) double wide[2 * n];
  x.store_aligned(single);
  for (std::size_t i = 0; i < 2 * n; ++i) wide[i] = static_cast<double>(single[i]);
  return {D::load_aligned(wide), D::load_aligned(wide + n)};
}
template <class A>
DFDX_INLINE xsimd::batch<float, A> narrowed(xsimd::batch<double, A> const& low,
                                            xsimd::batch<double, A> const& high) {
  using X = xsimd::batch<float, A>;
#if defined(__AVX512F__)
  if constexpr (sizeof(X) == 64)
    return X(
        _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(low))),
                                            _mm256_castps_pd(_mm512_cvtpd_ps(high)), 1)));
#endif
#if defined(__AVX__)
  if constexpr (sizeof(X) == 32)
    return X(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1));
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(X) == 16) return X(_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)));
#elif defined(__aarch64__) && !defined(__ARM_FEATURE_SVE_BITS)
  if constexpr (sizeof(X) == 16) return X(vcvt_high_f32_f64(vcvt_f32_f64(low), high));
#endif
  constexpr std::size_t n = xsimd::batch<double, A>::size;
  alignas(64) float single[2 * n];
  alignas(64) double wide[2 * n];
  low.store_aligned(wide), high.store_aligned(wide + n);
  for (std::size_t i = 0; i < 2 * n; ++i) single[i] = static_cast<float>(wide[i]);
  return X::load_aligned(single);
}

/// in_double - f of vectors of floats, computed on vectors of doubles.
template <class F, class A, class... Y>
DFDX_INLINE xsimd::batch<float, A> in_double(F const& f, xsimd::batch<float, A> const& x, Y const&... y) {
  auto const wide = std::make_tuple(widened(x), widened(y)...);
  return std::apply([&](auto const&... v) { return narrowed(f(v[0]...), f(v[1]...)); }, wide);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
