// SPDX-License-Identifier: BSL-1.0
// Sums, differences, products and quotients of float16 by processors that compute with them: twice as many at a time as
// floats, without a conversion. The results are those of floats rounded to float16, for a float has 24 digits, two more
// than twice the 11 of a float16: the second rounding then changes nothing (Figueroa, "When is double rounding
// innocuous?", 1995). That is so of one operation; in fused loops numbers stay floats from one to the next.
#pragma once

#include <dfdx/kernels/half.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// HalfOperation - what half_block does.
enum class HalfOperation { none, add, sub, mul, div };

/// has_half_arithmetic - whether half_block has instructions.
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) || (defined(DFDX_RVV) && defined(__riscv_zvfh))
inline constexpr bool has_half_arithmetic = true;
#else
inline constexpr bool has_half_arithmetic = false;
#endif

/// half_block - out[i] = in[0][i] + in[1][i], or another operation, for n float16 each in a row (a MapBlock).
template <HalfOperation What>
void half_block(void* out, void const* const* in, index_t n) {
  auto* const y = static_cast<float16*>(out);
  auto const *const a = static_cast<float16 const*>(in[0]), *const b = static_cast<float16 const*>(in[1]);
  index_t i = 0;
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
  for (; i + 8 <= n; i += 8) {
    float16x8_t const u = vreinterpretq_f16_u16(vld1q_u16(&a[i].bits)),
                      v = vreinterpretq_f16_u16(vld1q_u16(&b[i].bits));
    float16x8_t r;
    if constexpr (What == HalfOperation::add) r = vaddq_f16(u, v);
    else if constexpr (What == HalfOperation::sub) r = vsubq_f16(u, v);
    else if constexpr (What == HalfOperation::mul) r = vmulq_f16(u, v);
    else r = vdivq_f16(u, v);
    vst1q_u16(&y[i].bits, vreinterpretq_u16_f16(r));
  }
#elif defined(DFDX_RVV) && defined(__riscv_zvfh)
  auto const load = [](float16 const* p, std::size_t count) {
    return __riscv_vle16_v_f16m8(reinterpret_cast<_Float16 const*>(p), count);
  };
  for (std::size_t count; i < n; i += static_cast<index_t>(count)) {
    count = __riscv_vsetvl_e16m8(static_cast<std::size_t>(n - i));
    vfloat16m8_t const u = load(a + i, count), v = load(b + i, count);
    vfloat16m8_t r;
    if constexpr (What == HalfOperation::add) r = __riscv_vfadd(u, v, count);
    else if constexpr (What == HalfOperation::sub) r = __riscv_vfsub(u, v, count);
    else if constexpr (What == HalfOperation::mul) r = __riscv_vfmul(u, v, count);
    else r = __riscv_vfdiv(u, v, count);
    __riscv_vse16(reinterpret_cast<_Float16*>(y + i), r, count);
  }
#endif
  for (; i < n; ++i) {
    float const u = a[i], v = b[i];
    if constexpr (What == HalfOperation::add) y[i] = u + v;
    else if constexpr (What == HalfOperation::sub) y[i] = u - v;
    else if constexpr (What == HalfOperation::mul) y[i] = u * v;
    else y[i] = u / v;
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
