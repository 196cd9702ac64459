// SPDX-License-Identifier: BSL-1.0
// Reading block formats (core/quantized.hpp), and the product of a quantized row with one of numbers, in plain loops:
// what the fast kernels are compared with. Writing them: quantize.hpp. Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/quantized.hpp>

namespace dfdx {

namespace detail {

// Rows may begin anywhere in a file, so that nothing is read as what it is.
inline unsigned byte_at(std::byte const* p, index_t i) { return static_cast<unsigned>(p[i]); }
inline float half_at(std::byte const* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, 2);
  return from_half_bits(bits);
}

// The six bits each of a group's scale and of its minimum: of the first four groups the low bits of bytes 0-3 and 4-7;
// of the others four bits in bytes 8-11, and the two above them on top of bytes 0-3 and 4-7.
constexpr int k_scale(std::uint8_t const* packed, int group) {
  if (group < 4) return packed[group] & 63;
  return (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
}
constexpr int k_minimum(std::uint8_t const* packed, int group) {
  if (group < 4) return packed[group + 4] & 63;
  return packed[group + 4] >> 4 | (packed[group] >> 6) << 4;
}

}  // namespace detail

/// UnpackedBlock - a block as integers: number i is scale[g] * q[i] + low[g], g = i / group_length(F).
template <Quant F>
struct UnpackedBlock {
  static constexpr int length = static_cast<int>(block_length(F)), group = static_cast<int>(group_length(F));
  std::int8_t q[length];
  float scale[length / group], low[length / group];

  explicit UnpackedBlock(std::byte const* block) {
    if constexpr (F == Quant::q6_k) six_bits(block);
    else if constexpr (F >= Quant::q4_k) four_or_five_bits(block);
    else simple(block);
  }

 private:
  void set(int i, unsigned value, int offset) {
    q[i] = static_cast<std::int8_t>(static_cast<int>(value) - offset);
  }

  void simple(std::byte const* p) {
    constexpr bool has_low = F == Quant::q4_1 || F == Quant::q5_1;
    constexpr bool fifth = F == Quant::q5_0 || F == Quant::q5_1;
    constexpr int offset = F == Quant::q4_0 ? 8 : F == Quant::q5_0 ? 16 : 0;
    scale[0] = detail::half_at(p);
    low[0] = has_low ? detail::half_at(p + 2) : 0.0f;
    p += has_low ? 4 : 2;
    if constexpr (F == Quant::q8_0) {
      std::memcpy(q, p, 32);
    } else {
      std::uint32_t high = 0;
      if constexpr (fifth) {
        std::memcpy(&high, p, 4);
        p += 4;
      }
      // The low halves of the bytes are the first 16 numbers, the high halves the others.
      for (int i = 0; i < 16; ++i) {
        set(i, (detail::byte_at(p, i) & 15) | (high >> i & 1) << 4, offset);
        set(i + 16, detail::byte_at(p, i) >> 4 | (high >> (i + 16) & 1) << 4, offset);
      }
    }
  }

  // Groups by pairs: of 32 bytes the low halves are one group, the high halves the next. Bit g of byte i is the fifth
  // one of number i of group g.
  void four_or_five_bits(std::byte const* p) {
    float const d = detail::half_at(p), dmin = detail::half_at(p + 2);
    std::uint8_t packed[12];
    std::memcpy(packed, p + 4, 12);
    std::byte const* const fifth = p + 16;
    std::byte const* const nibbles = p + (F == Quant::q5_k ? 48 : 16);
    for (int g = 0; g < 8; ++g) {
      scale[g] = d * static_cast<float>(detail::k_scale(packed, g));
      low[g] = -(dmin * static_cast<float>(detail::k_minimum(packed, g)));
      for (int i = 0; i < 32; ++i) {
        unsigned value = detail::byte_at(nibbles, g / 2 * 32 + i) >> (g % 2 * 4) & 15;
        if constexpr (F == Quant::q5_k) value |= (detail::byte_at(fifth, i) >> g & 1) << 4;
        set(g * 32 + i, value, 0);
      }
    }
  }

  // Halves of 128 numbers: 64 bytes whose low halves are the first 64 and whose high halves the others, and 32 bytes
  // of which each has the upper bits of four numbers that are 32 apart.
  void six_bits(std::byte const* p) {
    float const d = detail::half_at(p + 208);
    for (int i = 0; i < 256; ++i) {
      int const half = i / 128, j = i % 128;
      unsigned const four = detail::byte_at(p, half * 64 + j % 64) >> (j / 64 * 4) & 15;
      unsigned const two = detail::byte_at(p, 128 + half * 32 + j % 32) >> (j / 32 * 2) & 3;
      set(i, four | two << 4, 32);
    }
    for (int g = 0; g < 16; ++g) {
      scale[g] = d * static_cast<float>(static_cast<std::int8_t>(detail::byte_at(p, 192 + g)));
      low[g] = 0;
    }
  }
};

/// dequantize_row - n numbers of whole blocks as floats.
inline void dequantize_row(Quant format, std::byte const* row, index_t n, float* out) {
  dispatch(format, [&](auto f) {
    constexpr Quant F = decltype(f)::value;
    for (; n > 0; n -= block_length(F), row += block_bytes(F), out += block_length(F)) {
      UnpackedBlock<F> const b(row);
      for (int i = 0; i < b.length; ++i)
        out[i] = b.scale[i / b.group] * static_cast<float>(b.q[i]) + b.low[i / b.group];
    }
  });
}

/// dequantize_groups - n numbers of a tensor in llama2.c's own int8 format: number i is q[i] * scales[i / group].
///
/// Source    karpathy/llama2.c, export.py (version 2)
inline void dequantize_groups(std::byte const* q, std::byte const* scales, index_t group, index_t n,
                              float* out) {
  for (index_t i = 0; i < n; ++i) {
    float scale;
    std::memcpy(&scale, scales + i / group * 4, 4);
    out[i] = static_cast<float>(static_cast<std::int8_t>(q[i])) * scale;
  }
}

/// groups_dot - the product of n numbers of such a tensor, from `first` on, with floats. A row of a tensor need not
/// begin where a group does.
inline float groups_dot(std::byte const* q, std::byte const* scales, index_t group, index_t first, index_t n,
                        float const* x) {
  float sum = 0;
  for (index_t i = first, end = first + n; i < end;) {
    index_t const stop = std::min(end, i / group * group + group);
    float scale, of_group = 0;
    std::memcpy(&scale, scales + i / group * 4, 4);
    for (; i < stop; ++i) of_group += static_cast<float>(static_cast<std::int8_t>(q[i])) * x[i - first];
    sum += scale * of_group;
  }
  return sum;
}

/// q8_length - how many numbers share a scale in the other factor of a product with a row of that format.
constexpr int q8_length(Quant f) { return f < Quant::q4_k ? 32 : 256; }

/// quantize_q8 - a row as the other factor: in each N numbers the one of largest size becomes 127 or -127, the others
/// are rounded to the nearest, ties to even. Of no use with numbers that are not finite; NaN becomes 0.
template <int N>
void quantize_q8(float const* x, index_t n, Q8Block<N>* out) {
  for (; n > 0; n -= N, x += N, ++out) {
    float most = 0;
    for (int i = 0; i < N; ++i) most = std::max(most, std::abs(x[i]));
    float const scale = most / 127.0f, inverse = std::isfinite(1.0f / scale) ? 1.0f / scale : 0.0f;
    out->scale = scale;
    for (int i = 0; i < N; ++i) {
      float const y = std::nearbyint(x[i] * inverse);
      out->q[i] = static_cast<std::int8_t>(y == y ? std::clamp(y, -127.0f, 127.0f) : 0.0f);
    }
    for (int g = 0; g < N / 16; ++g) {
      int sum = 0;
      for (int i = 0; i < 16; ++i) sum += out->q[g * 16 + i];
      out->sums[g] = static_cast<std::int16_t>(sum);
    }
  }
}

/// quantized_dot - the product of a row of n numbers in format F with one from quantize_q8<q8_length(F)>: sums of
/// integers within each group, floats between groups.
template <Quant F>
float quantized_dot(std::byte const* row, Q8Block<q8_length(F)> const* other, index_t n) {
  float sum = 0;
  for (; n > 0; n -= block_length(F), row += block_bytes(F), ++other) {
    UnpackedBlock<F> const b(row);
    float of_block = 0;
    for (int g = 0; g < b.length / b.group; ++g) {
      int products = 0, numbers = 0;
      for (int i = g * b.group; i < (g + 1) * b.group; ++i) products += b.q[i] * other->q[i];
      for (int i = g * b.group; i < (g + 1) * b.group; i += 16) numbers += other->sums[i / 16];
      of_block += b.scale[g] * static_cast<float>(products) + b.low[g] * static_cast<float>(numbers);
    }
    sum += other->scale * of_block;
  }
  return sum;
}

}  // namespace dfdx
