// SPDX-License-Identifier: BSL-1.0
//
// quantized - rows of numbers times rows in the block formats of GGUF files (core/quantized.hpp): sums of integers in
// each group, floats between groups. The other factor is quantized to q8 first, once for all rows.
//
// With AVX2 a block is unpacked to bytes in a register and multiplied by the byte instructions, those of VNNI where the
// target has them; other targets run the plain loops of the reference. Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <limits>

#include <dfdx/kernels/reference/quantized.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
namespace detail {

// sums of four products each, u unsigned and s signed, added to sum. Without VNNI a pair of products must fit 16 bits.
DFDX_INLINE __m256i add_products(__m256i sum, __m256i u, __m256i s) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpbusd_epi32(sum, u, s);
#elif defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(sum, u, s);
#else
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
#endif
}
// The same for pairs of 16 bits.
DFDX_INLINE __m256i add_pairs(__m256i sum, __m256i a, __m256i b) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpwssd_epi32(sum, a, b);
#else
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
inline constexpr bool has_vnni = true;
#else
inline constexpr bool has_vnni = false;
#endif

DFDX_INLINE __m256i load_256(void const* p) { return _mm256_loadu_si256(static_cast<__m256i const*>(p)); }
DFDX_INLINE __m256 half_everywhere(std::byte const* p) {
  short bits;
  std::memcpy(&bits, p, 2);
  return _mm256_cvtph_ps(_mm_set1_epi16(bits));
}
// Bytes 16 where a bit is set.
DFDX_INLINE __m256i fifth_bits(std::byte const* p) {
  std::uint32_t bits;
  std::memcpy(&bits, p, 4);
#if defined(__AVX512VL__) && defined(__AVX512BW__)
  return _mm256_maskz_set1_epi8(bits, 16);
#else
  __m256i const from = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  __m256i const bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  __m256i const all = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), from);
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(all, bit), bit), _mm256_set1_epi8(16));
#endif
}
DFDX_INLINE __m256i low_nibbles(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
DFDX_INLINE __m256i high_nibbles(__m256i v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }

DFDX_INLINE float sum_of(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/// Products of R rows in format F with M rows of q8: of block `b` what is to be added to the sums.
template <Quant F, int M, int R>
struct BlockProducts {
  using X = Q8Block<q8_length(F)>;
  static constexpr bool low = F == Quant::q4_1 || F == Quant::q5_1,
                        fifth = F == Quant::q5_0 || F == Quant::q5_1;
  // What is subtracted from the unsigned numbers. q8_0 needs it for VNNI alone: else signs change sides.
  static constexpr int offset = F == Quant::q4_0               ? 8
                                : F == Quant::q5_0             ? 16
                                : F == Quant::q8_0 && has_vnni ? 128
                                                               : 0;

  static DFDX_INLINE __m256i unpacked(std::byte const* p) {
    if constexpr (F == Quant::q8_0) {
      __m256i const q = load_256(p + 2);
      return has_vnni ? _mm256_xor_si256(q, _mm256_set1_epi8(-128)) : q;
    } else {
      constexpr int at = 2 + 2 * low + 4 * fifth;
      __m128i const v = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p + at));
      __m256i const four =
          low_nibbles(_mm256_inserti128_si256(_mm256_castsi128_si256(v), _mm_srli_epi16(v, 4), 1));
      if constexpr (fifth) return _mm256_or_si256(four, fifth_bits(p + 2 + 2 * low));
      else return four;
    }
  }

  static DFDX_INLINE void add(X const* const (&x)[M], std::byte const* const (&w)[R], index_t b,
                              __m256 (&sum)[M][R]) {
    if constexpr (F >= Quant::q4_k) return add_large(x, w, b, sum);
    else {
      __m256i q[R];
      __m256 scale[R], lowest[R];
      DFDX_UNROLL for (int r = 0; r < R; ++r) {
        std::byte const* const p = w[r] + b * static_cast<index_t>(block_bytes(F));
        q[r] = unpacked(p);
        scale[r] = half_everywhere(p);
        if constexpr (low) lowest[r] = half_everywhere(p + 2);
      }
      DFDX_UNROLL for (int m = 0; m < M; ++m) {
        X const& xb = x[m][b];
        __m256i const xs = load_256(xb.q);
        __m256 const x_scale = _mm256_set1_ps(xb.scale);
        // The sum of all of x, in one lane: 16 bits and 16 bits, times -offset or 1.
        __m256i first = _mm256_setzero_si256();
        if constexpr (offset != 0 || low) {
          int pair;
          std::memcpy(&pair, xb.sums, 4);
          first = _mm256_madd_epi16(_mm256_zextsi128_si256(_mm_cvtsi32_si128(pair)),
                                    _mm256_set1_epi16(low ? 1 : -offset));
        }
        [[maybe_unused]] __m256 const of_low = _mm256_mul_ps(x_scale, _mm256_cvtepi32_ps(first));
        if constexpr (low) first = _mm256_setzero_si256();
        DFDX_UNROLL for (int r = 0; r < R; ++r) {
          __m256i dot;
          if constexpr (F == Quant::q8_0 && !has_vnni)
            dot = add_products(first, _mm256_abs_epi8(q[r]), _mm256_sign_epi8(xs, q[r]));
          else dot = add_products(first, q[r], xs);
          sum[m][r] = _mm256_fmadd_ps(_mm256_mul_ps(scale[r], x_scale), _mm256_cvtepi32_ps(dot), sum[m][r]);
          if constexpr (low) sum[m][r] = _mm256_fmadd_ps(lowest[r], of_low, sum[m][r]);
        }
      }
    }
  }

  // Blocks of 256: the integers of groups are multiplied with their scales as integers, so that there is one float a
  // block. Most is 256 * 63 * 127 * 127 < 2^31.
  static DFDX_INLINE void add_large(X const* const (&x)[M], std::byte const* const (&w)[R], index_t b,
                                    __m256 (&sum)[M][R]) {
    for (int r = 0; r < R; ++r) {
      std::byte const* const p = w[r] + b * static_cast<index_t>(block_bytes(F));
      alignas(32) std::int16_t scales[16];  // a group's twice, or one each for groups of 16
      __m256i mins = _mm256_setzero_si256();
      if constexpr (F == Quant::q6_k) {
        mins = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p + 192)));
        _mm256_store_si256(reinterpret_cast<__m256i*>(scales), mins);
      } else {
        mins = six_bit_scales(p + 4, scales);
      }
      __m256i total[M];
      DFDX_UNROLL for (int m = 0; m < M; ++m) total[m] = _mm256_setzero_si256();
      DFDX_UNROLL for (int g = 0; g < 8; ++g) {
        __m256i const q = group(p, g);
        __m256i by;
        if constexpr (F == Quant::q6_k)
          by = _mm256_set_m128i(_mm_set1_epi16(scales[2 * g + 1]), _mm_set1_epi16(scales[2 * g]));
        else by = _mm256_set1_epi16(scales[2 * g]);
        DFDX_UNROLL for (int m = 0; m < M; ++m) {
          __m256i const xs = load_256(x[m][b].q + 32 * g);
          total[m] = add_pairs(total[m], _mm256_maddubs_epi16(q, xs), by);
        }
      }
      __m256 const d = half_everywhere(p + (F == Quant::q6_k ? 208 : 0));
      DFDX_UNROLL for (int m = 0; m < M; ++m) {
        __m256 const x_scale = _mm256_set1_ps(x[m][b].scale);
        __m256i const lows = _mm256_madd_epi16(load_256(x[m][b].sums), mins);
        if constexpr (F == Quant::q6_k) {
          total[m] = _mm256_sub_epi32(total[m], _mm256_slli_epi32(lows, 5));
        } else {
          __m256 const least = _mm256_mul_ps(half_everywhere(p + 2), x_scale);
          sum[m][r] = _mm256_fnmadd_ps(least, _mm256_cvtepi32_ps(lows), sum[m][r]);
        }
        sum[m][r] = _mm256_fmadd_ps(_mm256_mul_ps(d, x_scale), _mm256_cvtepi32_ps(total[m]), sum[m][r]);
      }
    }
  }

  // Numbers 32 g to 32 g + 31 of a block, unsigned.
  static DFDX_INLINE __m256i group(std::byte const* p, int g) {
    if constexpr (F == Quant::q6_k) {
      int const half = g / 4, j = g % 4;
      __m256i const four = load_256(p + half * 64 + j % 2 * 32), two = load_256(p + 128 + half * 32);
      __m256i const low = j < 2 ? low_nibbles(four) : high_nibbles(four);
      __m256i const high =
          _mm256_and_si256(_mm256_srl_epi16(two, _mm_cvtsi32_si128(2 * j)), _mm256_set1_epi8(3));
      return _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
    } else {
      __m256i const v = load_256(p + (F == Quant::q5_k ? 48 : 16) + g / 2 * 32);
      __m256i const four = g % 2 == 0 ? low_nibbles(v) : high_nibbles(v);
      if constexpr (F == Quant::q4_k) return four;
      __m256i const bit = _mm256_srl_epi16(load_256(p + 16), _mm_cvtsi32_si128(g));
      return _mm256_or_si256(four, _mm256_slli_epi16(_mm256_and_si256(bit, _mm256_set1_epi8(1)), 4));
    }
  }
  // 12 bytes of six bits (dfdx::detail::k_scale): scales twice each into memory, the minima likewise as the result.
  static DFDX_INLINE __m256i six_bit_scales(std::byte const* packed, std::int16_t* scales) {
    std::uint32_t w[3];
    std::memcpy(w, packed, 12);
    auto const joined = [&](std::uint32_t first, std::uint32_t last) {
      std::uint32_t const low = first & 0x3f3f3f3fu, high = (last & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u);
      __m128i const v =
          _mm_cvtsi64_si128(static_cast<long long>(low | static_cast<std::uint64_t>(high) << 32));
      return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(v, v));
    };
    _mm256_store_si256(reinterpret_cast<__m256i*>(scales), joined(w[0], w[2]));
    return joined(w[1], w[2] >> 4);
  }
};

template <Quant F, int M, int R>
inline void quantized_tile(index_t k, Q8Block<q8_length(F)> const* x, std::byte const* w, std::size_t w_row,
                           float* y, index_t y_row) {
  index_t const blocks = k / block_length(F);
  Q8Block<q8_length(F)> const* xs[M];
  std::byte const* ws[R];
  __m256 sum[M][R];
  DFDX_UNROLL for (int r = 0; r < R; ++r) ws[r] = w + static_cast<std::size_t>(r) * w_row;
  DFDX_UNROLL for (int m = 0; m < M; ++m) {
    xs[m] = x + m * blocks;
    DFDX_UNROLL for (int r = 0; r < R; ++r) sum[m][r] = _mm256_setzero_ps();
  }
  // The same place of the rows that come next, at least 12 KiB away: rows are short, and side by side none of them is a
  // stream that the processor would see.
  std::size_t const step = R * w_row, ahead = step == 0 ? 0 : (12287 / step + 1) * step;
  for (index_t b = 0; b < blocks; ++b) {
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      auto const* const p =
          reinterpret_cast<char const*>(ws[r]) + static_cast<std::size_t>(b) * block_bytes(F) + ahead;
      for (std::size_t line = 0; line < block_bytes(F); line += 64) __builtin_prefetch(p + line, 0, 2);
    }
    BlockProducts<F, M, R>::add(xs, ws, b, sum);
  }
  DFDX_UNROLL for (int m = 0; m < M; ++m) {
    if constexpr (R == 4) {
      __m256 const s =
          _mm256_hadd_ps(_mm256_hadd_ps(sum[m][0], sum[m][1]), _mm256_hadd_ps(sum[m][2], sum[m][3]));
      _mm_storeu_ps(y + m * y_row, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
    } else {
      DFDX_UNROLL for (int r = 0; r < R; ++r) y[m * y_row + r] = sum_of(sum[m][r]);
    }
  }
}

}  // namespace detail
#endif

/// to_q8 - dfdx::quantize_q8, fast: the same scales and numbers. A number that is not finite makes a scale that is not.
template <int N>
void to_q8(float const* x, index_t n, Q8Block<N>* out) {
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
  __m256 const no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)), top = _mm256_set1_ps(127.0f);
  for (; n > 0; n -= N, x += N, ++out) {
    __m256 most = _mm256_setzero_ps(), odd = most;
    for (int i = 0; i < N; i += 8) {
      __m256 const v = _mm256_loadu_ps(x + i);
      most = _mm256_max_ps(_mm256_and_ps(v, no_sign), most);
      odd = _mm256_or_ps(odd, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    }
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_movehdup_ps(m));
    float const scale = _mm_cvtss_f32(m) / 127.0f;
    float const inverse = std::isfinite(1.0f / scale) ? 1.0f / scale : 0.0f;
    out->scale = _mm256_movemask_ps(odd) != 0 ? std::numeric_limits<float>::quiet_NaN() : scale;
    __m256 const by = _mm256_set1_ps(inverse);
    for (int i = 0; i < N; i += 16) {
      auto const eight = [&](float const* p) {
        __m256 const v = _mm256_mul_ps(_mm256_loadu_ps(p), by);
        return _mm256_cvtps_epi32(
            _mm256_max_ps(_mm256_min_ps(v, top), _mm256_sub_ps(_mm256_setzero_ps(), top)));
      };
      __m256i const a = eight(x + i), b = eight(x + i + 8);
      // Packing goes by halves of a register; what it mixes up comes back in order of 64 bits.
      __m256i const words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out->q + i),
                       _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
      __m256i const pairs = _mm256_madd_epi16(words, _mm256_set1_epi16(1));
      __m128i s = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
      s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
      s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
      out->sums[i / 16] = static_cast<std::int16_t>(_mm_cvtsi128_si32(s));
    }
  }
#else
  quantize_q8<N>(x, n, out);
#endif
}

/// quantized_product - y[i, j] = sum_p x[i, p] W[j, p] for m rows of x from to_q8<q8_length(F)>, one behind the other,
/// and n rows of W in format F, `w_row` bytes apart; k numbers each, whole blocks. Rows of y are y_row apart.
///
/// Numerics  as dfdx::quantized_dot, floats summed in another order: |error| <= k / 32 eps sum |x w|; a sum does not
///           depend on which rows are computed together
/// Threading any number of calls at once
template <Quant F>
void quantized_product(index_t m, index_t n, index_t k, Q8Block<q8_length(F)> const* x, std::byte const* w,
                       std::size_t w_row, float* y, index_t y_row) {
  index_t const blocks = k / block_length(F);
  auto const row = [&](index_t j) { return w + static_cast<std::size_t>(j) * w_row; };
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
  constexpr int side = 4;
  index_t j = 0;
  for (; j + side <= n; j += side) {
    index_t i = 0;
    for (; i + 2 <= m; i += 2)
      detail::quantized_tile<F, 2, side>(k, x + i * blocks, row(j), w_row, y + i * y_row + j, y_row);
    if (i < m) detail::quantized_tile<F, 1, side>(k, x + i * blocks, row(j), w_row, y + i * y_row + j, y_row);
  }
  for (; j < n; ++j)
    for (index_t i = 0; i < m; ++i) {
      float four[4];
      // The same order of the sums as in a tile.
      detail::quantized_tile<F, 1, 4>(k, x + i * blocks, row(j), 0, four, 0);
      y[i * y_row + j] = four[0];
    }
#else
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < m; ++i) y[i * y_row + j] = quantized_dot<F>(row(j), x + i * blocks, k);
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
