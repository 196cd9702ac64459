// SPDX-License-Identifier: BSL-1.0
//
// word_lines - operands as processors multiply them where their instructions take several numbers along k at once:
// words of 32 bits, two of bf16 or as many bytes as byte_words.hpp says, whose functions for bytes these are for bf16;
// and of either, words of up to sixteen lines (rows of A or columns of B) at a time, however the lines lie.
#pragma once

#include <dfdx/kernels/simd/byte_words.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Numbers of a word.
template <class T>
inline constexpr std::int64_t word_length = byte_group;
template <>
inline constexpr std::int64_t word_length<bfloat16> = 2;

inline std::uint32_t word_of(bfloat16 const* p, std::int64_t step, std::int64_t count) {
  std::uint32_t const low = count > 0 ? p[0].bits : 0u, high = count > 1 ? p[step].bits : 0u;
  return low | high << 16;
}
DFDX_INLINE ByteWords load_words(bfloat16 const* p, std::int64_t count) {
  return _mm512_maskz_loadu_epi16(count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1, p);
}
DFDX_INLINE ByteWords words_across(bfloat16 const* p, std::int64_t step, int rows, int lanes) {
  __mmask16 const there = static_cast<__mmask16>((1u << lanes) - 1);
  auto const row = [&](bfloat16 const* from) DFDX_INLINE_LAMBDA {
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, from));
  };
  __m512i words = rows > 0 ? row(p) : _mm512_setzero_si512();
  if (rows > 1) words = _mm512_or_si512(words, _mm512_slli_epi32(row(p + step), 16));
  return words;
}

/// Lanes of words of up to 32 numbers of up to two rows.
DFDX_INLINE void wide_words_across(bfloat16 const* p, std::int64_t step, int rows, std::int64_t columns,
                                   ByteWords (&words)[2]) {
  alignas(64) static constexpr std::uint16_t order[64] = {
      0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
      11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53,
      22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
  __m512i const first = load_words(p, rows > 0 ? columns : 0),
                second = load_words(p + step, rows > 1 ? columns : 0);
  DFDX_UNROLL for (int h = 0; h < 2; ++h) words[h] =
      _mm512_permutex2var_epi16(first, _mm512_load_si512(order + 32 * h), second);
}

/// A lane of words along k in each of up to 16 lines, which are `line` apart and whose numbers are `step` apart.
template <class T>
DFDX_INLINE ByteWords words_of_lines(T const* p, std::int64_t line, std::int64_t step, int lines,
                                     std::int64_t left) {
  std::int64_t const most = word_length<T>;
  int const count = static_cast<int>(left < 0 ? 0 : left < most ? left : most);
  if (line == 1 && (sizeof(T) == 2 || (count == most && lines == word_lanes)))
    return words_across(p, step, count, lines);
  alignas(64) std::uint32_t words[word_lanes] = {};
  for (int i = 0; i < lines; ++i) words[i] = word_of(p + i * line, step, count);
  return ByteWords::load_aligned(reinterpret_cast<std::int32_t const*>(words));
}

/// Sixteen words along k of up to 16 such lines, of which `left` numbers exist: word q of each line in square[q], or,
/// if `Turned`, all of line q.
template <bool Turned, class T>
DFDX_INLINE void square_of_lines(T const* p, std::int64_t line, std::int64_t step, int lines,
                                 std::int64_t left, ByteWords (&square)[word_lanes]) {
  bool const along = step == 1;
  if (along) {
    DFDX_UNROLL for (int q = 0; q < word_lanes; ++q) {
      square[q] = load_words(p + (q < lines ? q : 0) * line, q < lines ? left : 0);
    }
  } else {
    DFDX_UNROLL for (int q = 0; q < word_lanes; ++q) {
      std::int64_t const first = q * word_length<T>;
      square[q] = words_of_lines(p + first * step, line, step, lines, left - first);
    }
  }
  if (along != Turned) transpose_tile(square);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // __AVX512BF16__
