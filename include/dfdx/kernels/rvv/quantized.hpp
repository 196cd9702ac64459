// SPDX-License-Identifier: BSL-1.0
// Products with rows in the block formats of GGUF files on vectors of any length: those of q8_0 and q4_0, whose blocks
// are 32 numbers of 8 or 4 bits with one scale. Of a block the products are summed as integers.
#pragma once

#include <cstring>

#include <dfdx/kernels/reference/quantized.hpp>
#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// block_products - the sum of q[i] x[i] over a block. Two groups of registers hold 32 bytes even where a vector is of
/// 128 bits.
template <Quant F>
DFDX_INLINE int block_products(std::byte const* numbers, std::int8_t const* x) {
  vint32m1_t const zero = __riscv_vmv_s_x_i32m1(0, 1);
  if constexpr (F == Quant::q8_0) {
    vint8m2_t const w = __riscv_vle8_v_i8m2(reinterpret_cast<std::int8_t const*>(numbers), 32);
    vint16m4_t const products = __riscv_vwmul(w, __riscv_vle8_v_i8m2(x, 32), 32);
    return __riscv_vmv_x(__riscv_vwredsum(products, zero, 32));
  } else {
    // The lower halves of 16 bytes are the first 16 numbers, the upper ones the others; 8 stands for 0.
    vuint8m1_t const w = __riscv_vle8_v_u8m1(reinterpret_cast<std::uint8_t const*>(numbers), 16);
    vint8m1_t const first = __riscv_vsub(__riscv_vreinterpret_i8m1(__riscv_vand(w, 15, 16)), 8, 16);
    vint8m1_t const second = __riscv_vsub(__riscv_vreinterpret_i8m1(__riscv_vsrl(w, 4, 16)), 8, 16);
    vint16m2_t products = __riscv_vwmul(first, __riscv_vle8_v_i8m1(x, 16), 16);
    products = __riscv_vwmacc(products, second, __riscv_vle8_v_i8m1(x + 16, 16), 16);
    return __riscv_vmv_x(__riscv_vwredsum(products, zero, 16));
  }
}

/// quantized_dot - as dfdx::quantized_dot, which serves the other formats.
template <Quant F>
float quantized_dot(std::byte const* row, Q8Block<q8_length(F)> const* x, index_t n) {
  if constexpr (F == Quant::q8_0 || F == Quant::q4_0) {
    float sum = 0;
    for (; n > 0; n -= 32, row += block_bytes(F), ++x) {
      float16 scale;
      std::memcpy(&scale.bits, row, 2);
      auto const products = static_cast<float>(block_products<F>(row + 2, x->q));
      sum += x->scale * (static_cast<float>(scale) * products);
    }
    return sum;
  } else {
    return dfdx::quantized_dot<F>(row, x, n);
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
