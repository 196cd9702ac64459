// SPDX-License-Identifier: BSL-1.0
// Attention of 16-bit floats on Hopper GPUs (Shah et al. 2024, "FlashAttention-3", without its overlap of two tiles in
// one warpgroup): one warp has the copy engine bring queries, keys and values, of which the next are on their way; two
// warpgroups have 64 queries each, and one multiplies while the other weighs. Numerics are those of
// kernels/cuda/tensor_attention.hpp.
#pragma once

#include <dfdx/kernels/cuda/cublas.hpp>
#include <dfdx/kernels/cuda/tensor_attention.hpp>
#include <dfdx/kernels/cuda/tensor_map.hpp>
#include <dfdx/kernels/cuda/warpgroups.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// WarpgroupAttendKernel - AttendKernel for 16-bit floats T in rows of up to 128: a block for 128 queries of a head,
/// and then others, against 128 keys at a time.
template <class Code, class T>
struct WarpgroupAttendKernel {
  using A = TensorAttention<Code, T>;
  using F = typename A::F;
  using W = typename F::W;
  static constexpr bool fits = A::is_narrow && F::size_room <= 128 && F::width_room <= 128 && F::rank <= 5;
  static constexpr int rows = 128, tile = 128, groups = 2, threads = (1 + groups) * warpgroup_size;
  static constexpr int least_blocks = 1, stages = 2;
  static constexpr bool arguments_in_place = true;  // the copy engine reads the maps
  // Rows in memory of the block: lines of 64 numbers, of 128 if they are longer in two blocks; zeros behind their ends.
  static constexpr int line = cuda_runtime::bulk_line * static_cast<int>(sizeof(T));
  static constexpr int size_blocks = F::size_room <= 64 ? 1 : 2, width_blocks = F::width_room <= 64 ? 1 : 2;
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
    index_t const all = F::rows(s) * F::keys(s) * (F::size(s) + F::width(s));
    if (all == 0 || all < cuda_options.warpgroups_from) return false;
    Device const device = cuda_runtime::current_device();
    Given given;
    given.x = x;
    if (!is_there<WarpgroupAttendKernel, Given>(device) || !map<0>(given.q, x, rows) ||
        !map<1>(given.k, x, tile) || !map<2>(given.v, x, tile))
      return false;
    index_t const blocks = cuda_runtime::multiprocessors(device), items = F::heads(s) * tiles(s);
    said = start<WarpgroupAttendKernel>(given, blocks < items ? blocks : items, stream);
    return true;
  }

  static DFDX_INLINE void run([[maybe_unused]] Given const& given) {
#if defined(DFDX_HAS_WARPGROUPS)
    divided<WarpgroupAttendKernel>(given);
#endif
  }

 private:
  static DFDX_INLINE constexpr index_t tiles(index_t const* s) { return (F::queries(s) + rows - 1) / rows; }

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
  template <int K, int D>
  static void along(cuda_runtime::BulkMatrices& m, std::size_t i, index_t const* s) {
    m.counts[i] = W::template extent<K, D>(s);
    m.steps[i] = W::template stride<K, D>(s);
  }

#if defined(DFDX_HAS_WARPGROUPS)
  template <class Kernel, class G>
  friend void divided(G const& given);
  struct Barriers {
    Pipe<1> q;
    Pipe<stages> k, v;
    DFDX_INLINE void begin(int warps) { q.begin(warps), k.begin(warps), v.begin(warps); }
  };
  static DFDX_INLINE std::byte* k_room(std::byte* memory, int stage) { return memory + of_q + stage * of_k; }
  static DFDX_INLINE std::byte* v_room(std::byte* memory, int stage) {
    return memory + of_q + stages * of_k + stage * of_v;
  }

  // Some queries of a head, of causal ones the last first, which see the most keys. Blocks take their next items in the
  // other order than the last, so that none has the longest each time.
  struct Item {
    index_t head, first, end;
  };
  static DFDX_INLINE index_t item_of(index_t round) {
    return round * blocks() + (round % 2 == 0 ? block() : blocks() - 1 - block());
  }
  static DFDX_INLINE Item item(OwnArguments const& x, index_t t) {
    auto const o = op::AttentionOptions::of(x.attrs);
    index_t const each = tiles(x.symbols), keys = F::keys(x.symbols), first = (each - 1 - t % each) * rows;
    index_t const last_seen = first + rows + o.offset;
    return {t / each, first, o.causal && last_seen < keys ? last_seen : keys};
  }
  static DFDX_INLINE index_t items(OwnArguments const& x) { return F::heads(x.symbols) * tiles(x.symbols); }

  template <int K>
  static DFDX_INLINE BulkPlace place(index_t index, index_t const* s) {
    constexpr int batches = F::rank - 2;
    BulkPlace to;
    if constexpr (batches > 0) to.x = axis<K, batches - 1>(index, s);
    if constexpr (batches > 1) to.y = axis<K, batches - 2>(index, s);
    if constexpr (batches > 2) to.z = axis<K, batches - 3>(index, s);
    return to;
  }
  template <int K, int D>
  static DFDX_INLINE int axis(index_t& index, index_t const* s) {
    index_t const n = W::template extent<K, D>(s), i = W::remainder(index, n);
    index = W::quotient(index, n);
    return static_cast<int>(i);
  }
  template <int Blocks, int Lines>
  static DFDX_INLINE void bring_rows(std::byte* to, CUtensorMap const& from, index_t first, BulkPlace matrix,
                                     TransferBarrier& done) {
    done.arrive_and_expect(Blocks * Lines * line);
    DFDX_UNROLL for (int i = 0; i < Blocks; ++i) bulk_copy(
        to + i * Lines * line, from, i * cuda_runtime::bulk_line, static_cast<int>(first), matrix, done);
  }

  static DFDX_INLINE void bring(Given const& given, std::byte* memory, Barriers& b) {
    Turn<stages> turn;
    Turn<1> of_queries;
    prefetch_map(given.q), prefetch_map(given.k), prefetch_map(given.v);
    index_t const* const s = given.x.symbols;
    index_t const all = items(given.x), sharing = F::sharing(s);
    index_t round = 0;
    for (index_t t = block(); t < all; t = item_of(++round), of_queries.next()) {
      Item const at = item(given.x, t);
      b.q.used[0].wait(of_queries.parity ^ 1);
      bring_rows<size_blocks, rows>(memory, given.q, at.first, place<0>(at.head, s), b.q.full[0]);
      BulkPlace const k = place<1>(at.head / sharing, s), v = place<2>(at.head / sharing, s);
      for (index_t k0 = 0; k0 < at.end; k0 += tile, turn.next()) {
        b.k.used[turn.place].wait(turn.parity ^ 1);
        bring_rows<size_blocks, tile>(k_room(memory, turn.place), given.k, k0, k, b.k.full[turn.place]);
        b.v.used[turn.place].wait(turn.parity ^ 1);
        bring_rows<width_blocks, tile>(v_room(memory, turn.place), given.v, k0, v, b.v.full[turn.place]);
      }
    }
  }

  static DFDX_INLINE void multiply(Given const& given, std::byte* memory, Barriers& b) {
    OwnArguments const& x = given.x;
    auto const o = op::AttentionOptions::of(x.attrs);
    auto const scale = static_cast<float>(o.scale) * A::log2_e;
    int const group = thread() / warpgroup_size - 1;
    int const upper_of_warp = group * 64 + thread() % warpgroup_size / warp_size * 16;
    bool const speaks = thread() % warp_size == 0;
    std::byte const* const q = memory + group * 64 * line;
    Turn<stages> turn;
    Turn<1> of_queries;
    index_t const all = items(x);
    index_t round = 0;
    for (index_t t = block(); t < all; t = item_of(++round), of_queries.next()) {
      Item const at = item(x, t);
      index_t const upper = at.first + upper_of_warp;
      warp_barrier();  // after stores that not all of its threads made
      float largest[2] = {A::least, A::least}, total[2] = {};
      float y[width_blocks * 8][4] = {};
      b.q.full[0].wait(of_queries.parity);
      for (index_t k0 = 0; k0 < at.end; k0 += tile, turn.next()) {
        b.k.full[turn.place].wait(turn.parity);
        std::byte const* const k = k_room(memory, turn.place);
        float s[tile / 8][4];
        products_begin(s);
        DFDX_UNROLL for (int i = 0; i < size_blocks * 4; ++i) {
          int const in_q = i / 4 * rows * line + i % 4 * 32, in_k = i / 4 * tile * line + i % 4 * 32;
          multiply_add_later<T, false, false>(s, along_k(q + in_q), along_k(k + in_k), i != 0);
        }
        products_asked();
        products_made<0>(s);
        if (speaks) b.k.used[turn.place].arrive();
        if (speaks && k0 + tile >= at.end) b.q.used[0].arrive();
        float factor[2];
        A::weigh(s, o, scale, upper, k0, x.symbols, largest, total, factor);
        DFDX_UNROLL for (int j = 0; j < width_blocks * 8; ++j) {
          DFDX_UNROLL for (int i = 0; i < 4; ++i) y[j][i] *= factor[i / 2];
        }
        std::uint32_t weights[tile / 16][4];
        DFDX_UNROLL for (int i = 0; i < tile / 16; ++i) {
          DFDX_UNROLL for (int j = 0; j < 4; ++j) weights[i][j] =
              pair_of<T>(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1]);
        }
        b.v.full[turn.place].wait(turn.parity);
        std::byte const* const v = v_room(memory, turn.place);
        products_begin(y, weights);
        DFDX_UNROLL for (int i = 0; i < tile / 16; ++i)
            multiply_add_later<T, true>(y, weights[i], across_k(v + i * 16 * line, tile * line));
        products_asked();
        products_made<0>(y, weights);
        if (speaks) b.v.used[turn.place].arrive();
      }
      if (speaks && at.end <= 0) b.q.used[0].arrive();
      A::store(x, at.head, upper, scale, y, largest, total);
    }
  }
#endif
};

/// TensorAttend - attention of 16-bit floats by tensor cores, by the kernel that suits the device.
template <class Code, class T>
struct TensorAttend {
  using Plain = TensorAttendKernel<Code, T>;
  static constexpr bool fits = Plain::tile != 0;

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    using Warpgroups = WarpgroupAttendKernel<Code, T>;
    if constexpr (Warpgroups::fits) {
      cudaError_t said = cudaSuccess;
      if (Warpgroups::start_there(x, stream, said)) return said;
    }
    return start<Plain>(x, blocks_for(Plain::work(x.symbols), Plain::threads), stream);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
