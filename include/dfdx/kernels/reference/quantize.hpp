// SPDX-License-Identifier: BSL-1.0
// Writing block formats (core/quantized.hpp): rows of floats as blocks. Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <limits>

#include <dfdx/kernels/reference/quantized.hpp>

namespace dfdx {

namespace detail {

inline void put_half(std::byte* p, float x) {
  std::uint16_t const bits = to_half_bits(x);
  std::memcpy(p, &bits, 2);
}
inline std::byte as_byte(int x) { return static_cast<std::byte>(static_cast<unsigned>(x) & 255u); }

// The integer below x + half, at most `top`. The sum is rounded to float on its way: whether a compiler would multiply
// and add in one step must not show in the bytes of a file.
inline int truncated(float x, double half, int top) {
  return std::min(static_cast<int>(static_cast<float>(static_cast<double>(x) + half)), top);
}

// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0, whose rounding is a fact of the format: files are compared by their bytes.
template <Quant F>
void quantize_simple(float const* x, std::byte* out) {
  constexpr bool has_low = F == Quant::q4_1 || F == Quant::q5_1;
  constexpr bool fifth = F == Quant::q5_0 || F == Quant::q5_1;
  constexpr int top = fifth ? 31 : 15;
  float least = x[0], most = x[0], widest = 0;  // widest: of largest size, with its sign
  for (int i = 0; i < 32; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
    if (std::abs(x[i]) > std::abs(widest)) widest = x[i];
  }
  // Without a low end, the number of largest size is the most negative integer, of which there is one more.
  float const scale = F == Quant::q8_0 ? std::abs(widest) / 127.0f
                      : has_low        ? (most - least) / static_cast<float>(top)
                                       : widest / -static_cast<float>(top / 2 + 1);
  float const inverse = std::isfinite(1.0f / scale) ? 1.0f / scale : 0.0f;
  put_half(out, scale);
  if constexpr (has_low) put_half(out + 2, least);
  std::byte* p = out + (has_low ? 4 : 2);
  if constexpr (F == Quant::q8_0) {
    for (int i = 0; i < 32; ++i) p[i] = as_byte(static_cast<int>(std::round(x[i] * inverse)));
  } else {
    int q[32];
    for (int i = 0; i < 32; ++i)
      q[i] = has_low ? truncated((x[i] - least) * inverse, 0.5, top)
                     : truncated(x[i] * inverse, top / 2 + 1.5, top);
    if constexpr (fifth) {
      std::uint32_t high = 0;
      for (int i = 0; i < 32; ++i) high |= static_cast<std::uint32_t>(q[i] >> 4) << i;
      std::memcpy(p, &high, 4);
      p += 4;
    }
    for (int i = 0; i < 16; ++i) p[i] = as_byte((q[i] & 15) | (q[i + 16] & 15) << 4);
  }
}

inline int nearest(float x, int low, int high) {
  return static_cast<int>(std::clamp(std::nearbyint(x), static_cast<float>(low), static_cast<float>(high)));
}

struct ScaleAndLow {
  float scale = 0, low = 0;
};

// What scale and low end q' = low..high are given for the smallest sum of squares: by turns the best integers for the
// numbers (rounding) and the best numbers for the integers (least squares), from several starts. low <= 0 if `affine`,
// else 0, as the formats can store it.
template <int N>
ScaleAndLow fit_group(float const* x, int low, int high, bool affine) {
  float least = 0, most = 0;
  double sx = 0, sxx = 0;
  for (int i = 0; i < N; ++i) {
    least = std::min(least, x[i]), most = std::max(most, x[i]);
    sx += x[i], sxx += double{x[i]} * x[i];
  }
  if (!(most > least)) return {};
  ScaleAndLow best;
  double best_error = std::numeric_limits<double>::infinity();
  auto const attempt = [&](ScaleAndLow s) {
    // Sums side by side, so that a compiler can do them at once.
    float const inverse = 1.0f / s.scale, bottom = static_cast<float>(low), top = static_cast<float>(high);
    constexpr float rounding = 0x1.8p23f;  // a float that large has no places behind the point
    float sums[3][8] = {};
    for (int i = 0; i < N; i += 8)
      for (int k = 0; k < 8; ++k) {
        float const inside = std::min(std::max((x[i + k] - s.low) * inverse, bottom), top);
        float const q = inside + rounding - rounding;
        sums[0][k] += q, sums[1][k] += q * q, sums[2][k] += q * x[i + k];
      }
    double sq = 0, sqq = 0, sxq = 0;
    for (int k = 0; k < 8; ++k) sq += sums[0][k], sqq += sums[1][k], sxq += sums[2][k];
    double const a = s.scale, b = s.low;
    double const error = a * a * sqq + 2 * a * b * sq + N * b * b - 2 * a * sxq - 2 * b * sx + sxx;
    if (error < best_error) best_error = error, best = s;
    double const spread = N * sqq - sq * sq;
    if (affine && spread > 0) {
      double const scale = (N * sxq - sq * sx) / spread, offset = (sx - scale * sq) / N;
      if (offset <= 0) return ScaleAndLow{static_cast<float>(scale), static_cast<float>(offset)};
    }
    return ScaleAndLow{sqq > 0 ? static_cast<float>(sxq / sqq) : 0.0f, 0};
  };
  float const wide = std::abs(least) > most ? least : most;
  for (int k = -3; k <= 2; ++k) {
    ScaleAndLow s;
    float const stretch = 1.0f + 0.04f * static_cast<float>(k);
    if (affine) s = {stretch * (most - least) / static_cast<float>(high), least};
    else s.scale = stretch * wide / static_cast<float>(low);
    for (int step = 0; step < 3 && s.scale != 0 && std::isfinite(1.0f / s.scale); ++step) s = attempt(s);
  }
  return best;
}

inline int k_rounded(float x, float unit, int low, int high) {
  return unit != 0 ? nearest(x / unit, low, high) : 0;
}

// Q4_K and Q5_K.
template <Quant F>
void quantize_k(float const* x, std::byte* out) {
  constexpr int top = F == Quant::q5_k ? 31 : 15;
  ScaleAndLow fit[8];
  float scale = 0, low = 0;
  for (int g = 0; g < 8; ++g) {
    fit[g] = fit_group<32>(x + g * 32, 0, top, true);
    scale = std::max(scale, fit[g].scale);
    low = std::max(low, -fit[g].low);
  }
  std::memset(out, 0, block_bytes(F));
  put_half(out, scale / 63.0f);
  put_half(out + 2, low / 63.0f);
  float const d = half_at(out), dmin = half_at(out + 2);  // as rounded
  std::byte* const packed = out + 4;
  std::byte* const nibbles = out + (F == Quant::q5_k ? 48 : 16);
  for (int g = 0; g < 8; ++g) {
    int const s = k_rounded(fit[g].scale, d, 0, 63), m = k_rounded(-fit[g].low, dmin, 0, 63);
    if (g < 4) {
      packed[g] |= as_byte(s);
      packed[g + 4] |= as_byte(m);
    } else {
      packed[g + 4] |= as_byte((s & 15) | (m & 15) << 4);
      packed[g - 4] |= as_byte(s >> 4 << 6);
      packed[g] |= as_byte(m >> 4 << 6);
    }
    float const unit = d * static_cast<float>(s), offset = dmin * static_cast<float>(m);
    for (int i = 0; i < 32; ++i) {
      int const q = k_rounded(x[g * 32 + i] + offset, unit, 0, top);
      nibbles[g / 2 * 32 + i] |= as_byte((q & 15) << (g % 2 * 4));
      if constexpr (F == Quant::q5_k) out[16 + i] |= as_byte(q >> 4 << g);
    }
  }
}

inline void quantize_q6_k(float const* x, std::byte* out) {
  float scales[16], widest = 0;
  for (int g = 0; g < 16; ++g) {
    scales[g] = fit_group<16>(x + g * 16, -32, 31, false).scale;
    if (std::abs(scales[g]) > std::abs(widest)) widest = scales[g];
  }
  std::memset(out, 0, block_bytes(Quant::q6_k));
  put_half(out + 208, widest / -128.0f);
  float const d = half_at(out + 208);
  for (int g = 0; g < 16; ++g) {
    int const s = k_rounded(scales[g], d, -128, 127);
    out[192 + g] = as_byte(s);
    for (int i = g * 16; i < g * 16 + 16; ++i) {
      int const q = k_rounded(x[i], d * static_cast<float>(s), -32, 31) + 32;
      int const half = i / 128, j = i % 128;
      out[half * 64 + j % 64] |= as_byte((q & 15) << (j / 64 * 4));
      out[128 + half * 32 + j % 32] |= as_byte(q >> 4 << (j / 32 * 2));
    }
  }
}

}  // namespace detail

/// quantize_row - n floats as whole blocks. Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 are rounded as ggml does, byte by byte. The
/// K formats leave the scales to the writer: each group has those of the smallest sum of squares that a few rounds of
/// least squares find, rounded to what the block can store; no weights are more important than others.
/// False if a number is not finite or so large (beyond 65504) that a scale may be; the blocks are of no use then.
inline bool quantize_row(Quant format, float const* x, index_t n, std::byte* out) {
  for (index_t i = 0; i < n; ++i)
    if (!(std::abs(x[i]) <= 65504.0f)) return false;
  dispatch(format, [&](auto f) {
    constexpr Quant F = decltype(f)::value;
    for (; n > 0; n -= block_length(F), x += block_length(F), out += block_bytes(F)) {
      if constexpr (F == Quant::q6_k) detail::quantize_q6_k(x, out);
      else if constexpr (F >= Quant::q4_k) detail::quantize_k<F>(x, out);
      else detail::quantize_simple<F>(x, out);
    }
  });
  return true;
}

/// quantize_groups - n floats in llama2.c's int8 format: in each group the number of largest size becomes 127 or -127,
/// the others are rounded to the nearest, ties to even. False as of quantize_row, but for any finite number.
///
/// Source    karpathy/llama2.c, export.py (version 2)
inline bool quantize_groups(float const* x, index_t n, index_t group, std::byte* q, std::byte* scales) {
  for (index_t begin = 0; begin < n; begin += group) {
    float most = 0;
    for (index_t i = begin; i < begin + group; ++i) {
      if (!std::isfinite(x[i])) return false;
      most = std::max(most, std::abs(x[i]));
    }
    float const scale = most / 127.0f;
    std::memcpy(scales + begin / group * 4, &scale, 4);
    for (index_t i = begin; i < begin + group; ++i)
      q[i] = detail::as_byte(scale != 0 ? detail::nearest(x[i] / scale, -127, 127) : 0);
  }
  return true;
}

}  // namespace dfdx
