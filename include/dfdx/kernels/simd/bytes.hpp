// SPDX-License-Identifier: BSL-1.0
//
// bytes - lanes of integers from and to numbers of eight bits in memory.
#pragma once

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// load_bytes - a lane of integers I (32 or 64 bits) from as many numbers of eight bits.
template <class I, byte_number M>
DFDX_INLINE lane<I> load_bytes(M const* p) {
  [[maybe_unused]] constexpr int size = lane_size<I>;
#if defined(__SSE2__)
  [[maybe_unused]] constexpr bool has_sign = std::is_signed_v<M>;
#if defined(__AVX2__)
  if constexpr (size == 16) {
#if defined(__AVX512F__)
    __m128i const v = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
    return has_sign ? _mm512_cvtepi8_epi32(v) : _mm512_cvtepu8_epi32(v);
#endif
  } else if constexpr (size == 8) {
    __m128i v = _mm_loadl_epi64(reinterpret_cast<__m128i const*>(p));
#if defined(__AVX512F__)
#if defined(__GNUC__) && !defined(__clang__)
    // g++ 12 joins this load, the widening and a choice after it to one instruction, and then fails itself.
    if constexpr (sizeof(I) == 8) asm("" : "+v"(v));
#endif
    if constexpr (sizeof(I) == 8) return has_sign ? _mm512_cvtepi8_epi64(v) : _mm512_cvtepu8_epi64(v);
#endif
    if constexpr (sizeof(I) == 4) return has_sign ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v);
  } else if constexpr (size == 4) {
    int four;
    std::memcpy(&four, p, 4);
    __m128i const v = _mm_cvtsi32_si128(four);
    if constexpr (sizeof(I) == 8) return has_sign ? _mm256_cvtepi8_epi64(v) : _mm256_cvtepu8_epi64(v);
  }
#else
  if constexpr (size == 4 && sizeof(I) == 4 && sizeof(lane<I>) == 16) {
    int four;
    std::memcpy(&four, p, 4);
    __m128i const v = _mm_cvtsi32_si128(four), zero = _mm_setzero_si128();
    // The sign is what is above each number.
    __m128i const twice = _mm_unpacklo_epi8(v, has_sign ? _mm_cmpgt_epi8(zero, v) : zero);
    return _mm_unpacklo_epi16(twice, has_sign ? _mm_cmpgt_epi16(zero, twice) : zero);
  }
#endif
#endif
  alignas(64) I part[size];
  for (int i = 0; i < size; ++i) part[i] = static_cast<I>(p[i]);
  return lane<I>::load_aligned(part);
}

/// store_bytes - the lower eight bits of each, back.
template <class I, class A, byte_number M>
DFDX_INLINE void store_bytes(M* p, xsimd::batch<I, A> const& x) {
  constexpr int size = static_cast<int>(xsimd::batch<I, A>::size);
#if defined(__AVX512F__)
  if constexpr (size == 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
  else if constexpr (size == 8 && sizeof(I) == 8)
    return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm512_cvtepi64_epi8(x));
#elif defined(__SSE2__)
  if constexpr (sizeof(I) == 4 && (size == 4 || (size == 8 && sizeof(x) == 32))) {
    // Numbers are cut to their lower bits first, for what is packed is limited and not cut.
    auto const cut = x & xsimd::batch<I, A>(I(255));
#if defined(__AVX2__)
    __m128i const low = _mm256_castsi256_si128(cut), high = _mm256_extracti128_si256(cut, 1);
    __m128i const two = _mm_packs_epi32(low, high);
    return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(two, two));
#elif !defined(__AVX__)
    __m128i const two = _mm_packs_epi32(cut, cut);
    int const four = _mm_cvtsi128_si32(_mm_packus_epi16(two, two));
    std::memcpy(p, &four, 4);
    return;
#endif
  }
#endif
  alignas(64) I part[size];
  x.store_aligned(part);
  for (int i = 0; i < size; ++i) p[i] = static_cast<M>(part[i]);
}

/// convert_bytes - floats from numbers of eight bits: as many of n as whole lanes hold, which it returns.
template <byte_number From>
std::int64_t convert_bytes(float* y, From const* x, std::int64_t n) {
  std::int64_t i = 0;
  for (constexpr int w = lane_size<float>; i + w <= n; i += w)
    xsimd::batch_cast<float>(load_bytes<std::int32_t>(x + i)).store_unaligned(y + i);
  return i;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
