// SPDX-License-Identifier: BSL-1.0
//
// gemm_int8 - matrix products of numbers of eight bits, summed in 32 (simd/byte_words.hpp says by which instructions).
//
// A is read where it lies if the instructions take its bytes as they are, else words of it are made once. B is packed
// in panels of lanes of columns, each of which stays in the second cache while all of A passes. Few rows times columns
// that are contiguous are sums along k, and nothing is packed.
#pragma once

#include <dfdx/kernels/simd/byte_words.hpp>
#include <dfdx/kernels/simd/gemm_blocked.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// How many words of k are packed at a time; rows and lanes of a tile.
inline constexpr Index int8_depth = 512;
inline constexpr int int8_rows = blocking<float>::mr, int8_lanes = blocking<float>::C;
inline constexpr Index int8_columns = int8_lanes * word_lanes;

/// Lanes of a panel: of few columns no more than they need, of tiles that there are.
constexpr int int8_lanes_of(Index columns) {
  Index const lanes = ceil_div(columns, word_lanes);
  return lanes > 2 ? int8_lanes : static_cast<int>(lanes);
}

/// ByteKinds - of which kind the factors are. Numbers of B are moved by 128 before words of both are multiplied, so
/// that they are of the other kind, if the instructions want that and they are not: each product of a row of A then has
/// so much more for each unit of that row's sum.
struct ByteKinds {
  bool a_unsigned, b_unsigned;
  bool moves() const { return byte_group == 4 && a_unsigned == b_unsigned; }
  int moved_by() const { return b_unsigned ? -128 : 128; }
};

/// The type that bytes are read as: where words are bytes as they are, one for both kinds.
template <byte_number T>
using packed_byte = std::conditional_t<byte_group == 4, std::uint8_t, T>;
template <byte_number T>
strided<packed_byte<T>> as_packed(strided<T> x) {
  return {reinterpret_cast<packed_byte<T> const*>(x.at), x.row, x.col};
}

/// Where words of A are: word `p` of row `r` at `at + r * row + p * step` bytes. The last word of rows that are not
/// whole words is in `last`, one a row, if that is given.
struct WordRows {
  std::byte const* at;
  Index row, step;
  std::int32_t const* last;
};

/// int8_is_dot - whether a product is computed by sums along k.
template <byte_number A, byte_number B>
bool int8_is_dot(Index m, Index n, strided<A> a, strided<B> b) {
  return (m <= 4 || n == 1) && a.col == 1 && b.row == 1;
}

/// The sums of R rows times four columns, of which `columns` exist, into c. Here it is A's numbers that may be moved.
template <int R, byte_number A, byte_number B>
void int8_dots(Index k, strided<A> a, strided<B> b, int columns, std::int32_t* c, Index c_row, Index c_col) {
  constexpr bool moves = byte_group == 4 && std::same_as<A, B>;
  constexpr bool a_unsigned = std::same_as<A, std::uint8_t> != moves;
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
      if constexpr (moves) x[r] = moved_words(x[r]);
    }
    DFDX_UNROLL for (int j = 0; j < C; ++j) {
      ByteWords const y = load(at[j]);
      if constexpr (moves) more[j] = add_word_products<a_unsigned>(more[j], ones, y);
      DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r][j] = add_word_products<a_unsigned>(sum[r][j], x[r], y);
    }
  };
  Index p = 0;
  for (; p + step <= k; p += step)
    add([&](auto const* row) DFDX_INLINE_LAMBDA { return load_words(row + p); });
  if (p < k) add([&](auto const* row) DFDX_INLINE_LAMBDA { return load_words(row + p, k - p); });
  // What A's numbers were moved by is in each product.
  constexpr int by = std::same_as<A, std::int8_t> ? 128 : -128;
  DFDX_UNROLL for (int j = 0; j < C; ++j) {
    if (j >= columns) return;
    ByteWords const rest = moves ? more[j] * ByteWords(by) : ByteWords(0);
    DFDX_UNROLL for (int r = 0; r < R; ++r) c[r * c_row + j * c_col] = xsimd::reduce_add(sum[r][j] - rest);
  }
}

/// All rows and columns.
template <byte_number A, byte_number B>
void int8_all_dots(Index m, Index n, Index k, strided<A> a, strided<B> b, std::int32_t* c, Index c_row,
                   Index c_col) {
  for (Index j = 0; j < n; j += 4) {
    int const columns = n - j < 4 ? static_cast<int>(n - j) : 4;
    strided<B> const from{b.at + j * b.col, b.row, b.col};
    for (Index i = 0; i < m; i += 2) {
      strided<A> const rows{a.at + i * a.row, a.row, a.col};
      std::int32_t* const to = c + i * c_row + j * c_col;
      if (m - i > 1) int8_dots<2>(k, rows, from, columns, to, c_row, c_col);
      else int8_dots<1>(k, rows, from, columns, to, c_row, c_col);
    }
  }
}

/// A square of words becomes its transpose.
DFDX_INLINE void transpose_words(ByteWords* x) {
  lane<float> square[word_lanes];
  DFDX_UNROLL for (int i = 0; i < word_lanes; ++i) square[i] = xsimd::bitwise_cast<float>(x[i]);
  transpose_tile(square);
  DFDX_UNROLL for (int i = 0; i < word_lanes; ++i) x[i] = xsimd::bitwise_cast<std::int32_t>(square[i]);
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
void pack_byte_columns(strided<B> b, Index k, Index columns, bool moved, std::int32_t* dst) {
  ByteWords const moves(moved ? static_cast<std::int32_t>(0x80808080u) : 0);
  Index const width = int8_lanes_of(columns) * word_lanes, words = ceil_div(k, byte_group);
  auto const finished = [&](ByteWords x) { return x ^ moves; };
  if (b.row == 1) {
    // Squares of words, transposed as floats are.
    for (Index j = 0; j < width; j += word_lanes)
      for (Index p = 0; p < words; p += word_lanes) {
        Index const left = k - p * byte_group;
        ByteWords square[word_lanes];
        DFDX_UNROLL for (int r = 0; r < word_lanes; ++r) {
          Index const column = j + r < columns ? j + r : columns - 1;
          square[r] = finished(load_words(b.at + column * b.col + p * byte_group, left));
        }
        transpose_words(square);
        DFDX_UNROLL for (int q = 0; q < word_lanes; ++q) {
          if (p + q < words) square[q].store_unaligned(dst + (p + q) * width + j);
        }
      }
    return;
  }
  for (Index p = 0; p < words; ++p, dst += width) {
    B const* const from = b.at + p * byte_group * b.row;
    int const rows = static_cast<int>(k - p * byte_group < byte_group ? k - p * byte_group : byte_group);
    Index j = 0;
    if (has_wide_rows && b.col == 1 && rows == byte_group)
      for (; j + 4 * word_lanes <= columns; j += 4 * word_lanes)
        put_wide_words_across(from + j, b.row, moves, dst + j);
    for (; j < width; j += word_lanes) {
      Index const left = columns - j;
      int const lanes = left > word_lanes ? word_lanes : left < 0 ? 0 : static_cast<int>(left);
      if (b.col == 1) finished(words_across(from + j, b.row, rows, lanes)).store_unaligned(dst + j);
      else
        for (int r = 0; r < lanes; ++r)
          dst[j + r] = static_cast<std::int32_t>((moved ? 0x80808080u : 0u) ^
                                                 word_of(from + (j + r) * b.col, b.row, rows));
    }
  }
}

/// sums[i] = factor times the sum of row i of A, whose words are given.
template <bool AIsUnsigned>
void sum_rows(WordRows a, Index m, Index words, int factor, std::int32_t* sums) {
  ByteWords const ones(0x01010101), by(factor);
  auto const added = [&](ByteWords sum, ByteWords x)
                         DFDX_INLINE_LAMBDA { return add_word_products<AIsUnsigned>(sum, x, ones); };
  for (Index i = 0; i < m; i += word_lanes) {
    int const rows = m - i < word_lanes ? static_cast<int>(m - i) : word_lanes;
    ByteWords sum(0);
    if (a.step == 4) {
      Index const whole = a.last != nullptr ? words - 1 : words;
      // Lanes of sums of as many rows are added up across, as the rows of their transpose.
      ByteWords square[word_lanes];
      for (int r = 0; r < word_lanes; ++r) {
        ByteWords of_row(0);
        auto const* const row = reinterpret_cast<std::int32_t const*>(a.at + (i + r) * a.row);
        Index p = 0;
        if (r < rows) {
          for (; p + word_lanes <= whole; p += word_lanes)
            of_row = added(of_row, ByteWords::load_unaligned(row + p));
          if (p < whole) of_row = added(of_row, load_n(row + p, static_cast<int>(whole - p)));
        }
        square[r] = of_row;
      }
      transpose_words(square);
      DFDX_UNROLL for (int r = 0; r < word_lanes; ++r) sum += square[r];
      if (a.last != nullptr) sum = added(sum, load_n(a.last + i, rows));
    } else {
      for (Index p = 0; p < words; ++p)
        sum = added(sum, load_n(reinterpret_cast<std::int32_t const*>(a.at + p * a.step) + i, rows));
    }
    store_n(sums + i, sum * by, rows);
  }
}

/// int8_tile - R rows, of which `rows` exist, and C lanes of columns, of which `columns` exist. The sums are made
/// less by a number of each row, if those are given, or added to what is in c.
template <bool AIsUnsigned, int R, int C>
void int8_tile(Index words, WordRows a, std::int32_t const* b, std::int32_t* c, Index c_row, int rows,
               int columns, bool adds, std::int32_t const* less) {
  std::byte const* at[R];
  ByteWords sum[R][C];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    int const row = r < rows ? r : rows - 1;
    at[r] = a.at + row * a.row;
    DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] =
        less == nullptr ? ByteWords(0) : ByteWords(0) - ByteWords(less[row]);
  }
  Index const whole = a.last != nullptr ? words - 1 : words;
  std::int32_t const* const end = b + whole * C * word_lanes;
  Index offset = 0;
  for (; b != end; b += C * word_lanes, offset += a.step) {
    ByteWords y[C];
    DFDX_UNROLL for (int j = 0; j < C; ++j) y[j] = ByteWords::load_unaligned(b + j * word_lanes);
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      std::int32_t word;
      std::memcpy(&word, at[r] + offset, 4);
      ByteWords const x(word);
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] = add_word_products<AIsUnsigned>(sum[r][j], x, y[j]);
    }
  }
  if (a.last != nullptr) {
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      ByteWords const x(a.last[r < rows ? r : rows - 1]);
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] =
          add_word_products<AIsUnsigned>(sum[r][j], x, ByteWords::load_unaligned(b + j * word_lanes));
    }
  }
  // Whole tiles without a question at each lane, the others through memory.
  if (rows == R && columns >= C * word_lanes) {
    if (adds) {
      DFDX_UNROLL for (int r = 0; r < R; ++r) {
        DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j] +=
            ByteWords::load_unaligned(c + r * c_row + j * word_lanes);
      }
    }
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j].store_unaligned(c + r * c_row + j * word_lanes);
    }
    return;
  }
  alignas(64) std::int32_t tile[R * C * word_lanes];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int j = 0; j < C; ++j) sum[r][j].store_aligned(tile + (r * C + j) * word_lanes);
  }
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < C && j * word_lanes < columns; ++j) {
      std::int32_t* const to = c + r * c_row + j * word_lanes;
      int const left = columns - j * word_lanes, count = left < word_lanes ? left : word_lanes;
      ByteWords const made = ByteWords::load_aligned(tile + (r * C + j) * word_lanes);
      store_n(to, adds ? made + load_n(to, count) : made, count);
    }
}

template <bool AIsUnsigned, int R>
auto int8_tile_of(int lanes) {
  return lanes > 2    ? &int8_tile<AIsUnsigned, R, int8_lanes>
         : lanes == 2 ? &int8_tile<AIsUnsigned, R, 2>
                      : &int8_tile<AIsUnsigned, R, 1>;
}

template <bool AIsUnsigned, byte_number A, byte_number B>
void multiply_words(Index m, Index n, Index k, strided<A> a, strided<B> b, ByteKinds kinds, std::int32_t* c,
                    Index c_row, std::int32_t* workspace) {
  Index const words = ceil_div(k, byte_group), depth = words < int8_depth ? words : int8_depth;
  std::int32_t* const less = workspace + int8_lanes_of(n) * word_lanes * depth;
  std::int32_t *const last = less + m, *const made = last + m;
  WordRows rows{reinterpret_cast<std::byte const*>(a.at), a.row, 4, nullptr};
  if (byte_group != 4 || a.col != 1) {
    rows = make_words(a, m, k, made);
  } else if (Index const begin = k / byte_group * byte_group; begin < k) {
    rows.last = last;
    for (Index i = 0; i < m; ++i)
      last[i] = static_cast<std::int32_t>(word_of(a.at + i * a.row + begin, 1, k - begin));
  }
  if (kinds.moves()) sum_rows<AIsUnsigned>(rows, m, words, kinds.moved_by(), less);
  for (Index j = 0; j < n; j += int8_columns) {
    int const columns = static_cast<int>(n - j < int8_columns ? n - j : int8_columns);
    int const lanes = int8_lanes_of(columns);
    Index p = 0;
    do {  // k == 0 is one empty block: C becomes zero
      Index const count = words - p < int8_depth ? words - p : int8_depth;
      bool const is_last = p + count == words;
      pack_byte_columns(strided<B>{b.at + p * byte_group * b.row + j * b.col, b.row, b.col},
                        is_last ? k - p * byte_group : count * byte_group, columns, kinds.moves(), workspace);
      for (Index i = 0; i < m; i += int8_rows) {
        int const height = static_cast<int>(m - i < int8_rows ? m - i : int8_rows);
        WordRows const here{rows.at + i * rows.row + p * rows.step, rows.row, rows.step,
                            is_last && rows.last != nullptr ? rows.last + i : nullptr};
        prefetch_tile(reinterpret_cast<float const*>(c + i * c_row + j), c_row, height);
        auto const tile = 2 * height > int8_rows ? int8_tile_of<AIsUnsigned, int8_rows>(lanes)
                                                 : int8_tile_of<AIsUnsigned, int8_rows / 2>(lanes);
        tile(count, here, workspace, c + i * c_row + j, c_row, height, columns, p > 0,
             kinds.moves() && p == 0 ? less + i : nullptr);
      }
      p += count;
    } while (p < words);
  }
}

}  // namespace detail

/// gemm_int8_workspace - bytes that gemm_int8 needs for what it packs.
constexpr std::size_t gemm_int8_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
  using namespace detail;
  Index const words = ceil_div(k, byte_group);
  Index const width = int8_lanes_of(n) * word_lanes;
  // Panels of B; A; the sums of its rows; its last words.
  return static_cast<std::size_t>(width * (words < int8_depth ? words : int8_depth) + m * words + 2 * m +
                                  word_lanes) *
         4;
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
  if (int8_is_dot(m, n, a, b)) {
    if (n > 1) return int8_all_dots(m, n, k, a, b, c, c_row, 1);
    return int8_all_dots<B, A>(1, m, k, {b.at, 0, 1}, {a.at, 1, a.row}, c, 0, c_row);
  }
  constexpr ByteKinds kinds{std::same_as<A, std::uint8_t>, std::same_as<B, std::uint8_t>};
  multiply_words<kinds.a_unsigned>(m, n, k, as_packed(a), as_packed(b), kinds, c, c_row,
                                   static_cast<std::int32_t*>(workspace));
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
