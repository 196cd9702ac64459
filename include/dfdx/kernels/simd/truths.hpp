// SPDX-License-Identifier: BSL-1.0
// Truth values between memory, a byte each, and masks of lanes.
#pragma once

#include <cstring>

#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

template <class T>
using truths = typename lane<T>::batch_bool_type;

/// load_truths - a whole lane of bools from p as a mask for lanes of T.
template <class T>
DFDX_INLINE truths<T> load_truths(bool const* p) {
  [[maybe_unused]] constexpr int size = lane_size<T>;
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (size == 16) {
    __m128i const v = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
    return truths<T>(_mm_test_epi8_mask(v, v));
  } else if constexpr (size == 8) {
    __m128i const v = _mm_loadl_epi64(reinterpret_cast<__m128i const*>(p));
    return truths<T>(static_cast<__mmask8>(_mm_test_epi8_mask(v, v)));
  }
#elif defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    __m256i const v = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(p)));
    return truths<T>(_mm256_castsi256_ps(_mm256_cmpgt_epi32(v, _mm256_setzero_si256())));
  } else if constexpr (std::is_same_v<T, double>) {
    int four;
    std::memcpy(&four, p, 4);
    __m256i const v = _mm256_cvtepi8_epi64(_mm_cvtsi32_si128(four));
    return truths<T>(_mm256_castsi256_pd(_mm256_cmpgt_epi64(v, _mm256_setzero_si256())));
  }
#elif defined(__SSE2__) && !defined(__AVX__)
  if constexpr (std::is_same_v<T, float>) {
    int four;
    std::memcpy(&four, p, 4);
    __m128i const zero = _mm_setzero_si128();
    __m128i const v = _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero), zero);
    return truths<T>(_mm_castsi128_ps(_mm_cmpgt_epi32(v, zero)));
  }
#endif
  return truths<T>::load_unaligned(p);
}

/// store_truths - the same back.
template <class T>
DFDX_INLINE void store_truths(bool* p, truths<T> const& x) {
  [[maybe_unused]] constexpr int size = lane_size<T>;
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (size == 16)
    return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_maskz_set1_epi8(static_cast<__mmask16>(x), 1));
  else if constexpr (size == 8)
    return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_maskz_set1_epi8(static_cast<__mmask16>(x), 1));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  // Words become bytes in two steps; true is all ones, of which one is kept.
  if constexpr (std::is_same_v<T, float>) {
    __m256i const v = _mm256_castps_si256(x);
    __m128i const two = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                            _mm_and_si128(_mm_packs_epi16(two, two), _mm_set1_epi8(1)));
  } else if constexpr (std::is_same_v<T, double>) {
    __m256 const v = _mm256_castpd_ps(x);
    __m128 const four = _mm_shuffle_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1), 0x88);
    __m128i const two = _mm_packs_epi32(_mm_castps_si128(four), _mm_castps_si128(four));
    int const bytes = _mm_cvtsi128_si32(_mm_and_si128(_mm_packs_epi16(two, two), _mm_set1_epi8(1)));
    std::memcpy(p, &bytes, 4);
    return;
  }
#elif defined(__SSE2__) && !defined(__AVX__)
  if constexpr (std::is_same_v<T, float>) {
    __m128i const v = _mm_castps_si128(x), two = _mm_packs_epi32(v, v);
    int const bytes = _mm_cvtsi128_si32(_mm_and_si128(_mm_packs_epi16(two, two), _mm_set1_epi8(1)));
    std::memcpy(p, &bytes, 4);
    return;
  }
#endif
  x.store_unaligned(p);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
