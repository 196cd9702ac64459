// SPDX-License-Identifier: BSL-1.0
//
// gemm_amx - matrix products of bf16 and of bytes by matrix tiles (simd/amx.hpp): two by two tiles of sums at a time.
//
//   for a block of rows whose A stays in the second cache     pack its A
//     for a group of columns, and a block of k
//       for 32 of the columns, and for 32 rows: tiles of sums, added to those of the block of k before
//
// While tiles are multiplied the sums before them are rounded and stored. Those of i32 for a near C are stored
// by the tiles themselves: 3 to 17% faster up to 480 x 480, 5 to 15% slower for a C of 1 MiB and more. To pack the next
// part of B meanwhile gains next to nothing. If there are several blocks of rows, all of B is packed by the first.
//
// A block of k is so deep that a panel of B stays in the first cache. Tiles of A come from the second, past the first:
// both operands from the second would be a quarter slower (measured).
#pragma once

#include <dfdx/kernels/simd/tile_panels.hpp>

#if defined(DFDX_AMX)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Tiles of a block of k, and bytes of a block of A.
inline constexpr Index tile_steps = 16, tile_block = 1024 * 1024;
/// Rows and columns of two by two tiles. Columns that are packed together: as many as make several lines of a row, for
/// rows may be so far apart that all compete for a few places of the caches.
inline constexpr Index tile_pair = 2 * tile_side, group_panels = 4, tile_group = group_panels * tile_pair;

/// The blocks of a product, of so many words along k, and the bytes of what they need.
struct TileBlocks {
  Index steps, depth, rows, panels;
  bool keeps_b;
  constexpr TileBlocks(Index m, Index n, Index words)
      : steps(ceil_div(words, tile_side)),
        depth(block_size(steps, tile_steps, 1)),
        rows(rows_of(m, steps)),
        panels(ceil_div(n, tile_pair)),
        keeps_b(m > rows) {}
  static constexpr Index rows_of(Index m, Index steps) {
    Index const most = tile_block / (64 * (steps > 0 ? steps : 1));
    return block_size(m, most > 4 * tile_pair ? most : 4 * tile_pair, tile_pair);
  }
  constexpr bool in_one() const { return steps <= depth; }
  constexpr Index of_b() const {
    return (keeps_b ? panels * steps : (panels < group_panels ? panels : group_panels) * depth) * 2 *
           tile_bytes;
  }
  constexpr Index of_sums() const { return (in_one() ? tile_pair : group_panels * rows) * sums_row; }
  constexpr std::size_t all() const {
    return static_cast<std::size_t>(of_b() + of_sums() + rows / tile_side * steps * tile_bytes);
  }
};

/// Whether sums go into C from tiles at once, not by a place that is always near: where C stays in the second cache.
constexpr bool stores_tiles(Index m, Index n) { return m * n * 4 < 1024 * 1024; }

/// Sums of f32 to C of bf16. Denormal sums do not come from tiles, so that nothing is lost by the instruction, which
/// takes them as zero.
struct RoundedSums {
  bfloat16* c;
  Index c_row;
  DFDX_INLINE void put(std::byte const* sums, Index i, Index j, Index columns) const {
    auto const there = static_cast<__mmask32>((std::uint64_t{1} << columns) - 1);
    __m512 const low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + 64);
    _mm512_mask_storeu_epi16(c + i * c_row + j, there,
                             std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
};
/// Sums of i32.
struct WholeSums {
  std::int32_t* c;
  Index c_row;
  std::byte* tile(Index i, Index j) const { return reinterpret_cast<std::byte*>(c + i * c_row + j); }
  DFDX_INLINE void put(std::byte const* sums, Index i, Index j, Index columns) const {
    auto const there = static_cast<std::uint32_t>((std::uint64_t{1} << columns) - 1);
    std::int32_t* const to = c + i * c_row + j;
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(there), _mm512_load_si512(sums));
    _mm512_mask_storeu_epi32(to + 16, static_cast<__mmask16>(there >> 16), _mm512_load_si512(sums + 64));
  }
};

/// Sums that wait to be put into C: some rows of them are in every step of the next product.
template <class Out>
struct WaitingSums {
  Out out;
  std::byte const* sums;
  Index i, j, columns, rows, done, each;

  /// Sums of so many rows at (row, column) of C, to be put into it in so many steps.
  DFDX_INLINE void wait(std::byte const* at, Index row, Index column, Index columns_, Index rows_,
                        Index steps) {
    sums = at, i = row, j = column, columns = columns_, rows = rows_, done = 0;
    each = steps > 0 ? ceil_div(rows_, steps) : rows_;
  }
  DFDX_INLINE void operator()() {
    if (done >= rows) return;
    Index const end = done + each < rows ? i + done + each : i + rows, column = j, count = columns;
    Out const to = out;
    std::byte const* from = sums + done * sums_row;
    for (Index r = i + done; r < end; ++r, from += sums_row) to.put(from, r, column, count);
    done = end - i;
  }
};

/// Whether tiles can read rows of A where they are, and where it is so small a part of the work that packing them would
/// cost more.
template <class T>
bool has_tile_rows(strided<T> a, Index n, Index k) {
  constexpr Index size = static_cast<Index>(sizeof(T));
  return a.col == 1 && n <= 128 && k % (tile_side * word_length<T>) == 0 &&
         reinterpret_cast<std::uintptr_t>(a.at) % 64 == 0 && a.row * size % 64 == 0;
}

/// A panel of C columns of tiles: all rows of A. Its sums lie one after the other, or where those before them lay.
struct TilePanel {
  Index rows, whole, steps;
  TileRows in_place;
  std::byte const *a, *b;
  std::byte* sums;
  bool one_place, adds, is_last, stores;
  Index i, j, columns;
};
template <TileWords Words, int C, class Waiting>
[[gnu::noinline]] void multiply_panel(TilePanel const panel, Waiting& waiting) {
  Index const below = panel.steps * tile_bytes;
  for (Index i = 0; i < panel.rows; i += tile_pair) {
    Index const height = panel.rows - i < tile_pair ? panel.rows - i : tile_pair;
    TileRows a{panel.a + (i - panel.whole) / tile_side * below, 64, tile_bytes, below};
    if (i < panel.whole) a = panel.in_place, a.at += i * a.row;
    if constexpr (C == 2 && requires { waiting.out.tile(i, i); })
      if (panel.stores && height == tile_pair && panel.columns == tile_pair) {
        Index const row = waiting.out.c_row * 4;
        tile_products<Words, 2, C>(panel.steps, a, panel.b, waiting.out.tile(panel.i + i, panel.j), false,
                                   waiting, row);
        continue;
      }
    std::byte* const sums = panel.sums + (panel.one_place ? 0 : i * sums_row);
    if (height > tile_side) tile_products<Words, 2, C>(panel.steps, a, panel.b, sums, panel.adds, waiting);
    else tile_products<Words, 1, C>(panel.steps, a, panel.b, sums, panel.adds, waiting);
    if (panel.is_last) waiting.wait(sums, panel.i + i, panel.j, panel.columns, height, panel.steps);
  }
}

/// C = A B, into `out`, `room` being TileBlocks::all() bytes, aligned to 64.
template <TileWords Words, class A, class B, class Out>
void multiply_tiles(Index m, Index n, Index k, strided<A> a, strided<B> b, Out const& out, std::byte* room) {
  constexpr Index of_step = tile_side * word_length<A>;
  TileBlocks const blocks(m, n, ceil_div(k, word_length<A>));
  std::byte* const packed_b = room;
  std::byte* const sums = packed_b + blocks.of_b();
  std::byte* const packed_a = sums + blocks.of_sums();
  auto const depth_at = [&](Index s) {
    return blocks.steps - s < blocks.depth ? blocks.steps - s : blocks.depth;
  };
  auto const numbers_at = [&](Index s) {
    Index const left = k - s * of_step, most = depth_at(s) * of_step;
    return left < most ? left : most;
  };
  auto const columns_of = [&](Index g) { return n - g < tile_group ? n - g : tile_group; };
  bool const in_place = has_tile_rows(a, n, k);
  Index const a_row = a.row * static_cast<Index>(sizeof(A));
  Tiles const tiles;
  WaitingSums<Out> waiting{out, nullptr, 0, 0, 0, 0, 0, 0};
  for (Index top = 0; top < m; top += blocks.rows) {
    Index const rows = m - top < blocks.rows ? m - top : blocks.rows;
    Index const whole = in_place ? rows / tile_pair * tile_pair : 0,
                panels = ceil_div(rows - whole, tile_side);
    for (Index s = 0; s < blocks.steps && whole < rows; s += blocks.depth)
      pack_tile_rows(strided<A>{a.at + (top + whole) * a.row + s * of_step * a.col, a.row, a.col},
                     rows - whole, numbers_at(s), depth_at(s), packed_a + s * panels * tile_bytes);
    for (Index g = 0; g < n; g += tile_group) {
      Index const group = columns_of(g);
      Index s = 0;
      do {  // k == 0 is one empty block: C becomes zero
        Index const count = depth_at(s), next = s + count;
        bool const is_last = next >= blocks.steps;
        Index const before = g / tile_pair * blocks.steps + s * ceil_div(group, tile_pair);
        std::byte* const words = packed_b + (blocks.keeps_b ? before * 2 * tile_bytes : 0);
        if (top == 0)
          pack_tile_columns(strided<B>{b.at + s * of_step * b.row + g * b.col, b.row, b.col}, group,
                            numbers_at(s), count, words);
        for (Index j = g; j < g + group; j += tile_pair) {
          Index const columns = n - j < tile_pair ? n - j : tile_pair, which = (j - g) / tile_pair;
          TilePanel const panel{rows,
                                whole,
                                count,
                                {reinterpret_cast<std::byte const*>(a.at + top * a.row + s * of_step), a_row,
                                 64, tile_side * a_row},
                                packed_a + s * panels * tile_bytes,
                                words + which * count * 2 * tile_bytes,
                                blocks.in_one() ? sums : sums + which * blocks.rows * sums_row,
                                blocks.in_one(),
                                s > 0,
                                is_last,
                                blocks.in_one() && stores_tiles(m, n),
                                top,
                                j,
                                columns};
          if (columns > tile_side) multiply_panel<Words, 2>(panel, waiting);
          else multiply_panel<Words, 1>(panel, waiting);
        }
        s = next;
      } while (s < blocks.steps);
    }
  }
  waiting.each = waiting.rows;
  waiting();
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // DFDX_AMX
