// SPDX-License-Identifier: BSL-1.0
//
// gemm_blocked - the matrix product for large or run-time sizes: packed operands, blocked for the caches.
//
//   for a block of columns that fits the last cache        (nc)
//     for a block of k                                     (kc)
//       for a block of rows that fits the second cache     (mc)   pack A: panels of mr rows, k-major
//         for every panel of B:                                   packed the first time: nr columns, k-major
//           for every panel of A: one register tile -> buffer -> C, and a part of B's next panel is packed meanwhile
//
// All sizes are run-time values, so one instantiation per element type and epilogue serves every shape. It
// allocates nothing (the caller lends the workspace) and starts no threads.
// Source: Goto, van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34 (2008).
#pragma once

#include <dfdx/kernels/simd/gemm_panels.hpp>
#include <dfdx/kernels/simd/processor.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Where a tile's lanes go: rows of a buffer or of C; with `adds` to the sums there.
template <class T>
struct into_rows {
  static constexpr bool heavy = false;
  T* at;
  Index row;
  bool adds = false;
  DFDX_INLINE lane<T> finish(lane<T> sum, int r, int j) const {
    return adds ? sum + lane<T>::load_unaligned(at + r * row + j * lane_size<T>) : sum;
  }
  DFDX_INLINE void store(lane<T> value, int r, int j) const {
    value.store_unaligned(at + r * row + j * lane_size<T>);
  }
};

/// Asks for the lines of C (or of the partial sums) a tile will touch, long before it does.
template <class T>
struct c_ahead {
  T const* c;
  Index row;
  int left;
  DFDX_INLINE void step() {
    if (left == 0) return;
    --left;
    DFDX_UNROLL for (int j = 0; j < blocking<T>::nr * static_cast<int>(sizeof(T)); j += 64)
        ask_to_write(c, j);
    c += row;
  }
  DFDX_INLINE void all() {
    while (left > 0) step();
  }
};
/// The same, a row in each turn of the tile's loop, before what else is done there: all at once would take the places
/// in which lines of B arrive, and the tile would wait (Emerald Rapids, 768 to 2048 cubed: 1 to 4% of the time).
template <class T, class Work>
struct c_and_work {
  c_ahead<T> rows_of_c;
  Work work;
  DFDX_INLINE void step() {
    rows_of_c.step();
    work.step();
  }
};

/// Tiles below each other, of one panel of B and panels of A that are `next` apart, packed or in place. `tile` is the
/// number of the first among those that do what is `ahead`.
template <class T>
struct tile_column {
  Index count, next;
  strided<T> a;
  T const* b;
  Index b_row, k;
  into_rows<T> to;
  into_rows<T> asked;  // the rows that the sums reach in the end, which a tile has come
  typename panel_ahead<T>::plan ahead;
  Index tile;
};
/// How tiles find A and B: both packed; B with a stride, and A by rows or by columns; or anyhow, of narrow panels.
enum class tile_reads { packed, by_rows, by_columns, anyhow };
/// One loop of them: a call for each tile cost 8% of a product that is 128 deep.
template <class T, int C, tile_reads How>
void panel_tiles(tile_column<T> x) {
  using enum tile_reads;
  constexpr int W = lane_size<T>, mr = blocking<T>::mr, unroll = How == anyhow ? 1 : blocking<T>::unroll;
  constexpr Index a_row = How == packed || How == by_columns ? 1 : -1, b_row = How == packed ? C * W : -1;
  constexpr Index a_col = How == packed ? mr : How == by_rows ? 1 : -1;
  // With columns of A in place there is little of B.
  constexpr bool looks_ahead = How == packed || How == by_rows;
  for (Index const end = x.tile + x.count; x.tile < end;
       ++x.tile, x.a.at += x.next, x.to.at += mr * x.to.row, x.asked.at += mr * x.asked.row) {
    c_ahead<T> asked{x.asked.at, x.asked.row, mr};
    if (x.k < mr * unroll) asked.all();
    auto const multiply = [&](auto const& work) DFDX_INLINE_LAMBDA {
      gemm_tile<T, mr, C, W, a_row, a_col, b_row, unroll>(
          x.a.at, x.b, x.k, x.to, x.a.row, x.a.col, x.b_row,
          c_and_work<T, std::remove_cvref_t<decltype(work)>>{asked, work});
    };
    if constexpr (looks_ahead)
      if (auto const work = x.ahead(x.tile); work.each > 0) {
        multiply(work);
        continue;
      }
    multiply(nothing_ahead{});
  }
}
/// One tile of fewer rows: at least `rows` of them.
template <class T, int C>
void low_tile(int rows, tile_column<T> const& x) {
  constexpr int W = lane_size<T>;
  c_ahead<T>{x.asked.at, x.asked.row, rows}.all();
  if (rows > 2) gemm_tile<T, 4, C, W, -1, -1, -1>(x.a.at, x.b, x.k, x.to, x.a.row, x.a.col, x.b_row);
  else gemm_tile<T, 2, C, W, -1, -1, -1>(x.a.at, x.b, x.k, x.to, x.a.row, x.a.col, x.b_row);
}
/// Some tiles of all their rows, or one of fewer.
template <class T>
void any_tiles(int lanes, int rows, tile_column<T> const& x) {
  using B = blocking<T>;
  auto const of = [&]<int C>() {
    if constexpr (C <= B::C) {
      using enum tile_reads;
      if (rows <= (B::mr > 4 ? 4 : 2)) low_tile<T, C>(rows, x);
      else if constexpr (2 * C <= B::C) panel_tiles<T, C, anyhow>(x);
      else if (x.a.row == 1 && x.a.col == B::mr && x.b_row == C * B::W) panel_tiles<T, C, packed>(x);
      else if (x.a.row == 1) panel_tiles<T, C, by_columns>(x);
      else panel_tiles<T, C, by_rows>(x);
    }
  };
  if (lanes == 4) of.template operator()<4>();
  else if (lanes == 3) of.template operator()<3>();
  else if (lanes == 2) of.template operator()<2>();
  else of.template operator()<1>();
}

/// Where the sums of one block of k go: into `partial` (not the last block), or through the epilogue into C.
template <class T>
struct block_sums {
  T* partial;
  Index partial_row, partial_column;  // its first column is this column of C
  bool first, last;
};

template <class T, class Epilogue>
void finish_tile(T const* buffer, int width, int rows, int columns, Index m, Index n, block_sums<T> const to,
                 T* c, Index c_row, Epilogue const epilogue) {
  constexpr int W = blocking<T>::W;
  if (to.first && to.last && columns == width) {  // the common case of products that are not deep
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < columns; j += W)
        epilogue(lane<T>::load_aligned(buffer + r * width + j), m + r, n + j)
            .store_unaligned(c + (m + r) * c_row + n + j);
    return;
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; j += W) {
      int const count = columns - j < W ? columns - j : W;
      lane<T> sum = lane<T>::load_aligned(buffer + r * width + j);
      T* const partial = to.partial + (m + r) * to.partial_row + (n + j - to.partial_column);
      if (!to.first) sum = sum + (count == W ? lane<T>::load_unaligned(partial) : load_n(partial, count));
      if (to.last) finish_and_put(epilogue, sum, c + (m + r) * c_row + n + j, m + r, n + j, count);
      else if (count == W) sum.store_unaligned(partial);
      else store_n(partial, sum, count);
    }
  }
}

/// Whether an epilogue may read the C it is about to overwrite; then partial sums cannot live there.
template <class Epilogue>
constexpr bool epilogue_reads_c() {
  if constexpr (requires { Epilogue::reads_c; }) return Epilogue::reads_c;
  else return true;
}

/// Elements of workspace that suffice for every C (m,n) = A (m,k) B (k,n) of extents up to these; -1 is any extent, of
/// m only where the epilogue does not read C. A smaller product may need more than a larger one: it has other blocks.
template <class T, class Epilogue>
constexpr Index blocked_workspace_up_to(Index m, Index n, Index k) {
  using B = blocking<T>;
  auto const up_to = [](Index x, Index most) { return x < 0 || x > most ? most : x > 0 ? x : 1; };
  Index const depth = up_to(k, B::kc), most_of_a = B::of_a + B::mr * depth;
  Index const of_a = up_to(m < 0 ? m : round_up(m > 0 ? m : 1, B::mr) * depth, most_of_a);
  Index const columns = round_up(up_to(n, B::nc), B::nr);
  Index const partial = epilogue_reads_c<Epilogue>() && (k < 0 || k > B::kc) ? m * columns : 0;
  return round_up(of_a + B::W, B::W) + columns * depth + partial;
}

/// Elements of workspace for C (m,n) = A (m,k) B (k,n); an extent that is not known yet is -1.
template <class T, class Epilogue>
constexpr Index blocked_workspace(Index m, Index n, Index k) {
  if (m < 0 || n < 0 || k < 0) return blocked_workspace_up_to<T, Epilogue>(m, n, k);
  blocks_of<T> const blocks(m, n, k);
  return blocks.packed_a() + blocks.packed_b() +
         (epilogue_reads_c<Epilogue>() && k > blocking<T>::kc ? m * blocks.nc : 0);
}

/// One product: its blocks, which of its operands are read in place, and where the others are packed.
template <class T>
struct blocked_product {
  blocks_of<T> blocks;
  bool a_in_place, b_in_place;
  T *packed_a, *packed_b;
  T* c;
  Index c_row;
};

/// The product of one block of A and one of B, tile by tile: along columns of C, so that a panel of B is read again at
/// once, or along its rows. Along columns the first block of rows packs the panels of B, the first right before it is
/// read and each other during the one before it. `after` is the panel that follows those of this block.
template <class T, class Epilogue>
void multiply_blocks(blocked_product<T> const& all, Index rows, Index columns, Index depth, strided<T> a,
                     strided<T> b, panel_ahead<T> const& after, Index m, Index n, block_sums<T> const& to,
                     Epilogue const& epilogue) {
  using B = blocking<T>;
  // Sums that nothing is done with go where they belong at once.
  constexpr bool is_plain = std::is_same_v<Epilogue, store_sum>;
  alignas(64) T buffer[B::mr * B::nr];
  // Two rows more than whole tiles: with those of one of these they are two low tiles of four, which take less time,
  // for each tile waits for B; not where multiplying takes half as long (Zen 5, 32 x 128 x 784: 28.4 us, then 26.6).
  bool const by_four = !on_zen5 && all.a_in_place && B::mr == 6 && rows % B::mr == 2 && rows > B::mr;
  Index const last = rows - rows % B::mr - (by_four ? B::mr : 0);
  if (!all.a_in_place) pack_rows(a, rows, depth, all.packed_a);
  else if (!by_four)  // the panel that is not whole, if there is one, is always packed
    pack_rows(strided<T>{a.at + last * a.row, a.row, a.col}, rows - last, depth, all.packed_a + last * depth);
  Index number = 0;  // of the panel
  auto const packed_panel = [&](Index which, Index j) {
    return all.packed_b + all.blocks.packed_at(which, j, depth);
  };
  // `count` tiles of so many rows from row i and column j on.
  auto const tiles = [&](Index i, int height, Index j, int lanes, Index count, panel_ahead<T> const& ahead) {
    int const width = lanes * B::W, valid = columns - j < width ? static_cast<int>(columns - j) : width;
    bool const b_here = all.b_in_place && valid == width, a_here = all.a_in_place && (i < last || by_four);
    T* const out = to.first && to.last ? all.c + (m + i) * all.c_row + n + j
                                       : to.partial + (m + i) * to.partial_row + (n + j - to.partial_column);
    Index const out_row = to.first && to.last ? all.c_row : to.partial_row;
    tile_column<T> x{
        count,
        a_here ? B::mr * a.row : B::mr * depth,
        a_here ? strided<T>{a.at + i * a.row, a.row, a.col} : strided<T>{all.packed_a + i * depth, 1, B::mr},
        b_here ? b.at + j * b.col : packed_panel(number, j),
        b_here ? b.row : width,
        depth,
        {out, out_row, !to.first},
        {out, out_row},
        ahead.of_tiles(count, depth / B::unroll),
        i / B::mr};
    bool const in_place = (is_plain || !to.last) && valid == width;
    if (in_place && height % 2 == 0) return any_tiles<T>(lanes, height, x);
    x.count = 1, x.to = {buffer, width, false};
    for (Index t = 0; t < count; ++t, ++x.tile, x.a.at += x.next) {
      Index const row = i + t * B::mr;
      x.asked.at = out + t * B::mr * out_row;
      any_tiles<T>(lanes, height, x);
      finish_tile(buffer, width, height, valid, m + row, n + j, to, all.c, all.c_row, epilogue);
    }
  };
  panel_ahead<T> const nothing{};
  // The tiles below the whole ones, of a panel.
  auto const low_tiles = [&](Index j, int lanes) {
    for (Index i = last; i < rows; i += by_four ? 4 : B::mr)
      tiles(i, by_four ? 4 : static_cast<int>(rows - i), j, lanes, 1, nothing);
  };
  if (all.blocks.along_rows) {
    for (Index i = 0; i < last; i += B::mr)
      for (Index j = 0; j < columns;) {
        int const lanes = panel_lanes_of<T>(columns - j);
        tiles(i, B::mr, j, lanes, 1, nothing);
        j += lanes * B::W;
      }
    for (Index j = 0; j < columns;) {
      int const lanes = panel_lanes_of<T>(columns - j);
      low_tiles(j, lanes);
      j += lanes * B::W;
    }
    return;
  }
  // Only tiles that look ahead can pack.
  bool const packs_ahead = m == 0 && !all.b_in_place && b.col == 1 && last > 0 && depth >= B::unroll &&
                           !(all.a_in_place && a.row == 1);
  bool is_packed = false;
  for (Index j = 0; j < columns; ++number) {
    int const lanes = panel_lanes_of<T>(columns - j);
    Index const width = lanes * Index(B::W), here = columns - j < width ? columns - j : width;
    strided<T> panel{b.at + j * b.col, b.row, b.col};
    if (m == 0 && !is_packed) pack_all_columns(panel, depth, here, all.b_in_place, packed_panel(number, j));
    panel.at += here * b.col;
    Index const left = columns - j - here;
    panel_ahead<T> ahead = after;
    is_packed = false;
    if (left > 0) {
      Index const next = panel_lanes_of<T>(left) * Index(B::W);
      is_packed = packs_ahead && next <= left && 2 * lanes > B::C;
      ahead = {panel, next < left ? next : left, m > 0 ? 0 : depth,
               is_packed ? packed_panel(number + 1, j + width) : nullptr};
    }
    if (last > 0) tiles(0, B::mr, j, lanes, last / B::mr, ahead);
    low_tiles(j, lanes);
    j += width;
  }
}

template <class T, class Epilogue>
void gemm_blocked(Index m, Index n, Index k, strided<T> a, strided<T> b, T* c, Index c_row, T* workspace,
                  Epilogue const& epilogue) {
  using B = blocking<T>;
  blocks_of<T> const blocks(m, n, k);
  Index const kc = blocks.kc, mc = blocks.mc, nc = blocks.nc;
  T* const packed_b = workspace + blocks.packed_a();
  constexpr bool reads_c = epilogue_reads_c<Epilogue>();
  // Packing pays when an operand does not fit the second cache or is read often.
  constexpr Index near = 256 * 1024 / static_cast<Index>(sizeof(T));
  bool const a_in_place =
      (a.row == 1 || a.col == 1) && (m * k <= near || n <= 2 * B::nr || (a.col == 1 && a.row <= B::kc));
  // Rows of B that are close are as good where they are, if they are not read often; for few rows of A any are, but for
  // such as are pages apart, which compete for a few lines of the caches.
  Index const apart = b.row * static_cast<Index>(sizeof(T)), few = (apart % 4096 == 0 ? 4 : 6) * B::mr;
  bool const b_in_place = b.col == 1 && (n * k <= near || m <= few || (m <= mc && apart <= 2048));
  blocked_product<T> const all{blocks, a_in_place, b_in_place, workspace, packed_b, c, c_row};
  for (Index jc = 0; jc < n; jc += nc) {
    Index const columns = n - jc < nc ? n - jc : nc;
    Index pc = 0;
    do {  // k == 0 is one empty block: C still goes through the epilogue
      Index const depth = k - pc < kc ? k - pc : kc;
      block_sums<T> const to{reads_c ? packed_b + blocks.packed_b() : c, reads_c ? nc : c_row,
                             reads_c ? jc : 0, pc == 0, pc + depth >= k};
      auto const block_at = [&](Index p, Index j) {
        return strided<T>{b.at + p * b.row + j * b.col, b.row, b.col};
      };
      if (blocks.along_rows) pack_all_columns(block_at(pc, jc), depth, columns, b_in_place, packed_b);
      // What the last tiles ask for.
      panel_ahead<T> after{};
      Index const deep = k - pc - depth;
      if (deep > 0)
        after = {block_at(pc + depth, jc), columns < B::nr ? columns : Index(B::nr), deep < kc ? deep : kc};
      else if (n - jc >= nc + B::nr) after = {block_at(0, jc + nc), B::nr, kc};
      for (Index ic = 0; ic < m; ic += mc)
        multiply_blocks(all, m - ic < mc ? m - ic : mc, columns, depth,
                        strided<T>{a.at + ic * a.row + pc * a.col, a.row, a.col}, block_at(pc, jc),
                        ic + mc < m ? panel_ahead<T>{} : after, ic, jc, to, epilogue);
      pc += depth;
    } while (pc < k);
  }
}

/// Few rows of A: no packing of B pays. Otherwise the blocked product.
template <class T, class Epilogue>
void gemm_run_time(Index m, Index n, Index k, strided<T> a, strided<T> b, T* c, Index c_row, T* workspace,
                   Epilogue const& epilogue) {
  if (m <= 8 && a.col == 1 && b.row == 1) {
    gemm_dot(m, n, k, a.at, a.row, b.at, b.col, along_row<T, Epilogue>{c, c_row, epilogue});
  } else if (m == 1 && b.col == 1) {
    gemm_row(n, k, a.at, a.col, b.at, b.row, along_row<T, Epilogue>{c, c_row, epilogue});
  } else if (n == 1 && a.col == 1 && b.row == 1) {
    gemm_dot(Index(1), m, k, b.at, Index(0), a.at, a.row, down_column<T, Epilogue>{c, c_row, epilogue});
  } else if (n == 1 && a.row == 1) {
    gemm_row(m, k, b.at, b.row, a.at, a.col, down_column<T, Epilogue>{c, c_row, epilogue});
  } else {
    gemm_blocked(m, n, k, a, b, c, c_row, workspace, epilogue);
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
