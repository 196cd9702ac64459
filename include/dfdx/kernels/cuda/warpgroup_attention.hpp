// SPDX-License-Identifier: BSL-1.0
// Attention of 16-bit floats on Hopper GPUs (Shah et al. 2024, "FlashAttention-3"): one warp has the copy engine bring
// queries, keys and values, of which the next are on their way; two warpgroups have 64 queries each. A warpgroup weighs
// the scores of a tile while the tensor cores add the values of the tile before, and the two take turns at asking, so
// that one multiplies while the other weighs. Numerics are those of kernels/cuda/tensor_attention.hpp.
#pragma once

#include <dfdx/kernels/cuda/cublas.hpp>
#include <dfdx/kernels/cuda/tensor_attention.hpp>
#include <dfdx/kernels/cuda/tensor_map.hpp>
#include <dfdx/kernels/cuda/warpgroups.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// WarpgroupRows - how rows of up to 128 numbers T of attention's operands lie in memory of the block: lines of 64, of
/// longer ones in two blocks, with zeros behind their ends.
template <class Code, class T>
struct WarpgroupRows {
  using A = TensorAttention<Code, T>;
  using F = typename A::F;
  using W = typename F::W;
  static constexpr bool fits = A::is_narrow && F::size_room <= 128 && F::width_room <= 128 && F::rank <= 5;
  static constexpr int line = cuda_runtime::bulk_line * static_cast<int>(sizeof(T));
  static constexpr int size_blocks = F::size_room <= 64 ? 1 : 2, width_blocks = F::width_room <= 64 ? 1 : 2;
  /// Of the tile that a block has, 64 for each warpgroup that multiplies.
  static constexpr int rows = 128;
  static DFDX_INLINE constexpr index_t tiles_of(index_t n) { return (n + rows - 1) / rows; }

  /// Whether there is something to do, so much that warpgroups are asked for.
  static bool are_asked_for(index_t const* s) {
    index_t const all = F::rows(s) * F::keys(s) * (F::size(s) + F::width(s));
    return all != 0 && all >= cuda_options.warpgroup_attention_from;
  }
  /// Of operand K, for copies of so many rows; false if the copy engine does not take it.
  template <int K>
  static bool map(CUtensorMap& to, OwnArguments const& x, int lines) {
    constexpr int batches = F::rank - 2;
    index_t const* const s = x.symbols;
    cuda_runtime::BulkMatrices m{x.base[K], F::template columns<K>(s), W::template extent<K, batches>(s),
                                 W::template stride<K, batches>(s)};
    if (W::template stride<K, F::rank - 1>(s) != 1) return false;
    if constexpr (batches > 0) along<K, batches - 1>(m, 0, s);
    if constexpr (batches > 1) along<K, batches - 2>(m, 1, s);
    if constexpr (batches > 2) along<K, batches - 3>(m, 2, s);
    return cuda_runtime::tensor_map(to, m, lines);
  }

#if defined(DFDX_HAS_WARPGROUPS)
  /// Where matrix `index` of operand K is among those of its map.
  template <int K>
  static DFDX_INLINE BulkPlace place(index_t index, index_t const* s) {
    constexpr int batches = F::rank - 2;
    BulkPlace to;
    if constexpr (batches > 0) to.x = axis<K, batches - 1>(index, s);
    if constexpr (batches > 1) to.y = axis<K, batches - 2>(index, s);
    if constexpr (batches > 2) to.z = axis<K, batches - 3>(index, s);
    return to;
  }
  /// Rows `first` and on, as many as the map copies, Lines.
  template <int Blocks, int Lines>
  static DFDX_INLINE void bring(std::byte* to, CUtensorMap const& from, index_t first, BulkPlace matrix,
                                TransferBarrier& done) {
    DFDX_UNROLL for (int i = 0; i < Blocks; ++i) bulk_copy(
        to + i * Lines * line, from, i * cuda_runtime::bulk_line, static_cast<int>(first), matrix, done);
  }
  /// sums = a b^T, of 64 rows a of LinesA and all rows b of LinesB.
  template <int Blocks, int LinesA, int LinesB, int N>
  static DFDX_INLINE void multiply(float (&sums)[N][4], std::byte const* a, std::byte const* b) {
    static_assert(N * 8 == LinesB);
    DFDX_UNROLL for (int i = 0; i < Blocks * 4; ++i) {
      int const in_a = i / 4 * LinesA * line + i % 4 * 32, in_b = i / 4 * LinesB * line + i % 4 * 32;
      multiply_add_later<T, false, false>(sums, along_k(a + in_a), along_k(b + in_b), i != 0);
    }
  }
  /// sums += f b for the Lines rows b, whose columns sums has; f was summed, and is rounded (`rounded`).
  template <int Lines, int N>
  static DFDX_INLINE void add(float (&sums)[N][4], std::uint32_t const (&f)[Lines / 16][4],
                              std::byte const* b) {
    DFDX_UNROLL for (int i = 0; i < Lines / 16; ++i)
        multiply_add_later<T, true>(sums, f[i], across_k(b + i * 16 * line, Lines * line));
  }
  template <int N>
  static DFDX_INLINE void rounded(std::uint32_t (&to)[N / 2][4], float const (&s)[N][4]) {
    DFDX_UNROLL for (int i = 0; i < N / 2; ++i) {
      DFDX_UNROLL for (int j = 0; j < 4; ++j) to[i][j] =
          pair_of<T>(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1]);
    }
  }
  /// Which of the warpgroups that multiply this thread is of. Each has 64 of the 128 rows of a tile: the first of this
  /// warp's 16.
  static DFDX_INLINE int group() { return thread() / warpgroup_size - 1; }
  static DFDX_INLINE int upper() { return thread() / warp_size * 16 - warpgroup_size / warp_size * 16; }

  /// Items - those of a block, some rows of a head each: it takes its next in the other order than the last, so that no
  /// block has the longest of each round. With them goes the parity of what is brought once for each.
  struct Items {
    index_t all, item = block(), round = 0;
    DFDX_INLINE bool more() const { return item < all; }
    DFDX_INLINE void next() {
      ++round;
      item = round * blocks() + (round % 2 == 0 ? block() : blocks() - 1 - block());
    }
    DFDX_INLINE std::uint32_t parity() const { return static_cast<std::uint32_t>(round % 2); }
  };
  /// OfQueries - an item: a tile of queries of a head, of causal ones the last first, which see the most keys, and
  /// where the keys end that they see.
  struct OfQueries {
    index_t head, first, end;
  };
  static DFDX_INLINE Items query_items(index_t const* s) { return {F::heads(s) * tiles_of(F::queries(s))}; }
  static DFDX_INLINE OfQueries query_item(OwnArguments const& x, index_t item) {
    auto const o = op::AttentionOptions::of(x.attrs);
    index_t const each = tiles_of(F::queries(x.symbols)), keys = F::keys(x.symbols),
                  first = (each - 1 - item % each) * rows, last_seen = first + rows + o.offset;
    return {item / each, first, o.causal && last_seen < keys ? last_seen : keys};
  }
#endif

 private:
  template <int K, int D>
  static void along(cuda_runtime::BulkMatrices& m, std::size_t i, index_t const* s) {
    m.counts[i] = W::template extent<K, D>(s);
    m.steps[i] = W::template stride<K, D>(s);
  }
  template <int K, int D>
  static DFDX_INLINE int axis(index_t& index, index_t const* s) {
    index_t const n = W::template extent<K, D>(s), i = W::remainder(index, n);
    index = W::quotient(index, n);
    return static_cast<int>(i);
  }
};

/// WarpgroupAttendKernel - AttendKernel for 16-bit floats T in rows of up to 128: a block for 128 queries of a head,
/// and then others, against 128 keys at a time.
template <class Code, class T>
struct WarpgroupAttendKernel : WarpgroupKernel {
  using Rows = WarpgroupRows<Code, T>;
  using A = typename Rows::A;
  using F = typename Rows::F;
  static constexpr bool fits = Rows::fits;
  static constexpr int rows = Rows::rows, tile = 128, stages = 2, line = Rows::line;
  static constexpr int size_blocks = Rows::size_blocks, width_blocks = Rows::width_blocks;
  static constexpr int of_q = size_blocks * rows * line, of_k = size_blocks * tile * line,
                       of_v = width_blocks * tile * line;
  static constexpr int dynamic_bytes = of_q + stages * (of_k + of_v) + 1024;  // from a multiple of 1024 on

  struct Given {
    CUtensorMap q, k, v;
    OwnArguments x;
  };

  /// start_there - starts it where the program has it for the device that is current, it is asked for and the copy
  /// engine takes the operands; false if not.
  static bool start_there(OwnArguments const& x, cudaStream_t stream, cudaError_t& said) {
    index_t const* const s = x.symbols;
    if (!Rows::are_asked_for(s)) return false;
    Device const device = cuda_runtime::current_device();
    Given given;
    given.x = x;
    if (!is_there<WarpgroupAttendKernel, Given>(device) || !Rows::template map<0>(given.q, x, rows) ||
        !Rows::template map<1>(given.k, x, tile) || !Rows::template map<2>(given.v, x, tile))
      return false;
    index_t const blocks = cuda_runtime::multiprocessors(device),
                  items = F::heads(s) * Rows::tiles_of(F::queries(s));
    said = start<WarpgroupAttendKernel>(given, blocks < items ? blocks : items, stream);
    return true;
  }

  static DFDX_INLINE void run([[maybe_unused]] Given const& given) {
#if defined(DFDX_HAS_WARPGROUPS)
    divided<WarpgroupAttendKernel>(given);
#endif
  }

 private:
#if defined(DFDX_HAS_WARPGROUPS)
  template <class Kernel, class G>
  friend void divided(G const& given);
  struct Barriers {
    Pipe<1> q;
    Pipe<stages> k, v;
    TransferBarrier turn[groups];  // to ask the tensor cores
    DFDX_INLINE void begin(int warps) {
      q.begin(warps), k.begin(warps), v.begin(warps);
      for (auto& one : turn) one.begin(warps / groups);
    }
  };
  static DFDX_INLINE std::byte* k_room(std::byte* memory, int stage) { return memory + of_q + stage * of_k; }
  static DFDX_INLINE std::byte* v_room(std::byte* memory, int stage) {
    return memory + of_q + stages * of_k + stage * of_v;
  }

  static DFDX_INLINE void bring(Given const& given, std::byte* memory, Barriers& b) {
    prefetch_map(given.q), prefetch_map(given.k), prefetch_map(given.v);
    index_t const* const s = given.x.symbols;
    index_t const sharing = F::sharing(s);
    Turn<stages> turn;
    for (auto items = Rows::query_items(s); items.more(); items.next()) {
      auto const at = Rows::query_item(given.x, items.item);
      TransferBarrier& q = b.q.full[0];
      b.q.used[0].wait(items.parity() ^ 1);
      q.arrive_and_expect(of_q);
      Rows::template bring<size_blocks, rows>(memory, given.q, at.first, Rows::template place<0>(at.head, s),
                                              q);
      BulkPlace const k = Rows::template place<1>(at.head / sharing, s),
                      v = Rows::template place<2>(at.head / sharing, s);
      for (index_t k0 = 0; k0 < at.end; k0 += tile, turn.next()) {
        int const i = turn.place;
        b.k.used[i].wait(turn.parity ^ 1);
        b.k.full[i].arrive_and_expect(of_k);
        Rows::template bring<size_blocks, tile>(k_room(memory, i), given.k, k0, k, b.k.full[i]);
        b.v.used[i].wait(turn.parity ^ 1);
        b.v.full[i].arrive_and_expect(of_v);
        Rows::template bring<width_blocks, tile>(v_room(memory, i), given.v, k0, v, b.v.full[i]);
      }
    }
  }

  static DFDX_INLINE void multiply(Given const& given, std::byte* memory, Barriers& b) {
    OwnArguments const& x = given.x;
    auto const o = op::AttentionOptions::of(x.attrs);
    auto const scale = static_cast<float>(o.scale) * A::log2_e;
    bool const speaks = thread() % warp_size == 0;
    std::byte const* const q = memory + Rows::group() * 64 * line;
    float s[tile / 8][4], y[width_blocks * 8][4];
    std::uint32_t weights[tile / 16][4];
    Turn<stages> of_keys, of_values;
    auto const score = [&] {
      b.k.full[of_keys.place].wait(of_keys.parity);
      products_begin(s);
      Rows::template multiply<size_blocks, rows, tile>(s, q, k_room(memory, of_keys.place));
      products_asked();
    };
    auto const scores_are_made = [&](bool are_last) {
      if (speaks) b.k.used[of_keys.place].arrive();
      if (speaks && are_last) b.q.used[0].arrive();
      of_keys.next();
    };
    auto const add_values = [&] {
      b.v.full[of_values.place].wait(of_values.parity);
      products_begin(y, weights);
      Rows::template add<tile>(y, weights, v_room(memory, of_values.place));
      products_asked();
    };
    auto const values_are_added = [&] {
      products_made<0>(y, weights);
      if (speaks) b.v.used[of_values.place].arrive();
      of_values.next();
    };
    TransferBarrier &mine = b.turn[Rows::group()], &others = b.turn[1 - Rows::group()];
    std::uint32_t turn = Rows::group() == 0 ? 1 : 0;  // the first has it, as if it had been given
    auto const pass_turn = [&] {
      if (speaks) others.arrive();
      turn ^= 1;
    };
    for (auto items = Rows::query_items(x.symbols); items.more(); items.next()) {
      auto const at = Rows::query_item(x, items.item);
      index_t const upper = at.first + Rows::upper();
      warp_barrier();  // after stores that not all of its threads made
      float largest[2] = {A::least, A::least}, total[2] = {}, factor[2];
      DFDX_UNROLL for (int j = 0; j < width_blocks * 8; ++j) {
        DFDX_UNROLL for (int e = 0; e < 4; ++e) y[j][e] = 0;
      }
      b.q.full[0].wait(items.parity());
      mine.wait(turn);
      score();
      pass_turn();
      products_made<0>(s);
      scores_are_made(at.end <= tile);
      A::weigh(s, o, scale, upper, 0, x.symbols, largest, total, factor);
      Rows::rounded(weights, s);
      for (index_t k0 = tile; k0 < at.end; k0 += tile) {
        mine.wait(turn);
        score();
        add_values();
        pass_turn();
        products_made<1>(s);
        scores_are_made(k0 + tile >= at.end);
        A::weigh(s, o, scale, upper, k0, x.symbols, largest, total, factor);
        values_are_added();
        DFDX_UNROLL for (int j = 0; j < width_blocks * 8; ++j) {
          DFDX_UNROLL for (int e = 0; e < 4; ++e) y[j][e] *= factor[e / 2];
        }
        Rows::rounded(weights, s);
      }
      add_values();
      values_are_added();
      A::store(x, at.head, upper, scale, y, largest, total);
    }
  }
#endif
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
