// SPDX-License-Identifier: BSL-1.0
// 16-bit numbers as f32 and back, many at a time.
#pragma once

#include <bit>
#include <cstring>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/kernels/rvv/vectors.hpp>
#include <dfdx/kernels/simd/partial.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// half_number - a dtype that is computed with as f32.
template <class T>
concept half_number = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

namespace detail {

// As many as a compiler makes vectors of without being told to: the number is known.
inline constexpr index_t converted_together = 16;

template <class T>
void widen_block(float* y, T const* x) {
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, float16>) {
    for (int i = 0; i < 16; i += 8)
      _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(x + i))));
    return;
  }
#elif defined(__aarch64__)
  if constexpr (std::is_same_v<T, float16>) {
    for (int i = 0; i < 16; i += 4)
      vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&x[i].bits))));
    return;
  }
#endif
  for (index_t i = 0; i < converted_together; ++i) y[i] = static_cast<float>(x[i]);
}

template <class T>
void narrow_block(T* y, float const* x) {
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, float16>) {
    for (int i = 0; i < 16; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return;
  }
#elif defined(__aarch64__)
  if constexpr (std::is_same_v<T, float16>) {
    for (int i = 0; i < 16; i += 4)
      vst1_u16(&y[i].bits, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    return;
  }
#endif
  if constexpr (std::is_same_v<T, bfloat16>) {
    // dfdx::detail::to_bfloat_bits without a branch.
    for (index_t i = 0; i < converted_together; ++i) {
      auto const bits = std::bit_cast<std::uint32_t>(x[i]);
      std::uint32_t const nan = (bits >> 16) | 0x40u, number = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
      y[i].bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : number);
    }
  } else {
    for (index_t i = 0; i < converted_together; ++i) y[i] = static_cast<T>(x[i]);
  }
}

/// A lane of T from numbers of type B: those, or numbers of 16 bits widened.
template <class T, class B>
DFDX_INLINE lane<T> load_wide(B const* p) {
  if constexpr (std::is_same_v<T, B>) {
    return lane<T>::load_unaligned(p);
  } else {
    static_assert(std::is_same_v<T, float> && half_number<B>);
#if defined(__AVX512F__)
    __m256i const bits = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
    if constexpr (std::is_same_v<B, float16>) return lane<T>(_mm512_cvtph_ps(bits));
    else return lane<T>(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)));
#elif defined(__AVX2__) && defined(__F16C__)
    __m128i const bits = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
    if constexpr (std::is_same_v<B, float16>) return lane<T>(_mm256_cvtph_ps(bits));
    else return lane<T>(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16)));
#else
    alignas(64) T wide[lane<T>::size];
    for (int i = 0; i < lane_size<T>; ++i) wide[i] = static_cast<T>(p[i]);
    return lane<T>::load_aligned(wide);
#endif
  }
}
template <class T, class B>
DFDX_INLINE lane<T> load_wide_n(B const* p, int n) {
  if constexpr (std::is_same_v<T, B>) {
    return load_n(p, n);
  } else {
    alignas(64) T wide[lane<T>::size] = {};
    for (int i = 0; i < n; ++i) wide[i] = static_cast<T>(p[i]);
    return lane<T>::load_aligned(wide);
  }
}

/// A lane of f32 rounded to numbers of 16 bits, as narrow does.
template <class B>
DFDX_INLINE void store_narrow(B* p, lane<float> const& x) {
#if defined(__AVX512F__)
  auto* const to = reinterpret_cast<__m256i*>(p);
  if constexpr (std::is_same_v<B, float16>) {
    _mm256_storeu_si256(to, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  } else {
    __m512i const bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    __m512i const rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)),
                                             _mm512_and_si512(high, _mm512_set1_epi32(1)));
    __m512i const number =
        _mm512_mask_or_epi32(_mm512_srli_epi32(rounded, 16), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), high,
                             _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(to, _mm512_cvtepi32_epi16(number));
  }
#else
  constexpr int size = lane<float>::size;
  alignas(64) float wide[converted_together] = {};
  x.store_aligned(wide);
  if constexpr (size == converted_together) {
    narrow_block(p, wide);
  } else {
    B all[converted_together];
    narrow_block(all, wide);
    std::memcpy(p, all, size * sizeof(B));
  }
#endif
}

}  // namespace detail

/// widen - n numbers as f32. narrow - n numbers of f32, rounded to nearest even.
template <half_number T>
void widen(float* y, T const* x, index_t n) {
  index_t i = 0;
#if defined(DFDX_RVV)
  for (index_t const w = rvv::lanes(); i < n; i += w) {
    auto const count = static_cast<std::size_t>(n - i < w ? n - i : w);
    rvv::store_part(y + i, 1, rvv::load_half(x + i, 1, count), count);
  }
#endif
  for (; i + detail::converted_together <= n; i += detail::converted_together)
    detail::widen_block(y + i, x + i);
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}
template <half_number T>
void narrow(T* y, float const* x, index_t n) {
  index_t i = 0;
#if defined(DFDX_RVV)
  for (index_t const w = rvv::lanes(); i < n; i += w) {
    auto const count = static_cast<std::size_t>(n - i < w ? n - i : w);
    rvv::store_half(y + i, 1, rvv::load_part(x + i, 1, count), count);
  }
#endif
  for (; i + detail::converted_together <= n; i += detail::converted_together)
    detail::narrow_block(y + i, x + i);
  for (; i < n; ++i) y[i] = static_cast<T>(x[i]);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
