// SPDX-License-Identifier: BSL-1.0
// Block formats: numbers stored as small integers with a scale for each few. Names and sizes only; reading, writing and
// computing with them: kernels/reference/quantized.hpp and quantize.hpp. Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dfdx/core/shape.hpp>

namespace dfdx {

/// Quant - the block formats of GGUF files that the library reads, writes and computes with. A number is scale * q,
/// or scale * q + low; what a block consists of, in the order of its bytes, the f16 and the words little-endian:
///
///   q4_0   f16 scale; 32 x 4 bits, q - 8                       q4_k   f16 d, dmin; 8 x (6 bits, 6 bits); 256 x 4 bits
///   q4_1   f16 scale, low; 32 x 4 bits                         q5_k   the same, with the fifth bits before the four
///   q5_0   f16 scale; 32 fifth bits; 32 x 4 bits, q - 16       q6_k   256 x 4 bits; 256 x 2 bits, q - 32;
///   q5_1   f16 scale, low; 32 fifth bits; 32 x 4 bits                 16 x i8; f16 d
///   q8_0   f16 scale; 32 x i8
///
/// Source    the GGUF specification and the block layouts of ggml (docs/gguf.md, ggml-common.h)
enum class Quant : std::uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

inline constexpr int quant_count = 8;

/// block_length - the numbers in a block. A row of a tensor is whole blocks.
constexpr index_t block_length(Quant f) { return f < Quant::q4_k ? 32 : 256; }

/// block_bytes - the bytes of a block.
constexpr std::size_t block_bytes(Quant f) {
  constexpr std::size_t bytes[quant_count] = {18, 20, 22, 24, 34, 144, 176, 210};
  return bytes[static_cast<int>(f)];
}

/// group_length - the numbers in a block that share a scale.
constexpr index_t group_length(Quant f) { return f == Quant::q6_k ? 16 : 32; }

constexpr char const* name_of(Quant f) {
  constexpr char const* names[quant_count] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"};
  return names[static_cast<int>(f)];
}

/// Q8Block - N numbers of a row that a quantized row is multiplied with: scale * q each. `sums` are those of 16 of q
/// each, for the formats that add a number to each group.
template <int N>
struct Q8Block {
  float scale;
  std::int16_t sums[N / 16];
  std::int8_t q[N];
};

/// dispatch - calls f(std::integral_constant<Quant, Q>{}) with a format that is known at run time only.
template <class F>
constexpr decltype(auto) dispatch(Quant q, F&& f) {
  switch (q) {
    case Quant::q4_0: return f(std::integral_constant<Quant, Quant::q4_0>{});
    case Quant::q4_1: return f(std::integral_constant<Quant, Quant::q4_1>{});
    case Quant::q5_0: return f(std::integral_constant<Quant, Quant::q5_0>{});
    case Quant::q5_1: return f(std::integral_constant<Quant, Quant::q5_1>{});
    case Quant::q8_0: return f(std::integral_constant<Quant, Quant::q8_0>{});
    case Quant::q4_k: return f(std::integral_constant<Quant, Quant::q4_k>{});
    case Quant::q5_k: return f(std::integral_constant<Quant, Quant::q5_k>{});
    default: return f(std::integral_constant<Quant, Quant::q6_k>{});
  }
}

}  // namespace dfdx
