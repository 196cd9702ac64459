// SPDX-License-Identifier: BSL-1.0
//
// pairs - takes apart what alternates: of two lanes the elements at even places and those at odd ones; and joins them.
#pragma once

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/partial.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

#if defined(__SSE2__)
namespace detail {

/// The elements at even places of two lanes, and those at odd ones.
DFDX_INLINE void split_pairs(lane<float> a, lane<float> b, lane<float>& even, lane<float>& odd) {
#if defined(__AVX512F__)
  __m512i const first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512i const second = _mm512_or_si512(first, _mm512_set1_epi32(1));
  even = _mm512_permutex2var_ps(a, first, b);
  odd = _mm512_permutex2var_ps(a, second, b);
#elif defined(__AVX2__)
  auto const in_order = [](__m256 v) { return _mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8); };
  even = _mm256_castpd_ps(in_order(_mm256_shuffle_ps(a, b, 0x88)));
  odd = _mm256_castpd_ps(in_order(_mm256_shuffle_ps(a, b, 0xdd)));
#elif defined(__AVX__)
  __m256 const low = _mm256_permute2f128_ps(a, b, 0x20), high = _mm256_permute2f128_ps(a, b, 0x31);
  even = _mm256_shuffle_ps(low, high, 0x88);
  odd = _mm256_shuffle_ps(low, high, 0xdd);
#else
  even = _mm_shuffle_ps(a, b, 0x88);
  odd = _mm_shuffle_ps(a, b, 0xdd);
#endif
}
DFDX_INLINE void split_pairs(lane<double> a, lane<double> b, lane<double>& even, lane<double>& odd) {
#if defined(__AVX512F__)
  __m512i const first = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  __m512i const second = _mm512_or_si512(first, _mm512_set1_epi64(1));
  even = _mm512_permutex2var_pd(a, first, b);
  odd = _mm512_permutex2var_pd(a, second, b);
#elif defined(__AVX__)
  __m256d const low = _mm256_permute2f128_pd(a, b, 0x20), high = _mm256_permute2f128_pd(a, b, 0x31);
  even = _mm256_unpacklo_pd(low, high);
  odd = _mm256_unpackhi_pd(low, high);
#else
  even = _mm_unpacklo_pd(a, b);
  odd = _mm_unpackhi_pd(a, b);
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
    lane<T> first, second;
    auto const split_lanes = [&](T const* at, T* firsts, T* seconds) {
      detail::split_pairs(lane<T>::load_unaligned(at), lane<T>::load_unaligned(at + W), first, second);
      first.store_unaligned(firsts), second.store_unaligned(seconds);
    };
    for (; i + 2 * W <= n; i += 2 * W) split_lanes(from + i, even + i / 2, odd + i / 2);
    if (i == n) return;
    if (n >= 2 * W) {  // the last ones, some of them again
      i = n - 2 * W;
      if (i % 2 == 0) split_lanes(from + i, even + i / 2, odd + i / 2);
      else split_lanes(from + i, odd + i / 2, even + (i + 1) / 2);
    } else {
      int const rest = static_cast<int>(n);
      detail::split_pairs(load_n(from, rest < W ? rest : W),
                          rest > W ? load_n(from + W, rest - W) : lane<T>(T(0)), first, second);
      store_n(even, first, (rest + 1) / 2), store_n(odd, second, rest / 2);
    }
    return;
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
