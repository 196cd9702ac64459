// SPDX-License-Identifier: BSL-1.0
// 16-bit numbers as f32 and back, many at a time.
#pragma once

#include <bit>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/kernels/rvv/vectors.hpp>
#include <dfdx/kernels/simd/batch.hpp>

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
