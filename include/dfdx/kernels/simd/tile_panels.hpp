// SPDX-License-Identifier: BSL-1.0
//
// tile_panels - operands as matrix tiles read them (simd/amx.hpp): words of numbers that follow each other along k,
// two of bf16 or four bytes. A is packed as tiles of 16 rows of 16 words, one after the other along k; B as rows of
// words, one or two tiles of columns wide. What is beyond an operand's last row, column or number is zero.
#pragma once

#include <dfdx/kernels/simd/amx.hpp>
#include <dfdx/kernels/simd/byte_words.hpp>
#include <dfdx/kernels/simd/gemm_panels.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if defined(DFDX_AMX)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Numbers of a word.
template <class T>
inline constexpr Index word_length = 4 / static_cast<Index>(sizeof(T));

// Words of bf16, as those of bytes in byte_words.hpp.

inline std::uint32_t word_of(bfloat16 const* p, Index step, Index count) {
  std::uint32_t const low = count > 0 ? p[0].bits : 0u, high = count > 1 ? p[step].bits : 0u;
  return low | high << 16;
}
DFDX_INLINE ByteWords load_words(bfloat16 const* p, Index count) {
  return _mm512_maskz_loadu_epi16(count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1, p);
}
DFDX_INLINE ByteWords words_across(bfloat16 const* p, Index step, int rows, int lanes) {
  __mmask16 const there = static_cast<__mmask16>((1u << lanes) - 1);
  auto const row = [&](bfloat16 const* from) DFDX_INLINE_LAMBDA {
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, from));
  };
  __m512i words = rows > 0 ? row(p) : _mm512_setzero_si512();
  if (rows > 1) words = _mm512_or_si512(words, _mm512_slli_epi32(row(p + step), 16));
  return words;
}

/// Lanes of words of up to 32 numbers of up to two rows.
DFDX_INLINE void wide_words_across(bfloat16 const* p, Index step, int rows, Index columns,
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
DFDX_INLINE ByteWords words_of_lines(T const* p, Index line, Index step, int lines, Index left) {
  Index const most = word_length<T>;
  int const count = static_cast<int>(left < 0 ? 0 : left < most ? left : most);
  if (line == 1 && (sizeof(T) == 2 || (count == most && lines == word_lanes)))
    return words_across(p, step, count, lines);
  alignas(64) std::uint32_t words[word_lanes] = {};
  for (int i = 0; i < lines; ++i) words[i] = word_of(p + i * line, step, count);
  return ByteWords::load_aligned(reinterpret_cast<std::int32_t const*>(words));
}

/// So many rows of A, and `steps` tiles along k, of which k numbers exist; `dst` is aligned to 64 bytes.
template <class T>
void pack_tile_rows(strided<T> a, Index rows, Index k, Index steps, std::byte* dst) {
  constexpr Index of_step = tile_side * word_length<T>;
  for (Index i = 0; i < rows; i += tile_side, dst += steps * tile_bytes) {
    T const* const from = a.at + i * a.row;
    auto* const to = reinterpret_cast<std::int32_t*>(dst);
    constexpr Index tile_words = tile_side * word_lanes;
    Index const here = rows - i < tile_side ? rows - i : tile_side;
    if (a.col == 1) {
      for (Index r = 0; r < tile_side; ++r) {
        T const* const row = from + (r < here ? r : 0) * a.row;
        std::int32_t* const line = to + r * word_lanes;
        Index const whole = r < here ? k / of_step : 0;
        for (Index s = 0; s < whole; ++s)
          load_words(row + s * of_step, of_step).store_aligned(line + s * tile_words);
        for (Index s = whole; s < steps; ++s)
          load_words(row + s * of_step, r < here ? k - s * of_step : 0).store_aligned(line + s * tile_words);
      }
      continue;
    }
    for (Index s = 0; s < steps; ++s) {
      ByteWords square[tile_side];
      DFDX_UNROLL for (int q = 0; q < tile_side; ++q) {
        Index const p = (s * tile_side + q) * word_length<T>;
        square[q] = words_of_lines(from + p * a.col, a.row, a.col, static_cast<int>(here), k - p);
      }
      transpose_tile(square);
      DFDX_UNROLL for (int r = 0; r < tile_side; ++r) {
        square[r].store_aligned(to + s * tile_words + r * word_lanes);
      }
    }
  }
}

/// Columns of B, and `steps` tiles along k, of which k numbers exist: panels of 32 columns one after the other, of
/// which the last may be 16 wide.
template <class T>
void pack_tile_columns(strided<T> b, Index columns, Index k, Index steps, std::byte* dst) {
  Index const lanes = ceil_div(columns, tile_side), words = steps * tile_side;
  auto* const to = reinterpret_cast<std::int32_t*>(dst);
  auto const width_of = [&](Index lane) { return (lane % 2 == 0 && lane + 1 == lanes ? 1 : 2) * tile_side; };
  auto const place_of = [&](Index lane) { return to + (lane / 2 * 2 * words + lane % 2) * tile_side; };
  if (b.col == 1) {
    // Whole lines of some rows, one after the other.
    constexpr Index together = 64 / static_cast<Index>(sizeof(T)), most = together / tile_side;
    for (Index word = 0; word < words; ++word) {
      T const* const from = b.at + word * word_length<T> * b.row;
      Index const left = k - word * word_length<T>;
      int const count = static_cast<int>(left < 0 ? 0 : left < word_length<T> ? left : word_length<T>);
      for (Index lane = 0; lane < lanes; lane += most) {
        Index const j = lane * tile_side;
        ByteWords line[most];
        wide_words_across(from + j, b.row, count, columns - j < together ? columns - j : together, line);
        DFDX_UNROLL for (Index t = 0; t < most; ++t) {
          if (lane + t < lanes) line[t].store_aligned(place_of(lane + t) + word * width_of(lane + t));
        }
      }
    }
    return;
  }
  for (Index lane = 0; lane < lanes; ++lane) {
    T const* const from = b.at + lane * tile_side * b.col;
    Index const left = columns - lane * tile_side, width = width_of(lane);
    int const here = static_cast<int>(left < tile_side ? left : tile_side);
    for (Index word = 0; word < words; word += tile_side) {
      std::int32_t* const at = place_of(lane) + word * width;
      Index const p = word * word_length<T>;
      if (b.row == 1) {
        ByteWords square[tile_side];
        DFDX_UNROLL for (int r = 0; r < tile_side; ++r) {
          square[r] = load_words(from + (r < here ? r : 0) * b.col + p, r < here ? k - p : 0);
        }
        transpose_tile(square);
        DFDX_UNROLL for (int r = 0; r < tile_side; ++r) square[r].store_aligned(at + r * width);
      } else {
        for (Index r = 0; r < tile_side; ++r) {
          Index const first = p + r * word_length<T>;
          words_of_lines(from + first * b.row, b.col, b.row, here, k - first).store_aligned(at + r * width);
        }
      }
    }
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // DFDX_AMX
