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
  Index const sums = pairs > bf16_pairs ? m * width : 0;
  Index const words = round_up(m, bf16_rows) * pairs + width * depth + sums;
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
  constexpr int R = static_cast<int>(bf16_rows);
  // The two words too many that this stores are those of the next pair, which comes after; the last one has none.
  auto const put = [](std::int32_t* to, __m512i words, bool is_last) {
    __m256i const half = _mm512_castsi512_si256(words);
    if (is_last) _mm256_mask_storeu_epi32(to, (1 << R) - 1, half);
    else _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half);
  };
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
        __m512i const words = square[q];
        bool const is_last = p + q + 1 == pairs;
        put(to, words, is_last);
        if (rows > R) put(to + pairs * bf16_rows, _mm512_alignr_epi32(words, words, R), is_last);
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

/// Where a tile goes: to sums of f32, and from the last block of k on to numbers of 16 bits.
struct Bf16Result {
  float* sums;
  Index width;  // of a row of sums
  bool adds;    // to what the sums are
  bfloat16* c;  // or null, while there is more to add
  Index c_row;
  int columns;

  Bf16Result below(Index rows) const {
    return {sums + rows * width, width, adds, c == nullptr ? c : c + rows * c_row, c_row, columns};
  }
  DFDX_INLINE void put(__m512 sum, int row, int column) const {
    float* const before = sums + row * width + column;
    if (adds) sum = _mm512_add_ps(sum, _mm512_load_ps(before));
    // Of sums columns past the last are stored too.
    if (c == nullptr) return _mm512_store_ps(before, sum);
    // The instruction takes denormal numbers as zero, as those that multiply do.
    int const left = columns - column;
    auto const mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    _mm256_mask_storeu_epi16(c + row * c_row + column, mask, std::bit_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
  }
};

/// C lanes of columns and R rows of a panel of A.
template <int C, int R>
void bf16_tile(Index pairs, std::int32_t const* a, std::int32_t const* b, Bf16Result const& result) {
  __m512 sum[R][C];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] = _mm512_setzero_ps();
  }
  for (Index p = 0; p < pairs; ++p, a += bf16_rows, b += C * 16) {
    __m512bh row[C];
    DFDX_UNROLL for (int j = 0; j < C; ++j) row[j] = std::bit_cast<__m512bh>(_mm512_loadu_si512(b + j * 16));
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      auto const x = std::bit_cast<__m512bh>(_mm512_set1_epi32(a[r]));
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] = _mm512_dpbf16_ps(sum[r][j], x, row[j]);
    }
  }
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int j = 0; j < C; ++j) result.put(sum[r][j], r, j * 16);
  }
}

/// C lanes of columns and `rows` rows of a panel.
template <int C>
void bf16_panel(Index pairs, std::int32_t const* a, std::int32_t const* b, int rows,
                Bf16Result const& result) {
  if (rows == bf16_rows) return bf16_tile<C, bf16_rows>(pairs, a, b, result);
  if (rows >= 4) {
    bf16_tile<C, 4>(pairs, a, b, result);
    return rows == 4 ? void() : bf16_tile<C, 1>(pairs, a + 4, b, result.below(4));
  }
  if (rows >= 2) bf16_tile<C, 2>(pairs, a, b, result);
  if (rows != 2) bf16_tile<C, 1>(pairs, a + rows - 1, b, result.below(rows - 1));
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
  bool const in_blocks = pairs > bf16_pairs;
  auto* const sums = in_blocks ? reinterpret_cast<float*>(packed_b + width * depth) : nullptr;
  std::int32_t* const packed_a = packed_b + width * depth + (in_blocks ? m * width : 0);
  // Blocks of k one after the other.
  for (Index p = 0; p < pairs; p += bf16_pairs) {
    Index const end = 2 * (p + bf16_pairs) < k ? 2 * (p + bf16_pairs) : k;
    pack_row_pairs({a.at + 2 * p * a.col, a.row, a.col}, m, end - 2 * p, packed_a + p * panels * bf16_rows);
  }
  for (Index j = 0; j < n; j += bf16_columns) {
    int const columns = static_cast<int>(n - j < bf16_columns ? n - j : bf16_columns);
    for (Index p = 0; p < pairs; p += bf16_pairs) {
      bool const is_last = pairs - p <= bf16_pairs;
      Index const count = is_last ? pairs - p : bf16_pairs;
      Index const end = 2 * (p + count) < k ? 2 * (p + count) : k;
      pack_column_pairs({b.at + 2 * p * b.row + j * b.col, b.row, b.col}, end - 2 * p, columns, packed_b);
      auto const panel = columns > 48   ? &bf16_panel<4>
                         : columns > 32 ? &bf16_panel<3>
                         : columns > 16 ? &bf16_panel<2>
                                        : &bf16_panel<1>;
      Bf16Result const result{sums, width, p > 0, is_last ? c + j : nullptr, c_row, columns};
      for (Index i = 0; i < panels; ++i) {
        int const rows = static_cast<int>(m - i * bf16_rows < bf16_rows ? m - i * bf16_rows : bf16_rows);
        panel(count, packed_a + (p * panels + i * count) * bf16_rows, packed_b, rows,
              result.below(i * bf16_rows));
      }
    }
  }
}

#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
