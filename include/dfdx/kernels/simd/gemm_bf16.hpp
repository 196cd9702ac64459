// SPDX-License-Identifier: BSL-1.0
//
// gemm_bf16 - matrix products of bf16 by the processor's own instruction, which multiplies two numbers a lane and adds
// both products to a sum in f32: twice the speed of f32.
//
// Both operands are packed in pairs along k: A in panels of rows as for f32, B in panels of lanes of columns. Each
// panel of B stays in the second cache while all of A passes.
#pragma once

#include <bit>

#include <dfdx/kernels/half.hpp>
#include <dfdx/kernels/simd/gemm_amx.hpp>
#include <dfdx/kernels/simd/gemm_blocked.hpp>
#include <dfdx/kernels/simd/word_lines.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

#if defined(__AVX512BF16__) && defined(__AVX512F__)
inline constexpr bool has_bf16_products = true;
#else
inline constexpr bool has_bf16_products = false;
#endif

/// uses_bf16_products - whether a product of these extents is worth packing; others are computed as f32.
constexpr bool uses_bf16_products(std::int64_t m, std::int64_t n, std::int64_t k) {
  return has_bf16_products && m > 8 && n >= 16 && k >= 16;
}

namespace detail {

/// How many pairs of k are packed at a time; rows of A, and columns of B, in a panel.
inline constexpr Index bf16_pairs = 512, bf16_rows = 6, bf16_columns = 64;

}  // namespace detail

/// gemm_bf16_workspace - bytes that gemm_bf16 needs, for what it packs.
constexpr std::size_t gemm_bf16_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
  using namespace detail;
  Index const pairs = (k + 1) / 2, depth = pairs < bf16_pairs ? pairs : bf16_pairs;
  Index const width = n < bf16_columns ? round_up(n, 16) : bf16_columns;
  Index const words = round_up(m, bf16_rows) * pairs + width * depth + m * width;
  auto const bytes = static_cast<std::size_t>(round_up(words, 16)) * 4;
#if defined(DFDX_AMX)
  auto const of_tiles = TileBlocks(m, n, pairs).all();
  if (of_tiles > bytes) return of_tiles;
#endif
  return bytes;
}

#if defined(__AVX512BF16__) && defined(__AVX512F__)

namespace detail {

/// A (m, k) -> panels: dst[panel][pair][row], rows past m zero. Two panels at a time.
inline void pack_row_pairs(strided<bfloat16> a, Index m, Index k, std::int32_t* dst) {
  static_assert(blocking<float>::mr == bf16_rows && 2 * bf16_rows <= word_lanes);
  constexpr __mmask16 first = (1 << bf16_rows) - 1, second = first << bf16_rows;
  Index const pairs = (k + 1) / 2;
  for (Index i = 0; i < m; i += 2 * bf16_rows, dst += 2 * bf16_rows * pairs) {
    int const rows = static_cast<int>(m - i < 2 * bf16_rows ? m - i : 2 * bf16_rows);
    bfloat16 const* const from = a.at + i * a.row;
    for (Index p = 0; p < pairs; p += word_lanes) {
      ByteWords square[word_lanes];
      square_of_lines<false>(from + 2 * p * a.col, a.row, a.col, rows, k - 2 * p, square);
      DFDX_UNROLL for (int q = 0; q < word_lanes; ++q) {
        if (p + q >= pairs) break;
        std::int32_t* const to = dst + (p + q) * bf16_rows;
        _mm512_mask_storeu_epi32(to, first, square[q]);
        if (rows > bf16_rows) _mm512_mask_storeu_epi32(to + (pairs - 1) * bf16_rows, second, square[q]);
      }
    }
  }
}

/// Columns of B (k, columns) -> dst[pair][column], columns past the last zero; the width is whole lanes.
inline void pack_column_pairs(strided<bfloat16> b, Index k, Index columns, std::int32_t* dst) {
  Index const width = round_up(columns, word_lanes), pairs = (k + 1) / 2;
  if (b.col == 1) {  // whole rows, one after the other
    for (Index p = 0; p < pairs; ++p, dst += width)
      for (Index j = 0; j < columns; j += 2 * word_lanes) {
        ByteWords words[2];
        wide_words_across(b.at + 2 * p * b.row + j, b.row, k - 2 * p > 1 ? 2 : 1, columns - j, words);
        words[0].store_aligned(dst + j);
        if (columns - j > word_lanes) words[1].store_aligned(dst + j + word_lanes);
      }
    return;
  }
  for (Index j = 0; j < columns; j += word_lanes, dst += word_lanes) {
    int const lanes = static_cast<int>(columns - j < word_lanes ? columns - j : word_lanes);
    for (Index p = 0; p < pairs; p += word_lanes) {
      ByteWords square[word_lanes];
      square_of_lines<false>(b.at + j * b.col + 2 * p * b.row, b.col, b.row, lanes, k - 2 * p, square);
      DFDX_UNROLL for (int q = 0; q < word_lanes; ++q) {
        if (p + q < pairs) square[q].store_aligned(dst + (p + q) * width);
      }
    }
  }
}

/// C lanes of columns and six rows, of which `rows` are stored or, if it `adds`, added to.
template <int C>
void bf16_tile(Index pairs, std::int32_t const* a, std::int32_t const* b, float* c, Index c_row, int rows,
               bool adds) {
  constexpr int R = static_cast<int>(bf16_rows);
  __m512 sum[R][C];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] = _mm512_setzero_ps();
  }
  for (Index p = 0; p < pairs; ++p, a += R, b += C * 16) {
    __m512bh row[C];
    DFDX_UNROLL for (int j = 0; j < C; ++j) row[j] = std::bit_cast<__m512bh>(_mm512_loadu_si512(b + j * 16));
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      auto const x = std::bit_cast<__m512bh>(_mm512_set1_epi32(a[r]));
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] = _mm512_dpbf16_ps(sum[r][j], x, row[j]);
    }
  }
  // Columns past the last are stored too, and left out when the sums are rounded.
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    if (r >= rows) return;
    DFDX_UNROLL for (int j = 0; j < C; ++j) {
      float* const to = c + r * c_row + j * 16;
      _mm512_store_ps(to, adds ? _mm512_add_ps(sum[r][j], _mm512_load_ps(to)) : sum[r][j]);
    }
  }
}

}  // namespace detail

/// gemm_bf16 - c[m, n] = sum_k a[m, k] b[k, n], each operand with two strides, of bf16. Where the target has the
/// instruction (AVX512_BF16).
///
/// Numerics  pairs of products are added to a sum of f32, denormal numbers taken as zero; the sum is rounded once
/// Cost      2 m n k flops, gemm_bf16_workspace(m, n, k) bytes at `workspace`, aligned to 64
template <int = 0>
void gemm_bf16(std::int64_t m, std::int64_t n, std::int64_t k, detail::strided<bfloat16> a,
               detail::strided<bfloat16> b, bfloat16* c, std::int64_t c_row, void* workspace) {
  using namespace detail;
#if defined(DFDX_AMX)
  if (amx_is_permitted())
    return multiply_tiles<TileWords::bf16>(m, n, k, a, b, RoundedSums{c, c_row},
                                           static_cast<std::byte*>(workspace));
#endif
  Index const pairs = (k + 1) / 2, panels = ceil_div(m, bf16_rows);
  Index const depth = pairs < bf16_pairs ? pairs : bf16_pairs,
              width = n < bf16_columns ? round_up(n, 16) : bf16_columns;
  auto* const packed_b = static_cast<std::int32_t*>(workspace);
  auto* const sums = reinterpret_cast<float*>(packed_b + width * depth);
  std::int32_t* const packed_a = packed_b + width * depth + m * width;
  // Blocks of k one after the other.
  for (Index p = 0; p < pairs; p += bf16_pairs) {
    Index const end = 2 * (p + bf16_pairs) < k ? 2 * (p + bf16_pairs) : k;
    pack_row_pairs({a.at + 2 * p * a.col, a.row, a.col}, m, end - 2 * p, packed_a + p * panels * bf16_rows);
  }
  for (Index j = 0; j < n; j += bf16_columns) {
    int const columns = static_cast<int>(n - j < bf16_columns ? n - j : bf16_columns);
    for (Index p = 0; p < pairs; p += bf16_pairs) {
      Index const count = pairs - p < bf16_pairs ? pairs - p : bf16_pairs;
      Index const end = 2 * (p + count) < k ? 2 * (p + count) : k;
      pack_column_pairs({b.at + 2 * p * b.row + j * b.col, b.row, b.col}, end - 2 * p, columns, packed_b);
      auto const tile = columns > 48   ? &bf16_tile<4>
                        : columns > 32 ? &bf16_tile<3>
                        : columns > 16 ? &bf16_tile<2>
                                       : &bf16_tile<1>;
      for (Index i = 0; i < panels; ++i) {
        int const rows = static_cast<int>(m - i * bf16_rows < bf16_rows ? m - i * bf16_rows : bf16_rows);
        tile(count, packed_a + (p * panels + i * count) * bf16_rows, packed_b, sums + i * bf16_rows * width,
             width, rows, p > 0);
      }
    }
    for (Index i = 0; i < m; ++i) narrow(c + i * c_row + j, sums + i * width, columns);
  }
}

#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
