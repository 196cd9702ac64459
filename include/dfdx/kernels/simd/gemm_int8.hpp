// SPDX-License-Identifier: BSL-1.0
//
// gemm_int8 - matrix products of numbers of eight bits, summed in 32 (simd/byte_words.hpp says by which instructions).
//
// A is read where it lies if the instructions take its bytes as they are, else words of it are made once. B is packed
// in panels of lanes of columns, each of which stays in the second cache (of few rows the first) while A passes.
// Few rows times columns that are long and contiguous are sums along k, and nothing is packed.
#pragma once

#include <dfdx/kernels/simd/gemm_amx.hpp>
#include <dfdx/kernels/simd/int8_panel.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// How many words of k are packed at a time: for few rows no more than leaves a panel in the first cache.
constexpr Index int8_depth(Index rows) {
  constexpr Index most = 512, few = 32768 / (4 * int8_lanes * word_lanes);
  return rows > 64 || few > most ? most : few;
}

/// Lanes of the next panel when so many columns are left: panels of nearly the same width.
constexpr int int8_lanes_of(Index columns) {
  Index const lanes = columns > 0 ? ceil_div(columns, word_lanes) : 1;
  return static_cast<int>(ceil_div(lanes, ceil_div(lanes, int8_lanes)));
}

/// The type that bytes are read as: where words are bytes as they are, one for both kinds.
template <byte_number T>
using packed_byte = std::conditional_t<byte_group == 4, std::uint8_t, T>;
template <byte_number T>
strided<packed_byte<T>> as_packed(strided<T> x) {
  return {reinterpret_cast<packed_byte<T> const*>(x.at), x.row, x.col};
}

/// int8_is_dot - whether a product is computed by sums along k: of few rows, if adding up lanes costs less than turning
/// B would.
template <byte_number A, byte_number B>
bool int8_is_dot(Index m, Index n, Index k, strided<A> a, strided<B> b) {
  if (a.col != 1 || b.row != 1) return false;
  constexpr Index lane_length = word_lanes * byte_group;
  return m == 1 || n == 1 || (m <= 4 && k > 4 * lane_length) ||
         (tile_sums >= 24 && m <= 8 && k > 8 * lane_length);
}

/// The sums of R rows times four columns, of which `columns` exist, into c.
template <int R, byte_number A, byte_number B>
void int8_dots(Index k, strided<A> a, strided<B> b, int columns, std::int32_t* c, Index c_row, Index c_col) {
  using Kinds = ByteKinds<A, B>;
  constexpr Index step = word_lanes * byte_group;
  constexpr int C = 4;
  B const* at[C];
  ByteWords sum[R][C], more[C];
  DFDX_UNROLL for (int j = 0; j < C; ++j) {
    at[j] = b.at + (j < columns ? j : columns - 1) * b.col;
    more[j] = ByteWords(0);
    DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][j] = ByteWords(0);
  }
  ByteWords const ones(0x01010101);
  auto const add = [&](auto const& load) DFDX_INLINE_LAMBDA {
    ByteWords x[R];
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      x[r] = load(a.at + r * a.row);
      if constexpr (Kinds::moves) x[r] = moved_words(x[r]);
    }
    DFDX_UNROLL for (int j = 0; j < C; ++j) {
      ByteWords const y = load(at[j]);
      if constexpr (Kinds::moves) more[j] = add_word_products<Kinds::a_unsigned>(more[j], ones, y);
      DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][j] =
          add_word_products<Kinds::a_unsigned>(sum[r][j], x[r], y);
    }
  };
  Index p = 0;
  for (; p + step <= k; p += step)
    add([&](auto const* row) DFDX_INLINE_LAMBDA { return load_words(row + p); });
  if (p < k) add([&](auto const* row) DFDX_INLINE_LAMBDA { return load_words(row + p, k - p); });
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    if constexpr (Kinds::moves) {
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] -= more[j] * ByteWords(Kinds::moved_by);
    }
    std::int32_t total[C];
    sum_lanes(sum[r], total);
    DFDX_UNROLL for (int j = 0; j < C; ++j) {
      if (j < columns) c[r * c_row + j * c_col] = total[j];
    }
  }
}

/// All rows and columns.
template <byte_number A, byte_number B>
void int8_all_dots(Index m, Index n, Index k, strided<A> a, strided<B> b, std::int32_t* c, Index c_row,
                   Index c_col) {
  for (Index j = 0; j < n; j += 4) {
    int const columns = n - j < 4 ? static_cast<int>(n - j) : 4;
    strided<B> const from{b.at + j * b.col, b.row, b.col};
    for (Index i = 0; i < m;) {
      strided<A> const rows{a.at + i * a.row, a.row, a.col};
      std::int32_t* const to = c + i * c_row + j * c_col;
      if (tile_sums >= 24 && m - i >= 4) int8_dots<4>(k, rows, from, columns, to, c_row, c_col), i += 4;
      else if (m - i >= 2) int8_dots<2>(k, rows, from, columns, to, c_row, c_col), i += 2;
      else int8_dots<1>(k, rows, from, columns, to, c_row, c_col), ++i;
    }
  }
}

/// Words of A, of which all are made: [word][row] where rows lie side by side, else [row][word].
template <byte_number A>
WordRows make_words(strided<A> a, Index m, Index k, std::int32_t* to) {
  Index const words = ceil_div(k, byte_group);
  auto* const at = reinterpret_cast<std::byte const*>(to);
  if (a.col == 1) {
    for (Index i = 0; i < m; ++i, to += words)
      for (Index p = 0; p < words; p += word_lanes) {
        A const* const from = a.at + i * a.row + p * byte_group;
        if (words - p >= word_lanes) load_words(from, k - p * byte_group).store_unaligned(to + p);
        else store_n(to + p, load_words(from, k - p * byte_group), static_cast<int>(words - p));
      }
    return {at, words * 4, 4, nullptr};
  }
  for (Index p = 0; p < words; ++p, to += m) {
    A const* const from = a.at + p * byte_group * a.col;
    int const rows = static_cast<int>(k - p * byte_group < byte_group ? k - p * byte_group : byte_group);
    for (Index i = 0; i < m; i += word_lanes) {
      int const lanes = m - i < word_lanes ? static_cast<int>(m - i) : word_lanes;
      if (a.row == 1) store_n(to + i, words_across(from + i, a.col, rows, lanes), lanes);
      else
        for (int r = 0; r < lanes; ++r)
          to[i + r] = static_cast<std::int32_t>(word_of(from + (i + r) * a.row, a.col, rows));
    }
  }
  return {at, 4, m * 4, nullptr};
}

/// Columns of B (k, columns) -> dst[word][column], as far as whole lanes.
template <byte_number B>
void pack_byte_columns(strided<B> b, Index k, Index columns, std::int32_t* dst) {
  int const lanes = int8_lanes_of(columns);
  Index const width = lanes * word_lanes, words = ceil_div(k, byte_group);
  if (b.row == 1) {
    // Squares of words, transposed as floats are.
    for (Index j = 0; j < width; j += word_lanes)
      for (Index p = 0; p < words; p += word_lanes) {
        Index const left = k - p * byte_group;
        ByteWords square[word_lanes];
        DFDX_UNROLL for (int r = 0; r < word_lanes; ++r) {
          Index const column = j + r < columns ? j + r : columns - 1;
          square[r] = load_words(b.at + column * b.col + p * byte_group, left);
        }
        transpose_tile(square);
        DFDX_UNROLL for (int q = 0; q < word_lanes; ++q) {
          if (p + q < words) square[q].store_unaligned(dst + (p + q) * width + j);
        }
      }
    return;
  }
  for (Index p = 0; p < words; ++p, dst += width) {
    B const* const from = b.at + p * byte_group * b.row;
    int const rows = static_cast<int>(k - p * byte_group < byte_group ? k - p * byte_group : byte_group);
    if (has_wide_rows && b.col == 1) {
      put_wide_words_across(from, b.row, rows, columns, lanes, dst);
      continue;
    }
    for (Index j = 0; j < width; j += word_lanes) {
      int const count = columns - j > word_lanes ? word_lanes : static_cast<int>(columns - j);
      if (b.col == 1) words_across(from + j, b.row, rows, count).store_unaligned(dst + j);
      else
        for (int r = 0; r < word_lanes; ++r)
          dst[j + r] =
              r < count ? static_cast<std::int32_t>(word_of(from + (j + r) * b.col, b.row, rows)) : 0;
    }
  }
}

template <class Kinds, byte_number A, byte_number B>
void multiply_words(Index m, Index n, Index k, strided<A> a, strided<B> b, std::int32_t* c, Index c_row,
                    std::int32_t* workspace) {
  Index const words = ceil_div(k, byte_group), most = int8_depth(m);
  std::int32_t* const last = workspace + int8_lanes_of(n) * word_lanes * (words < most ? words : most);
  std::int32_t* const made = last + m;
  WordRows rows{reinterpret_cast<std::byte const*>(a.at), a.row, 4, nullptr};
  if (byte_group != 4 || a.col != 1) {
    rows = make_words(a, m, k, made);
  } else if (Index const begin = k / byte_group * byte_group; begin < k) {
    rows.last = last;
    for (Index i = 0; i < m; ++i)
      last[i] = static_cast<std::int32_t>(word_of(a.at + i * a.row + begin, 1, k - begin));
  }
  for (Index j = 0; j < n;) {
    int const lanes = int8_lanes_of(n - j);
    Index const columns = n - j < lanes * word_lanes ? n - j : lanes * word_lanes;
    Int8Sums const sums{c + j, c_row, static_cast<int>(columns - (lanes - 1) * word_lanes), false};
    Index p = 0;
    do {  // k == 0 is one empty block: C becomes zero
      Index const count = words - p < most ? words - p : most;
      bool const is_last = p + count == words;
      pack_byte_columns(strided<B>{b.at + p * byte_group * b.row + j * b.col, b.row, b.col},
                        is_last ? k - p * byte_group : count * byte_group, columns, workspace);
      WordRows const here{rows.at + p * rows.step, rows.row, rows.step, is_last ? rows.last : nullptr};
      int8_panel_of<Kinds>(lanes, count, here, m, workspace, {sums.at, sums.row, sums.columns, p > 0});
      p += count;
    } while (p < words);
    j += columns;
  }
}

}  // namespace detail

/// gemm_int8_workspace - bytes that gemm_int8 needs for what it packs.
constexpr std::size_t gemm_int8_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
  using namespace detail;
  Index const words = ceil_div(k, byte_group);
  Index const width = int8_lanes_of(n) * word_lanes, most = int8_depth(m);
  // A panel of B; A; the last words of its rows.
  auto const bytes =
      static_cast<std::size_t>(width * (words < most ? words : most) + m * words + m + word_lanes) * 4;
#if defined(DFDX_AMX)
  auto const of_tiles = TileBlocks(m, n, words).all();
  if (of_tiles > bytes) return of_tiles;
#endif
  return bytes;
}

/// gemm_int8 - c[m, n] = sum_k a[m, k] b[k, n], A and B with two strides each, of numbers of eight bits with or without
/// a sign, C of numbers of 32 bits.
///
/// Numerics  exact, modulo 2^32
/// Cost      2 m n k operations, gemm_int8_workspace(m, n, k) bytes at `workspace`, aligned to 64
template <byte_number A, byte_number B>
void gemm_int8(std::int64_t m, std::int64_t n, std::int64_t k, detail::strided<A> a, detail::strided<B> b,
               std::int32_t* c, std::int64_t c_row, void* workspace) {
  using namespace detail;
  if (m == 0 || n == 0) return;
#if defined(DFDX_AMX)
  // Smaller ones are faster without tiles.
  if (m > 8 && k > 64 && m * n * k > 128 * 1024 && amx_is_permitted())
    return multiply_tiles<tile_words_of<A, B>>(m, n, k, a, b, WholeSums{c, c_row},
                                               static_cast<std::byte*>(workspace));
#endif
  if (int8_is_dot(m, n, k, a, b)) {
    if (n > 1) return int8_all_dots(m, n, k, a, b, c, c_row, 1);
    return int8_all_dots<B, A>(1, m, k, {b.at, 0, 1}, {a.at, 1, a.row}, c, 0, c_row);
  }
  multiply_words<ByteKinds<A, B>>(m, n, k, as_packed(a), as_packed(b), c, c_row,
                                  static_cast<std::int32_t*>(workspace));
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
