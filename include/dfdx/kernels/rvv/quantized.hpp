// SPDX-License-Identifier: BSL-1.0
// Products with rows in the block formats of GGUF files on vectors of any length. Of a block the products are summed as
// integers, 32 numbers at a time, those of the k formats with the whole numbers that scale their groups; the blocks'
// own scales, and what some formats add to each number, follow for as many blocks as a vector has lanes.
#pragma once

#include <cstring>

#include <dfdx/kernels/reference/quantized.hpp>
#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

namespace detail {

/// adds_low - the formats in which a number is scale * q + low. k_format - those of 256 numbers in a block.
template <Quant F>
inline constexpr bool adds_low = F == Quant::q4_1 || F == Quant::q5_1 || F == Quant::q4_k || F == Quant::q5_k;
template <Quant F>
inline constexpr bool k_format = F >= Quant::q4_k;

/// Where a block's scale lies, in numbers of 16 bits.
template <Quant F>
inline constexpr index_t scale_place = F == Quant::q6_k ? 104 : 0;

DFDX_INLINE vuint8m2_t load_bytes(std::byte const* p) {
  return __riscv_vle8_v_u8m2(reinterpret_cast<std::uint8_t const*>(p), 32);
}

/// simple_block - the 32 numbers of a block of formats without groups. Two registers hold 32 bytes even where a vector
/// is of 128 bits.
template <Quant F>
DFDX_INLINE vint8m2_t simple_block(std::byte const* block) {
  if constexpr (F == Quant::q8_0) {
    return __riscv_vreinterpret_i8m2(load_bytes(block + 2));
  } else {
    constexpr bool fifth = F == Quant::q5_0 || F == Quant::q5_1;
    auto const* const after = reinterpret_cast<std::uint8_t const*>(block + (adds_low<F> ? 4 : 2));
    // The lower halves of 16 bytes are the first 16 numbers, the upper ones the others.
    vuint8m1_t const both = __riscv_vle8_v_u8m1(after + (fifth ? 4 : 0), 16);
    vuint8m2_t const first = __riscv_vlmul_ext_u8m2(__riscv_vand(both, 15, 16));
    vuint8m2_t q = __riscv_vslideup(first, __riscv_vlmul_ext_u8m2(__riscv_vsrl(both, 4, 16)), 16, 32);
    if constexpr (fifth) q = __riscv_vor_mu(__riscv_vlm_v_b4(after, 32), q, q, 16, 32);
    vint8m2_t const numbers = __riscv_vreinterpret_i8m2(q);
    if constexpr (adds_low<F>) return numbers;
    else return __riscv_vsub(numbers, fifth ? 16 : 8, 32);
  }
}

/// KScales - the whole numbers that scale the eight groups of q4_k and q5_k, and those by which their minima are. Four
/// bytes at a time; core/quantized.hpp has their places.
struct KScales {
  std::uint8_t scale[8], minimum[8];

  explicit KScales(std::byte const* packed) {
    std::uint32_t w[3];
    std::memcpy(w, packed, 12);
    std::uint32_t const s[] = {w[0] & 0x3f3f3f3fu, (w[2] & 0x0f0f0f0fu) | (w[0] >> 2 & 0x30303030u)};
    std::uint32_t const m[] = {w[1] & 0x3f3f3f3fu, (w[2] >> 4 & 0x0f0f0f0fu) | (w[1] >> 2 & 0x30303030u)};
    std::memcpy(scale, s, 8);
    std::memcpy(minimum, m, 8);
  }
};

/// k_numbers - 32 numbers of a block in a k format: those from 32 r on.
template <Quant F>
DFDX_INLINE vint8m2_t k_numbers(std::byte const* block, index_t r) {
  if constexpr (F == Quant::q6_k) {
    // Of each half of the block the lower halves of 64 bytes are the first 64 numbers, and 32 bytes have their fifth
    // and sixth bits. 32 stands for 0.
    index_t const half = r / 4, part = r % 4;
    vuint8m2_t const four = load_bytes(block + half * 64 + part % 2 * 32),
                     two = load_bytes(block + 128 + half * 32);
    vuint8m2_t const low =
        __riscv_vand(__riscv_vsrl(four, static_cast<std::size_t>(part / 2 * 4), 32), 15, 32);
    vuint8m2_t const high = __riscv_vand(__riscv_vsrl(two, static_cast<std::size_t>(part * 2), 32), 3, 32);
    vuint8m2_t const q = __riscv_vor(low, __riscv_vsll(high, 4, 32), 32);
    return __riscv_vsub(__riscv_vreinterpret_i8m2(q), 32, 32);
  } else {
    // Of 32 bytes the lower halves are one group, the upper halves the next; bit r of other 32 is the fifth.
    vuint8m2_t const both = load_bytes(block + (F == Quant::q5_k ? 48 : 16) + r / 2 * 32);
    vuint8m2_t q = r % 2 == 0 ? __riscv_vand(both, 15, 32) : __riscv_vsrl(both, 4, 32);
    if constexpr (F == Quant::q5_k) {
      vuint8m2_t const bit =
          __riscv_vand(__riscv_vsrl(load_bytes(block + 16), static_cast<std::size_t>(r), 32), 1, 32);
      q = __riscv_vor(q, __riscv_vsll(bit, 4, 32), 32);
    }
    return __riscv_vreinterpret_i8m2(q);
  }
}

/// k_block - to[r * row] = the sum of scale[g] q[i] x[r][i] over a block of 256 numbers, low[r * row] = that of what
/// its minima are multiplied with, for one or two rows.
template <Quant F, int Rows>
DFDX_INLINE void k_block(std::byte const* block, Q8Block<256> const* x, index_t x_row, std::int32_t* to,
                         std::int32_t* low, index_t row) {
  static_assert(Rows == 1 || Rows == 2);
  vint32m1_t const zero = __riscv_vmv_s_x_i32m1(0, 1);
  vint32m8_t first = __riscv_vmv_v_x_i32m8(0, 32), second = first;
  auto const add_to = [&](auto const& scale, vint8m2_t w, index_t r) DFDX_INLINE_LAMBDA {
    first = __riscv_vwmacc(first, scale, __riscv_vwmul(w, __riscv_vle8_v_i8m2(x->q + r * 32, 32), 32), 32);
    if constexpr (Rows == 2)
      second = __riscv_vwmacc(second, scale,
                              __riscv_vwmul(w, __riscv_vle8_v_i8m2(x[x_row].q + r * 32, 32), 32), 32);
  };
  if constexpr (F == Quant::q6_k) {
    auto const* const scales = reinterpret_cast<std::int8_t const*>(block + 192);
    for (index_t r = 0; r < 8; ++r) {  // two groups of 16 each
      vint16m4_t const both = __riscv_vmv_v_x_i16m4(scales[2 * r + 1], 32);
      add_to(__riscv_vmv_v_x_i16m4_tu(both, scales[2 * r], 16), k_numbers<F>(block, r), r);
    }
  } else {
    KScales const scales(block + 4);
    for (index_t r = 0; r < 8; ++r)
      add_to(static_cast<std::int16_t>(scales.scale[r]), k_numbers<F>(block, r), r);
    // The sums of x are of 16 numbers, two in a group.
    vuint8m1_t const twice = __riscv_vrgather(__riscv_vle8_v_u8m1(scales.minimum, 8),
                                              __riscv_vsrl(__riscv_vid_v_u8m1(16), 1, 16), 16);
    vint16m2_t const minima = __riscv_vreinterpret_i16m2(__riscv_vzext_vf2(twice, 16));
    for (int i = 0; i < Rows; ++i) {
      vint32m4_t const products = __riscv_vwmul(minima, __riscv_vle16_v_i16m2(x[i * x_row].sums, 16), 16);
      __riscv_vse32(low + i * row, __riscv_vredsum(products, zero, 16), 1);
    }
  }
  __riscv_vse32(to, __riscv_vredsum(first, zero, 32), 1);
  if constexpr (Rows == 2) __riscv_vse32(to + row, __riscv_vredsum(second, zero, 32), 1);
}

/// add_block - the same sums of a block of any format, for the rows r of x. They go to memory as they are, for all of
/// them are needed together.
template <Quant F, int Rows>
DFDX_INLINE void add_block(std::byte const* block, Q8Block<q8_length(F)> const* x, index_t x_row,
                           std::int32_t* to, std::int32_t* low, index_t row) {
  if constexpr (k_format<F>) {
    k_block<F, Rows>(block, x, x_row, to, low, row);
  } else {
    vint32m1_t const zero = __riscv_vmv_s_x_i32m1(0, 1);
    vint8m2_t const w = simple_block<F>(block);
    for (int r = 0; r < Rows; ++r, x += x_row) {
      vint16m4_t const products = __riscv_vwmul(w, __riscv_vle8_v_i8m2(x->q, 32), 32);
      __riscv_vse32(to + r * row, __riscv_vwredsum(products, zero, 32), 1);
      if constexpr (adds_low<F>) low[r * row] = x->sums[0] + x->sums[1];
    }
  }
}

}  // namespace detail

/// quantized_rows - how many rows x are multiplied with a quantized one together.
template <Quant F>
inline constexpr int quantized_rows = detail::k_format<F> ? 2 : 4;

/// quantized_dots - y[r * y_row] = the products of a quantized row with the rows x + r * x_row, of n numbers each.
template <Quant F, int Rows>
void quantized_dots(std::byte const* row, Q8Block<q8_length(F)> const* x, index_t x_row, index_t n, float* y,
                    index_t y_row) {
  using Other = Q8Block<q8_length(F)>;
  static_assert(sizeof(Other) % sizeof(float) == 0 && block_bytes(F) % 2 == 0);
  constexpr index_t most = 64, bytes = static_cast<index_t>(block_bytes(F));
  constexpr auto x_step = static_cast<index_t>(sizeof(Other) / sizeof(float));
  std::int32_t sums[Rows * most], lows[detail::adds_low<F> ? Rows * most : 1];
  float total[Rows] = {};
  index_t const blocks = n / block_length(F), together = lanes() < most ? lanes() : most;
  for (index_t b = 0; b < blocks; b += together) {
    index_t const count = blocks - b < together ? blocks - b : together;
    std::byte const* const first = row + b * bytes;
    for (index_t i = 0; i < count; ++i)
      detail::add_block<F, Rows>(first + i * bytes, x + b + i, x_row, sums + i,
                                 lows + (detail::adds_low<F> ? i : 0), most);
    auto const part = static_cast<std::size_t>(count);
    auto const* const halves = reinterpret_cast<float16 const*>(first);
    Floats const scales = load_half(halves + detail::scale_place<F>, bytes / 2, part);
    Floats low = scales;
    if constexpr (detail::adds_low<F>) low = load_half(halves + 1, bytes / 2, part);
    for (int r = 0; r < Rows; ++r) {
      Floats of_blocks =
          __riscv_vfmul(__riscv_vfcvt_f(load_part(sums + r * most, 1, part), part), scales, part);
      if constexpr (detail::adds_low<F>) {
        Floats const added = __riscv_vfcvt_f(load_part(lows + r * most, 1, part), part);
        if constexpr (detail::k_format<F>) of_blocks = __riscv_vfnmsac(of_blocks, added, low, part);
        else of_blocks = __riscv_vfmacc(of_blocks, added, low, part);
      }
      Floats const scaled = __riscv_vfmul(of_blocks, load_part(&x[b + r * x_row].scale, x_step, part), part);
      vfloat32m1_t const before = __riscv_vfmv_s_f_f32m1(total[r], 1);
      total[r] = __riscv_vfmv_f(__riscv_vfredusum(scaled, before, part));
    }
  }
  for (int r = 0; r < Rows; ++r) y[r * y_row] = total[r];
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
