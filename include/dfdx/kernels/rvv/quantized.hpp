// SPDX-License-Identifier: BSL-1.0
// Products with rows in the block formats of GGUF files on vectors of any length: those of q8_0 and q4_0, whose blocks
// are 32 numbers of 8 or 4 bits with one scale. Of a block the products are summed as integers. The other formats have
// no kernel here.
#pragma once

#include <dfdx/kernels/reference/quantized.hpp>
#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

namespace detail {

/// add_block - to[r * to_row] = the sum of q[i] x[r][i] over a block, for the rows r of x. Two groups of registers hold
/// 32 bytes even where a vector is of 128 bits; the sums go to memory as they are, for all of them are needed together.
template <Quant F, int Rows>
DFDX_INLINE void add_block(std::byte const* numbers, Q8Block<32> const* x, index_t x_row, std::int32_t* to,
                           index_t to_row) {
  vint32m1_t const zero = __riscv_vmv_s_x_i32m1(0, 1);
  if constexpr (F == Quant::q8_0) {
    vint8m2_t const w = __riscv_vle8_v_i8m2(reinterpret_cast<std::int8_t const*>(numbers), 32);
    for (int r = 0; r < Rows; ++r, x += x_row) {
      vint16m4_t const products = __riscv_vwmul(w, __riscv_vle8_v_i8m2(x->q, 32), 32);
      __riscv_vse32(to + r * to_row, __riscv_vwredsum(products, zero, 32), 1);
    }
  } else {
    // The lower halves of 16 bytes are the first 16 numbers, the upper ones the others; 8 stands for 0.
    vuint8m1_t const w = __riscv_vle8_v_u8m1(reinterpret_cast<std::uint8_t const*>(numbers), 16);
    vint8m1_t const first = __riscv_vsub(__riscv_vreinterpret_i8m1(__riscv_vand(w, 15, 16)), 8, 16);
    vint8m1_t const second = __riscv_vsub(__riscv_vreinterpret_i8m1(__riscv_vsrl(w, 4, 16)), 8, 16);
    for (int r = 0; r < Rows; ++r, x += x_row) {
      vint16m2_t products = __riscv_vwmul(first, __riscv_vle8_v_i8m1(x->q, 16), 16);
      products = __riscv_vwmacc(products, second, __riscv_vle8_v_i8m1(x->q + 16, 16), 16);
      __riscv_vse32(to + r * to_row, __riscv_vwredsum(products, zero, 16), 1);
    }
  }
}

}  // namespace detail

/// has_quantized_dots - the formats that quantized_dots knows.
template <Quant F>
inline constexpr bool has_quantized_dots = F == Quant::q8_0 || F == Quant::q4_0;

/// quantized_dots - y[r * y_row] = the products of a quantized row with the rows x + r * x_row, of n numbers each. The
/// sums of as many blocks as a vector has lanes are multiplied with their scales together.
template <Quant F, int Rows>
void quantized_dots(std::byte const* row, Q8Block<32> const* x, index_t x_row, index_t n, float* y,
                    index_t y_row) {
  static_assert(has_quantized_dots<F> && sizeof(Q8Block<32>) % sizeof(float) == 0 && block_bytes(F) % 2 == 0);
  constexpr index_t most = 64, bytes = static_cast<index_t>(block_bytes(F));
  constexpr auto x_step = static_cast<index_t>(sizeof(Q8Block<32>) / sizeof(float));
  std::int32_t sums[Rows * most];
  float total[Rows] = {};
  index_t const blocks = n / 32, together = lanes() < most ? lanes() : most;
  for (index_t b = 0; b < blocks; b += together) {
    index_t const count = blocks - b < together ? blocks - b : together;
    std::byte const* const first = row + b * bytes;
    for (index_t i = 0; i < count; ++i)
      detail::add_block<F, Rows>(first + i * bytes + 2, x + b + i, x_row, sums + i, most);
    auto const part = static_cast<std::size_t>(count);
    Floats const scales = load_half(reinterpret_cast<float16 const*>(first), bytes / 2, part);
    for (int r = 0; r < Rows; ++r) {
      Floats const products = __riscv_vfcvt_f(load_part(sums + r * most, 1, part), part);
      Floats const scaled = __riscv_vfmul(scales, load_part(&x[b + r * x_row].scale, x_step, part), part);
      vfloat32m1_t const before = __riscv_vfmv_s_f_f32m1(total[r], 1);
      total[r] = __riscv_vfmv_f(__riscv_vfredusum(__riscv_vfmul(products, scaled, part), before, part));
    }
  }
  for (int r = 0; r < Rows; ++r) y[r * y_row] = total[r];
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
