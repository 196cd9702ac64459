// SPDX-License-Identifier: BSL-1.0
//
// int8_panel - rows of words times a packed panel of columns of words (simd/byte_words.hpp), by tiles of sums that stay
// in registers. Rows that do not fill a tile have tiles of their own heights, so that nothing is computed twice.
#pragma once

#include <dfdx/kernels/simd/byte_words.hpp>
#include <dfdx/kernels/simd/gemm_blocked.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Rows and lanes of the largest tile.
inline constexpr int int8_rows = blocking<float>::mr, int8_lanes = blocking<float>::C;

/// ByteKinds - of which kind the factors are. The instructions of VNNI want one unsigned and the other signed: of two
/// that are alike A's numbers are moved by 128 where they are read, and each sum has so much more for each unit of its
/// column's sum.
template <byte_number A, byte_number B>
struct ByteKinds {
  static constexpr bool moves = byte_group == 4 && std::same_as<A, B>;
  /// Of which kind A's are when they are multiplied.
  static constexpr bool a_unsigned = std::same_as<A, std::uint8_t> != moves;
  static constexpr int moved_by = std::same_as<A, std::int8_t> ? 128 : -128;
};

/// Where words of A are: word `p` of row `r` at `at + r * row + p * step` bytes. The last word of rows that are not
/// whole words is in `last`, one a row, if that is given.
struct WordRows {
  std::byte const* at;
  Index row, step;
  std::int32_t const* last;
};

/// Int8Sums - where sums go, or what they are added to: of the last lane `columns` exist.
struct Int8Sums {
  std::int32_t* at;
  Index row;
  int columns;
  bool adds;
};

/// What moving A's numbers adds to the sums of C lanes of columns.
template <class Kinds, int C>
DFDX_INLINE void moved_sums(Index words, std::int32_t const* b, ByteWords (&more)[C]) {
  ByteWords const ones(0x01010101);
  ByteWords odd[C];  // sums that do not wait for those of even words
  DFDX_UNROLL for (int j = 0; j < C; ++j) more[j] = odd[j] = ByteWords(0);
  auto const add = [&](ByteWords(&to)[C]) DFDX_INLINE_LAMBDA {
    DFDX_UNROLL for (int j = 0; j < C; ++j) to[j] =
        add_word_products<Kinds::a_unsigned>(to[j], ones, ByteWords::load_unaligned(b + j * word_lanes));
    b += C * word_lanes;
  };
  Index p = 0;
  for (; p + 2 <= words; p += 2) add(more), add(odd);
  if (p < words) add(more);
  DFDX_UNROLL for (int j = 0; j < C; ++j) more[j] = (more[j] + odd[j]) * ByteWords(Kinds::moved_by);
}

/// int8_tile - R rows from row i on, and C lanes of columns; sums begin as less than zero by so much.
template <class Kinds, int R, int C>
DFDX_INLINE void int8_tile(Index words, WordRows const& a, Index i, std::int32_t const* b, Int8Sums const& c,
                           ByteWords const (&more)[C]) {
  std::byte const* const at = a.at + i * a.row;
  ByteWords sum[R][C];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int j = 0; j < C; ++j) {
      if constexpr (Kinds::moves) sum[r][j] = ByteWords(0) - more[j];
      else sum[r][j] = ByteWords(0);
    }
  }
  auto const add = [&](std::int32_t const* from, auto const& word) DFDX_INLINE_LAMBDA {
    ByteWords y[C];
    DFDX_UNROLL for (int j = 0; j < C; ++j) y[j] = ByteWords::load_unaligned(from + j * word_lanes);
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      ByteWords x(word(r));
      if constexpr (Kinds::moves) x = moved_words(x);
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] =
          add_word_products<Kinds::a_unsigned>(sum[r][j], x, y[j]);
    }
  };
  std::int32_t const* const end = b + (a.last != nullptr ? words - 1 : words) * C * word_lanes;
  for (Index offset = 0; b != end; b += C * word_lanes, offset += a.step)
    add(b, [&](int r) DFDX_INLINE_LAMBDA {
      std::int32_t word;
      std::memcpy(&word, at + r * a.row + offset, 4);
      return word;
    });
  if (a.last != nullptr) add(b, [&](int r) DFDX_INLINE_LAMBDA { return a.last[i + r]; });

  std::int32_t* const to = c.at + i * c.row;
  bool const is_whole = c.columns == word_lanes;
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int j = 0; j < C; ++j) {
      std::int32_t* const p = to + r * c.row + j * word_lanes;
      if (j + 1 < C || is_whole) {
        if (c.adds) sum[r][j] += ByteWords::load_unaligned(p);
        sum[r][j].store_unaligned(p);
      } else {
        if (c.adds) sum[r][j] += load_n(p, c.columns);
        store_n(p, sum[r][j], c.columns);
      }
    }
  }
}

/// All m rows and C lanes of columns, whose words follow each other at b.
template <class Kinds, int C>
void int8_panel(Index words, WordRows a, Index m, std::int32_t const* b, Int8Sums c) {
  ByteWords more[C];
  if constexpr (Kinds::moves) moved_sums<Kinds>(words, b, more);
  Index i = 0;
  for (; m - i >= int8_rows; i += int8_rows) int8_tile<Kinds, int8_rows, C>(words, a, i, b, c, more);
  // Five rows are three and two, four twice two.
  if (m - i == 3 || m - i == 5) int8_tile<Kinds, 3, C>(words, a, i, b, c, more), i += 3;
  for (; m - i >= 2; i += 2) int8_tile<Kinds, 2, C>(words, a, i, b, c, more);
  if (m > i) int8_tile<Kinds, 1, C>(words, a, i, b, c, more);
}

/// The same of so many lanes, 1 to int8_lanes.
template <class Kinds, int C = int8_lanes>
void int8_panel_of(int lanes, Index words, WordRows const& a, Index m, std::int32_t const* b,
                   Int8Sums const& c) {
  if constexpr (C > 1)
    if (lanes < C) return int8_panel_of<Kinds, C - 1>(lanes, words, a, m, b, c);
  int8_panel<Kinds, C>(words, a, m, b, c);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
