// SPDX-License-Identifier: BSL-1.0
//
// byte_words - numbers of eight bits as processors multiply them: `byte_group` of them along k in a word of 32 bits, a
// lane of words times a lane of words being added to a lane of sums of 32 bits. With VNNI a word is four bytes, those
// of one factor unsigned and those of the other signed; elsewhere on x86 two numbers of 16 bits; on other targets one
// of 32. No sum is ever rounded or cut off: what does not fit 32 bits wraps.
#pragma once

#include <concepts>

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

using ByteWords = lane<std::int32_t>;
inline constexpr int word_lanes = lane_size<std::int32_t>;

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define DFDX_BYTE_GROUP 4
#elif defined(__AVXVNNI__) && defined(__AVX2__) && !defined(__AVX512F__)
#define DFDX_BYTE_GROUP 4
#elif defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__)) || \
    (defined(__SSE2__) && !defined(__AVX__))
#define DFDX_BYTE_GROUP 2
#else
#define DFDX_BYTE_GROUP 1
#endif
/// How many numbers a word holds.
inline constexpr int byte_group = DFDX_BYTE_GROUP;

/// One word of up to byte_group numbers that are `step` apart; the rest of it is zero.
template <byte_number T>
DFDX_INLINE std::uint32_t word_of(T const* p, std::int64_t step, std::int64_t count) {
  std::uint32_t word = 0;
  for (int i = 0; i < byte_group; ++i) {
    std::int32_t const number = i < count ? p[i * step] : 0;
    constexpr int bits = 32 / byte_group;
    std::uint32_t const mask = bits == 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << (bits % 32)) - 1;
    word |= (static_cast<std::uint32_t>(number) & mask) << (i * bits % 32);
  }
  return word;
}

/// Bytes of words moved by 128: they become numbers of the other kind.
DFDX_INLINE ByteWords moved_words(ByteWords x) {
  return x ^ ByteWords(static_cast<std::int32_t>(0x80808080u));
}

#if DFDX_BYTE_GROUP == 4 && defined(__AVX512F__)
/// The instruction. g++ 12 copies a sum before and after its intrinsic, whose elements are not those of __m512i: a tile
/// of sums then lives in memory, at half the speed.
DFDX_INLINE __m512i dot_bytes(__m512i sum, __m512i u, __m512i s) {
#if defined(__GNUC__) && !defined(__clang__)
  asm("vpdpbusd\t{%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(u), "v"(s));
  return sum;
#else
  return _mm512_dpbusd_epi32(sum, u, s);
#endif
}
#endif

/// sum + a b, word by word. AIsUnsigned says of which kind the bytes of a are, those of b being of the other.
template <bool AIsUnsigned>
DFDX_INLINE ByteWords add_word_products(ByteWords sum, ByteWords a, ByteWords b) {
#if DFDX_BYTE_GROUP == 4 && defined(__AVX512F__)
  return AIsUnsigned ? dot_bytes(sum, a, b) : dot_bytes(sum, b, a);
#elif DFDX_BYTE_GROUP == 4
  return AIsUnsigned ? ByteWords(_mm256_dpbusd_avx_epi32(sum, a, b))
                     : ByteWords(_mm256_dpbusd_avx_epi32(sum, b, a));
#elif DFDX_BYTE_GROUP == 2 && defined(__AVX512BW__)
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#elif DFDX_BYTE_GROUP == 2 && defined(__AVX2__)
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#elif DFDX_BYTE_GROUP == 2
  return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
#else
  return sum + a * b;
#endif
}

#if DFDX_BYTE_GROUP == 2 && !defined(__AVX2__)
/// The lower eight numbers of x as numbers of 16 bits.
template <byte_number T>
DFDX_INLINE __m128i widened(__m128i x) {
  __m128i const zero = _mm_setzero_si128();
  return _mm_unpacklo_epi8(x, std::same_as<T, std::int8_t> ? _mm_cmpgt_epi8(zero, x) : zero);
}
#endif

/// The sums of the lanes of four.
DFDX_INLINE void sum_lanes(ByteWords const (&x)[4], std::int32_t (&sums)[4]) {
#if defined(__AVX512F__) || defined(__AVX2__)
  // Quarters of registers with one sum of each, which are then added up.
#if defined(__AVX512F__)
  auto const pair = [](__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  };
  __m512i const ab = pair(x[0], x[1]), cd = pair(x[2], x[3]);
  __m512i const all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  __m256i const half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
#else
  __m256i const half = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
#endif
  __m128i const sum = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), sum);
#else
  for (int i = 0; i < 4; ++i) sums[i] = xsimd::reduce_add(x[i]);
#endif
}

/// Words of numbers that follow each other, byte_group a word.
template <byte_number T>
DFDX_INLINE ByteWords load_words(T const* p) {
#if DFDX_BYTE_GROUP == 4 && defined(__AVX512F__)
  return _mm512_loadu_si512(p);
#elif DFDX_BYTE_GROUP == 4
  return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
#elif DFDX_BYTE_GROUP == 2 && defined(__AVX512BW__)
  __m256i const x = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
  return std::same_as<T, std::int8_t> ? _mm512_cvtepi8_epi16(x) : _mm512_cvtepu8_epi16(x);
#elif DFDX_BYTE_GROUP == 2 && defined(__AVX2__)
  __m128i const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
  return std::same_as<T, std::int8_t> ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
#elif DFDX_BYTE_GROUP == 2
  return widened<T>(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(p)));
#else
  alignas(64) std::uint32_t words[word_lanes];
  for (int i = 0; i < word_lanes; ++i) words[i] = word_of(p + i * byte_group, 1, byte_group);
  return ByteWords::load_aligned(reinterpret_cast<std::int32_t const*>(words));
#endif
}
/// The same of the first `count` numbers, the others being zero; reads nothing else.
template <byte_number T>
DFDX_INLINE ByteWords load_words(T const* p, std::int64_t count) {
#if DFDX_BYTE_GROUP == 4 && defined(__AVX512F__)
  return _mm512_maskz_loadu_epi8(_cvtu64_mask64(count >= 64 ? ~0ull : (1ull << count) - 1), p);
#else
  if (count >= word_lanes * byte_group) return load_words(p);
  T part[word_lanes * byte_group] = {};
  std::memcpy(part, p, static_cast<std::size_t>(count));
  return load_words(part);
#endif
}

/// Words of `rows` rows `step` apart (the others being zero), `lanes` numbers of each: of which word i is the i-th
/// number of each row.
template <byte_number T>
DFDX_INLINE ByteWords words_across(T const* p, std::int64_t step, int rows, int lanes) {
#if DFDX_BYTE_GROUP > 1 && defined(__AVX2__)
  if (rows == byte_group && lanes == word_lanes) {
    auto const row = [&](int r) {
#if defined(__AVX512BW__)
      return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p + r * step)));
#else
      return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(p + r * step)));
#endif
    };
    constexpr int bits = 32 / byte_group;
    ByteWords words = ByteWords(row(0));
    DFDX_UNROLL for (int r = 1; r < byte_group; ++r) {
#if defined(__AVX512BW__)
      words = words | ByteWords(_mm512_slli_epi32(row(r), static_cast<unsigned>(r * bits)));
#else
      words = words | ByteWords(_mm256_slli_epi32(row(r), r * bits));
#endif
    }
#if DFDX_BYTE_GROUP == 2
    // Bytes become numbers of 16 bits with their sign.
    if constexpr (std::same_as<T, std::int8_t>) {
#if defined(__AVX512BW__)
      return _mm512_srai_epi16(_mm512_slli_epi16(words, 8), 8);
#else
      return _mm256_srai_epi16(_mm256_slli_epi16(words, 8), 8);
#endif
    }
#endif
    return words;
  }
#elif DFDX_BYTE_GROUP == 2
  if (rows == 2 && lanes == 4) {
    auto const row = [&](int r) {
      int four;
      std::memcpy(&four, p + r * step, 4);
      return _mm_cvtsi32_si128(four);
    };
    return widened<T>(_mm_unpacklo_epi8(row(0), row(1)));
  }
#endif
  alignas(64) std::uint32_t words[word_lanes] = {};
  for (int i = 0; i < lanes; ++i) words[i] = word_of(p + i, step, rows);
  return ByteWords::load_aligned(reinterpret_cast<std::int32_t const*>(words));
}

/// Lanes of words, of up to 64 numbers of `rows` rows, 1 to 4, that are `step` apart; what is missing is zero.
#if DFDX_BYTE_GROUP == 4 && defined(__AVX512F__)
inline constexpr bool has_wide_rows = true;
template <byte_number T>
DFDX_INLINE void wide_words_across(T const* p, std::int64_t step, int rows, std::int64_t columns,
                                   ByteWords (&words)[4]) {
  __m512i row[4], pair[4], word[4];
  DFDX_UNROLL for (int r = 0; r < 4; ++r) row[r] = load_words(p + r * step, r < rows ? columns : 0);
  DFDX_UNROLL for (int r = 0; r < 4; r += 2) {
    pair[r] = _mm512_unpacklo_epi8(row[r], row[r + 1]);
    pair[r + 1] = _mm512_unpackhi_epi8(row[r], row[r + 1]);
  }
  DFDX_UNROLL for (int h = 0; h < 2; ++h) {
    word[2 * h] = _mm512_unpacklo_epi16(pair[h], pair[2 + h]);
    word[2 * h + 1] = _mm512_unpackhi_epi16(pair[h], pair[2 + h]);
  }
  // Quarter q of word t has four columns from 16 q + 4 t on.
  DFDX_UNROLL for (int h = 0; h < 2; ++h) {
    row[h] = _mm512_shuffle_i32x4(word[2 * h], word[2 * h + 1], 0x44);
    row[2 + h] = _mm512_shuffle_i32x4(word[2 * h], word[2 * h + 1], 0xee);
  }
  DFDX_UNROLL for (int h = 0; h < 2; ++h) {
    words[2 * h] = _mm512_shuffle_i32x4(row[2 * h], row[2 * h + 1], 0x88);
    words[2 * h + 1] = _mm512_shuffle_i32x4(row[2 * h], row[2 * h + 1], 0xdd);
  }
}
template <byte_number T>
DFDX_INLINE void put_wide_words_across(T const* p, std::int64_t step, int rows, std::int64_t columns,
                                       int lanes, std::int32_t* to) {
  ByteWords words[4];
  wide_words_across(p, step, rows, columns, words);
  DFDX_UNROLL for (int t = 0; t < 4; ++t) {
    if (t < lanes) words[t].store_unaligned(to + t * word_lanes);
  }
}
#else
inline constexpr bool has_wide_rows = false;
template <byte_number T>
void put_wide_words_across(T const*, std::int64_t, int, std::int64_t, int, std::int32_t*) {}
#endif

#undef DFDX_BYTE_GROUP

}  // namespace detail
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
