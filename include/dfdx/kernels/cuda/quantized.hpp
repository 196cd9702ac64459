// SPDX-License-Identifier: BSL-1.0
// Blocks of small integers on devices: 32 numbers at a time as words of four integers, from the planes of a matrix
// (core/quantized_planes.hpp), and rows of floats quantized to be multiplied with them.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include <dfdx/core/quantized_planes.hpp>
#include <dfdx/kernels/cuda/lanes.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// Group - 32 numbers that follow each other: number i is scale[i / 16] q[i] + low, q four to a word.
struct Group {
  std::uint32_t q[8];
  float scale[2], low;
};

namespace detail {

DFDX_INLINE float half_at(std::byte const* p) {
  return static_cast<float>(*reinterpret_cast<float16 const*>(p));
}
DFDX_INLINE int byte_at(std::byte const* p, int i) { return static_cast<int>(p[i]); }
// Four bytes, none of which is above 127, each less `by`.
DFDX_INLINE std::uint32_t less(std::uint32_t bytes, std::uint32_t by) {
  return ((bytes | 0x80808080u) - by * 0x01010101u) ^ 0x80808080u;
}
// Bits 0 to 3 as the fifth bits of four bytes.
DFDX_INLINE std::uint32_t fifth_bits(std::uint32_t bits) {
  return (bits & 1) << 4 | (bits & 2) << 11 | (bits & 4) << 18 | (bits & 8) << 25;
}

}  // namespace detail

/// BlockPlanes - the planes of a matrix of `blocks` blocks.
template <Quant F>
struct BlockPlanes {
  std::byte const* base = nullptr;
  index_t blocks = 0;

  /// The numbers 32 i and on.
  DFDX_INLINE Group group(index_t i) const {
    Group r;
    if constexpr (F == Quant::q6_k) six_bits(r, i);
    else if constexpr (F >= Quant::q4_k) four_or_five_bits(r, i);
    else simple(r, i);
    return r;
  }

 private:
  // plane_at, of a part known to the compiler: a table that is indexed by threads would be in their own memory.
  template <int P>
  static constexpr index_t bytes_of = block_parts(F).bytes[P];
  template <int P>
  DFDX_INLINE index_t plane() const {
    if constexpr (P == 0) return 0;
    else return plane<P - 1>() + (bytes_of<P - 1> * blocks + 255) / 256 * 256;
  }
  template <int P>
  DFDX_INLINE std::byte const* part(index_t block) const {
    return base + plane<P>() + block * bytes_of<P>;
  }
  // 16 bytes to 4 words.
  static DFDX_INLINE void read(std::byte const* from, std::uint32_t* to) {
    uint4 const v = *reinterpret_cast<uint4 const*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }

  DFDX_INLINE void simple(Group& r, index_t i) const {
    constexpr bool has_low = F == Quant::q4_1 || F == Quant::q5_1,
                   fifth = F == Quant::q5_0 || F == Quant::q5_1;
    constexpr std::uint32_t offset = F == Quant::q4_0 ? 8 : F == Quant::q5_0 ? 16 : 0;
    r.scale[0] = r.scale[1] = detail::half_at(part<0>(i));
    r.low = has_low ? detail::half_at(part<0>(i) + 2) : 0.0f;
    if constexpr (F == Quant::q8_0) {
      read(part<1>(i), r.q), read(part<1>(i) + 16, r.q + 4);
    } else {
      std::uint32_t halves[4], high = 0;
      read(part<fifth ? 2 : 1>(i), halves);
      if constexpr (fifth) high = *reinterpret_cast<std::uint32_t const*>(part<1>(i));
      DFDX_UNROLL for (int k = 0; k < 4; ++k) {
        r.q[k] = halves[k] & 0x0f0f0f0fu;
        r.q[k + 4] = halves[k] >> 4 & 0x0f0f0f0fu;
        if constexpr (fifth) {
          r.q[k] |= detail::fifth_bits(high >> (4 * k));
          r.q[k + 4] |= detail::fifth_bits(high >> (16 + 4 * k));
        }
        if constexpr (offset != 0) {
          r.q[k] = detail::less(r.q[k], offset);
          r.q[k + 4] = detail::less(r.q[k + 4], offset);
        }
      }
    }
  }
  DFDX_INLINE void four_or_five_bits(Group& r, index_t i) const {
    index_t const block = i / 8;
    int const g = static_cast<int>(i % 8);
    std::byte const *const p = part<0>(block), *const packed = p + 4;
    int const low4 = g < 4 ? 0 : detail::byte_at(packed, g + 4);
    int const scale =
        g < 4 ? detail::byte_at(packed, g) & 63 : (low4 & 15) | (detail::byte_at(packed, g - 4) >> 6) << 4;
    int const minimum =
        g < 4 ? detail::byte_at(packed, g + 4) & 63 : low4 >> 4 | (detail::byte_at(packed, g) >> 6) << 4;
    r.scale[0] = r.scale[1] = detail::half_at(p) * static_cast<float>(scale);
    r.low = -(detail::half_at(p + 2) * static_cast<float>(minimum));
    std::byte const* const nibbles = part < F == Quant::q5_k ? 2 : 1 > (block) + g / 2 * 32;
    read(nibbles, r.q), read(nibbles + 16, r.q + 4);
    std::uint32_t high[8] = {};
    if constexpr (F == Quant::q5_k) read(part<1>(block), high), read(part<1>(block) + 16, high + 4);
    DFDX_UNROLL for (int k = 0; k < 8; ++k) {
      r.q[k] = r.q[k] >> (g % 2 * 4) & 0x0f0f0f0fu;
      if constexpr (F == Quant::q5_k) r.q[k] |= (high[k] >> g & 0x01010101u) << 4;
    }
  }
  DFDX_INLINE void six_bits(Group& r, index_t i) const {
    index_t const block = i / 8;
    int const half = static_cast<int>(i % 8) / 4, j = static_cast<int>(i % 4);
    std::byte const *const four = part<0>(block) + half * 64 + j % 2 * 32, *const two =
                                                                               part<1>(block) + half * 32;
    std::uint32_t high[8];
    read(four, r.q), read(four + 16, r.q + 4);
    read(two, high), read(two + 16, high + 4);
    DFDX_UNROLL for (int k = 0; k < 8; ++k) {
      std::uint32_t const bits = high[k] >> (j * 2) & 0x03030303u;
      r.q[k] = detail::less((r.q[k] >> (j / 2 * 4) & 0x0f0f0f0fu) | bits << 4, 32);
    }
    float const d = detail::half_at(part<3>(block));
    DFDX_UNROLL for (int k = 0; k < 2; ++k) {
      auto const scale = static_cast<std::int8_t>(part<2>(block)[static_cast<int>(i % 8) * 2 + k]);
      r.scale[k] = d * static_cast<float>(scale);
    }
    r.low = 0;
  }
};

/// ByteRows - rows of floats as integers of 8 bits: number i of a row is scales[i / 32] q[i]; sums are those of 32 q.
struct ByteRows {
  std::uint32_t const* q = nullptr;
  float const* scales = nullptr;
  std::int32_t const* sums = nullptr;
};

/// dot - 32 numbers of a matrix and of a row: of integers, and then of two scales.
template <Quant F>
DFDX_INLINE float dot(Group const& a, std::uint32_t const (&b)[8], float scale, std::int32_t sum) {
  std::int32_t first = 0, second = 0;
  DFDX_UNROLL for (int k = 0; k < 4; ++k) {
    first = dot4(a.q[k], b[k], first);
    second = dot4(a.q[k + 4], b[k + 4], second);
  }
  float r;
  if constexpr (F == Quant::q6_k)
    r = a.scale[0] * static_cast<float>(first) + a.scale[1] * static_cast<float>(second);
  else r = a.scale[0] * static_cast<float>(first + second);
  if constexpr (F == Quant::q4_1 || F == Quant::q5_1 || F == Quant::q4_k || F == Quant::q5_k)
    r += a.low * static_cast<float>(sum);
  return scale * r;
}

/// ToBytes - quantizes rows of floats, as quantize_q8<Span> does (kernels/reference/quantized.hpp): of each Span
/// numbers the one of largest size becomes 127 or -127. A warp for each Span.
struct ToBytesArguments {
  float const* x = nullptr;
  std::int8_t* q = nullptr;
  float* scales = nullptr;
  std::int32_t* sums = nullptr;
  index_t spans = 0;
};
template <int Span>
struct ToBytes {
  static constexpr int threads = 256, warps = threads / warp_size, each = Span / warp_size;

  static DFDX_INLINE void run(ToBytesArguments const& x) {
    int const lane = thread() % warp_size;
    for (index_t s = block() * warps + thread() / warp_size; s < x.spans; s += blocks() * warps) {
      index_t const at = s * Span + lane * each;
      float v[each], most = 0;
      DFDX_UNROLL for (int i = 0; i < each; ++i) {
        v[i] = x.x[at + i];
        most = std::fmax(most, std::fabs(v[i]));
      }
      for (int m = warp_size / 2; m > 0; m /= 2) most = std::fmax(most, exchanged(most, m));
      float const scale = most / 127.0f, turned = 1.0f / scale;
      float const inverse = turned <= std::numeric_limits<float>::max() ? turned : 0.0f;
      std::int32_t sum = 0;
      DFDX_UNROLL for (int i = 0; i < each; ++i) {
        float const y = std::nearbyint(v[i] * inverse);
        // What is not a number is none of these.
        auto const q = static_cast<std::int8_t>(y > 127.0f     ? 127.0f
                                                : y > -127.0f  ? y
                                                : y <= -127.0f ? -127.0f
                                                               : 0.0f);
        x.q[at + i] = q;
        sum += q;
      }
      constexpr int together = warp_size * warp_size / Span;  // lanes of 32 numbers
      for (int m = together / 2; m > 0; m /= 2) sum += exchanged(sum, m);
      if (lane % together == 0) {
        x.scales[at / 32] = scale;
        x.sums[at / 32] = sum;
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
