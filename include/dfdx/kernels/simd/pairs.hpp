// SPDX-License-Identifier: BSL-1.0
//
// pairs - takes apart what alternates: of two lanes the elements at even places and those at odd ones; and joins them.
#pragma once

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

#if defined(__SSE2__)
namespace detail {

DFDX_INLINE void split_pairs(lane<float> a, lane<float> b, float* even, float* odd) {
#if defined(__AVX512F__)
  __m512i const first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512i const second = _mm512_or_si512(first, _mm512_set1_epi32(1));
  _mm512_storeu_ps(even, _mm512_permutex2var_ps(a, first, b));
  _mm512_storeu_ps(odd, _mm512_permutex2var_ps(a, second, b));
#elif defined(__AVX2__)
  auto const in_order = [](__m256 v) { return _mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8); };
  _mm256_storeu_ps(even, _mm256_castpd_ps(in_order(_mm256_shuffle_ps(a, b, 0x88))));
  _mm256_storeu_ps(odd, _mm256_castpd_ps(in_order(_mm256_shuffle_ps(a, b, 0xdd))));
#elif defined(__AVX__)
  __m256 const low = _mm256_permute2f128_ps(a, b, 0x20), high = _mm256_permute2f128_ps(a, b, 0x31);
  _mm256_storeu_ps(even, _mm256_shuffle_ps(low, high, 0x88));
  _mm256_storeu_ps(odd, _mm256_shuffle_ps(low, high, 0xdd));
#else
  _mm_storeu_ps(even, _mm_shuffle_ps(a, b, 0x88));
  _mm_storeu_ps(odd, _mm_shuffle_ps(a, b, 0xdd));
#endif
}
DFDX_INLINE void split_pairs(lane<double> a, lane<double> b, double* even, double* odd) {
#if defined(__AVX512F__)
  __m512i const first = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  __m512i const second = _mm512_or_si512(first, _mm512_set1_epi64(1));
  _mm512_storeu_pd(even, _mm512_permutex2var_pd(a, first, b));
  _mm512_storeu_pd(odd, _mm512_permutex2var_pd(a, second, b));
#elif defined(__AVX__)
  __m256d const low = _mm256_permute2f128_pd(a, b, 0x20), high = _mm256_permute2f128_pd(a, b, 0x31);
  _mm256_storeu_pd(even, _mm256_unpacklo_pd(low, high));
  _mm256_storeu_pd(odd, _mm256_unpackhi_pd(low, high));
#else
  _mm_storeu_pd(even, _mm_unpacklo_pd(a, b));
  _mm_storeu_pd(odd, _mm_unpackhi_pd(a, b));
#endif
}

}  // namespace detail
#endif

/// split - even[i] = from[2 i] and odd[i] = from[2 i + 1] for the n elements from `from` on.
template <class T>
void split(T const* DFDX_RESTRICT from, std::int64_t n, T* DFDX_RESTRICT even, T* DFDX_RESTRICT odd) {
  std::int64_t i = 0;
#if defined(__SSE2__)
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    constexpr int W = lane_size<T>;
    for (; i + 2 * W <= n; i += 2 * W)
      detail::split_pairs(lane<T>::load_unaligned(from + i), lane<T>::load_unaligned(from + i + W),
                          even + i / 2, odd + i / 2);
  }
#endif
  for (; i < n; ++i) (i % 2 == 0 ? even : odd)[i / 2] = from[i];
}

namespace detail {

/// The first n of what two lanes are that alternate, n > 0, to memory.
template <class T>
DFDX_INLINE void join(lane<T> even, lane<T> odd, T* to, std::int64_t n) {
  constexpr int W = lane_size<T>;
  lane<T> const low = xsimd::zip_lo(even, odd), high = xsimd::zip_hi(even, odd);
  if (n >= 2 * W) {
    low.store_unaligned(to);
    high.store_unaligned(to + W);
  } else if (n > W) {
    low.store_unaligned(to);
    store_n(to + W, high, static_cast<int>(n - W));
  } else {
    store_n(to, low, static_cast<int>(n));
  }
}

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
