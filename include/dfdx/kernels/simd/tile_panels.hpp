// SPDX-License-Identifier: BSL-1.0
//
// tile_panels - operands as matrix tiles read them (simd/amx.hpp): words of numbers that follow each other along k,
// two of bf16 or four bytes. A is packed as tiles of 16 rows of 16 words, one after the other along k; B as rows of
// words, one or two tiles of columns wide. What is beyond an operand's last row, column or number is zero.
#pragma once

#include <dfdx/kernels/simd/amx.hpp>
#include <dfdx/kernels/simd/gemm_panels.hpp>
#include <dfdx/kernels/simd/word_lines.hpp>

#if defined(DFDX_AMX)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

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
      Index const p = s * of_step;
      square_of_lines<true>(from + p * a.col, a.row, a.col, static_cast<int>(here), k - p, square);
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
      ByteWords square[tile_side];
      square_of_lines<false>(from + p * b.row, b.col, b.row, here, k - p, square);
      DFDX_UNROLL for (int r = 0; r < tile_side; ++r) square[r].store_aligned(at + r * width);
    }
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // DFDX_AMX
