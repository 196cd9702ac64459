// SPDX-License-Identifier: BSL-1.0
// Gradients of attention of 16-bit floats on Hopper GPUs, as kernels/cuda/tensor_attention_back.hpp has them: weights
// are computed again, by blocks of queries for the gradient of those and by blocks of keys for the gradients of keys
// and values, so that each is summed in one order. Of keys the scores are computed turned, so that they are where the
// next product wants its left factor.
#pragma once

#include <dfdx/kernels/cuda/tensor_attention_back.hpp>
#include <dfdx/kernels/cuda/warpgroup_attention.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// WarpgroupAttendBack - what its two kernels share, and how they are started: blocks of 128 queries against 64 keys at
/// a time, and of 128 keys against 64 queries.
template <class Code, class T>
struct WarpgroupAttendBack {
  using Rows = WarpgroupRows<Code, T>;
  using A = typename Rows::A;
  using F = typename Rows::F;
  using Plain = TensorAttendBackKernel<Code, T>;
  static constexpr bool fits = Rows::fits && Plain::fits;
  static constexpr int rows = Rows::rows, tile = 64, line = Rows::line;
  static constexpr int size_blocks = Rows::size_blocks, width_blocks = Rows::width_blocks;

  /// Queries as many as whole tiles have: of those that are not there the weights are 0.
  static DFDX_INLINE constexpr index_t padded(index_t const* s) {
    return Rows::tiles_of(F::queries(s)) * rows;
  }
  /// Of each query what its scaled scores are less (shift_of), and then of each what its row's gradients sum to.
  static DFDX_INLINE float* numbers(OwnArguments const& x) {
    auto const at = reinterpret_cast<std::uintptr_t>(x.workspace);
    return reinterpret_cast<float*>((at + 15) / 16 * 16);
  }
  static constexpr index_t workspace(index_t const* s) {
    return 16 + F::heads(s) * padded(s) * 2 * static_cast<index_t>(sizeof(float));
  }

  struct Numbers {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = padded(s), count = F::queries(s), all = F::heads(s) * n;
      float* const to = numbers(x);
      for (index_t i = block() * threads + thread(); i < all; i += blocks() * threads) {
        index_t const query = i % n, at = i / n * count + query;
        bool const is_there = query < count;
        to[i] = is_there ? A::shift_of(F::sums(x, at)) : -A::least;
        to[all + i] = is_there ? F::sums(x, at + F::rows(s)) : 0.f;
      }
    }
  };

  struct Given {
    CUtensorMap q, ct, k, v;
    OwnArguments x;
  };
  struct Queries;
  struct Keys;

  /// start_there - as WarpgroupAttendKernel's.
  static bool start_there(OwnArguments const& x, cudaStream_t stream, cudaError_t& said) {
    index_t const* const s = x.symbols;
    if (!Rows::are_asked_for(s)) return false;
    Device const device = cuda_runtime::current_device();
    if (!is_there<Queries, Given>(device) || !is_there<Keys, Given>(device)) return false;
    Given of_queries, of_keys;
    if (!maps(of_queries, x, rows, tile) || !maps(of_keys, x, tile, rows)) return false;
    index_t const blocks = cuda_runtime::multiprocessors(device);
    auto const least = [&](index_t n) { return n < blocks ? n : blocks; };
    said = start<Numbers>(x, blocks_for(F::heads(s) * padded(s), Numbers::threads), stream);
    if (said == cudaSuccess)
      said = start<Queries>(of_queries, least(F::heads(s) * Rows::tiles_of(F::queries(s))), stream);
    if (said == cudaSuccess)
      said = start<Keys>(of_keys, least(F::key_heads(s) * Rows::tiles_of(F::keys(s))), stream);
    return true;
  }

 private:
  static bool maps(Given& to, OwnArguments const& x, int of_queries, int of_keys) {
    to.x = x;
    return Rows::template map<0>(to.q, x, of_queries) && Rows::template map<3>(to.ct, x, of_queries) &&
           Rows::template map<1>(to.k, x, of_keys) && Rows::template map<2>(to.v, x, of_keys);
  }

#if defined(DFDX_HAS_WARPGROUPS)
  // This warp's 16 rows from `upper` on, of `count`, times `by`, to rows of n of the result from element `at` on.
  template <int N>
  static DFDX_INLINE void store(OwnArguments const& x, index_t at, index_t upper, index_t count, index_t n,
                                float by, float const (&sums)[N][4]) {
    float const of_rows[2] = {by, by};
    A::store_rows(static_cast<T*>(x.base[5]) + at, upper, count, n, of_rows, sums);
  }
#endif

 public:
  /// Queries - the gradient of queries.
  struct Queries : WarpgroupKernel {
    static constexpr int stages = 3;  // one is added, one is weighed, one comes
    static constexpr int of_q = size_blocks * rows * line, of_ct = width_blocks * rows * line,
                         of_k = size_blocks * tile * line, of_v = width_blocks * tile * line;
    static constexpr int dynamic_bytes = of_q + of_ct + stages * (of_k + of_v) + 1024;

    static DFDX_INLINE void run([[maybe_unused]] Given const& given) {
#if defined(DFDX_HAS_WARPGROUPS)
      divided<Queries>(given);
#endif
    }

#if defined(DFDX_HAS_WARPGROUPS)
    struct Barriers {
      Pipe<1> q;
      Pipe<stages> k;
      DFDX_INLINE void begin(int warps) { q.begin(warps), k.begin(warps); }
    };
    static DFDX_INLINE std::byte* k_room(std::byte* memory, int place) {
      return memory + of_q + of_ct + place * (of_k + of_v);
    }

    static DFDX_INLINE void bring(Given const& given, std::byte* memory, Barriers& b) {
      index_t const* const s = given.x.symbols;
      index_t const sharing = F::sharing(s);
      Turn<stages> turn;
      for (auto items = Rows::query_items(s); items.more(); items.next()) {
        auto const at = Rows::query_item(given.x, items.item);
        TransferBarrier& q = b.q.full[0];
        b.q.used[0].wait(items.parity() ^ 1);
        q.arrive_and_expect(of_q + of_ct);
        Rows::template bring<size_blocks, rows>(memory, given.q, at.first,
                                                Rows::template place<0>(at.head, s), q);
        Rows::template bring<width_blocks, rows>(memory + of_q, given.ct, at.first,
                                                 Rows::template place<3>(at.head, s), q);
        BulkPlace const k = Rows::template place<1>(at.head / sharing, s),
                        v = Rows::template place<2>(at.head / sharing, s);
        for (index_t k0 = 0; k0 < at.end; k0 += tile, turn.next()) {
          std::byte* const to = k_room(memory, turn.place);
          TransferBarrier& come = b.k.full[turn.place];
          b.k.used[turn.place].wait(turn.parity ^ 1);
          come.arrive_and_expect(of_k + of_v);
          Rows::template bring<size_blocks, tile>(to, given.k, k0, k, come);
          Rows::template bring<width_blocks, tile>(to + of_k, given.v, k0, v, come);
        }
      }
    }

    static DFDX_INLINE void multiply(Given const& given, std::byte* memory, Barriers& b) {
      OwnArguments const& x = given.x;
      index_t const* const symbols = x.symbols;
      auto const o = op::AttentionOptions::of(x.attrs);
      auto const scale = static_cast<float>(o.scale) * A::log2_e;
      bool const speaks = thread() % warp_size == 0;
      std::byte const *const q = memory + Rows::group() * 64 * line, *const ct = q + of_q;
      index_t const n = padded(symbols), queries = F::queries(symbols), size = F::size(symbols);
      float const* const of_rows = numbers(x);
      float s[tile / 8][4], back[tile / 8][4], dq[size_blocks * 8][4];
      std::uint32_t factor[tile / 16][4];
      Turn<stages> scored, added;
      auto const score = [&] {
        std::byte const *const k = k_room(memory, scored.place), *const v = k + of_k;
        b.k.full[scored.place].wait(scored.parity);
        products_begin(s, back);
        Rows::template multiply<size_blocks, rows, tile>(s, q, k);
        products_asked();
        Rows::template multiply<width_blocks, rows, tile>(back, ct, v);
        products_asked();
        scored.next();
      };
      auto const add = [&] {
        products_begin(dq, factor);
        Rows::template add<tile>(dq, factor, k_room(memory, added.place));
        products_asked();
      };
      auto const is_added = [&] {
        products_made<0>(dq, factor);
        if (speaks) b.k.used[added.place].arrive();
        added.next();
      };
      for (auto items = Rows::query_items(symbols); items.more(); items.next()) {
        auto const at = Rows::query_item(x, items.item);
        index_t const upper = at.first + Rows::upper(), row = upper + thread() % warp_size / 4;
        warp_barrier();  // after stores that not all of its threads made
        float shifts[2], less[2];
        DFDX_UNROLL for (int r = 0; r < 2; ++r) {
          index_t const query = at.head * n + row + r * 8;
          shifts[r] = of_rows[query];
          less[r] = of_rows[F::heads(symbols) * n + query];
        }
        auto const weigh = [&](index_t k0) {
          DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
            DFDX_UNROLL for (int i = 0; i < 4; ++i) s[j][i] =
                fast_exp2(A::power_of(s[j][i], scale, shifts[i / 2]));
          }
          if (A::seen(o, upper, k0, tile, symbols) >= tile) return;
          int const seen[2] = {A::seen(o, row, k0, tile, symbols), A::seen(o, row + 8, k0, tile, symbols)};
          DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
            DFDX_UNROLL for (int i = 0; i < 4; ++i) {
              if (A::OfSize::column(j, i) >= seen[i / 2]) s[j][i] = 0;
            }
          }
        };
        auto const pull_back = [&] {
          DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
            DFDX_UNROLL for (int i = 0; i < 4; ++i) back[j][i] = s[j][i] * (back[j][i] - less[i / 2]);
          }
        };
        DFDX_UNROLL for (int j = 0; j < size_blocks * 8; ++j) {
          DFDX_UNROLL for (int i = 0; i < 4; ++i) dq[j][i] = 0;
        }
        b.q.full[0].wait(items.parity());
        score();
        products_made<1>(s);
        weigh(0);
        products_made<0>(back);
        pull_back();
        Rows::rounded(factor, back);
        for (index_t k0 = tile; k0 < at.end; k0 += tile) {
          score();
          add();  // of the tile before, while this one is weighed
          products_made<2>(s);
          weigh(k0);
          products_made<1>(back);
          pull_back();
          is_added();
          Rows::rounded(factor, back);
        }
        if (speaks) b.q.used[0].arrive();
        add();
        is_added();
        store(x, at.head * queries * size, upper, queries, size, static_cast<float>(o.scale), dq);
      }
    }
#endif
  };

  /// Keys - the gradients of keys and values.
  struct Keys : WarpgroupKernel {
    static constexpr int stages = 3;
    static constexpr int of_k = size_blocks * rows * line, of_v = width_blocks * rows * line,
                         of_q = size_blocks * tile * line, of_ct = width_blocks * tile * line,
                         of_numbers = 2 * tile * static_cast<int>(sizeof(float)), of_tile = of_q + of_ct;
    static constexpr int dynamic_bytes = of_k + of_v + stages * (of_tile + of_numbers) + 1024;

    static DFDX_INLINE void run([[maybe_unused]] Given const& given) {
#if defined(DFDX_HAS_WARPGROUPS)
      divided<Keys>(given);
#endif
    }

#if defined(DFDX_HAS_WARPGROUPS)
    struct Barriers {
      Pipe<1> k;
      Pipe<stages> q;
      DFDX_INLINE void begin(int warps) { k.begin(warps), q.begin(warps); }
    };
    // Some keys of a head; queries before `unseen` see none of them. The first keys are seen by the most.
    struct Item {
      index_t head, first, unseen;
    };
    static DFDX_INLINE Item item(OwnArguments const& x, index_t t) {
      auto const o = op::AttentionOptions::of(x.attrs);
      index_t const each = Rows::tiles_of(F::keys(x.symbols)), first = t % each * rows;
      return {t / each, first, o.causal && first > o.offset ? (first - o.offset) / tile * tile : 0};
    }
    static DFDX_INLINE typename Rows::Items key_items(index_t const* s) {
      return {F::key_heads(s) * Rows::tiles_of(F::keys(s))};
    }
    static DFDX_INLINE std::byte* q_room(std::byte* memory, int place) {
      return memory + of_k + of_v + place * of_tile;
    }
    static DFDX_INLINE float* numbers_room(std::byte* memory, int place) {
      return reinterpret_cast<float*>(memory + of_k + of_v + stages * of_tile + place * of_numbers);
    }

    static DFDX_INLINE void bring(Given const& given, std::byte* memory, Barriers& b) {
      index_t const* const s = given.x.symbols;
      index_t const sharing = F::sharing(s), n = padded(s), queries = F::queries(s);
      float const* const of_rows = numbers(given.x);
      Turn<stages> turn;
      for (auto items = key_items(s); items.more(); items.next()) {
        Item const at = item(given.x, items.item);
        TransferBarrier& k = b.k.full[0];
        b.k.used[0].wait(items.parity() ^ 1);
        k.arrive_and_expect(of_k + of_v);
        Rows::template bring<size_blocks, rows>(memory, given.k, at.first,
                                                Rows::template place<1>(at.head, s), k);
        Rows::template bring<width_blocks, rows>(memory + of_k, given.v, at.first,
                                                 Rows::template place<2>(at.head, s), k);
        for (index_t h = at.head * sharing; h < (at.head + 1) * sharing; ++h) {
          BulkPlace const q = Rows::template place<0>(h, s), ct = Rows::template place<3>(h, s);
          for (index_t first = at.unseen; first < queries; first += tile, turn.next()) {
            std::byte* const to = q_room(memory, turn.place);
            float* const of_tile_rows = numbers_room(memory, turn.place);
            TransferBarrier& come = b.q.full[turn.place];
            b.q.used[turn.place].wait(turn.parity ^ 1);
            come.arrive_and_expect(of_tile + of_numbers);
            Rows::template bring<size_blocks, tile>(to, given.q, first, q, come);
            Rows::template bring<width_blocks, tile>(to + of_q, given.ct, first, ct, come);
            bulk_copy(of_tile_rows, of_rows + h * n + first, of_numbers / 2, come);
            bulk_copy(of_tile_rows + tile, of_rows + (F::heads(s) + h) * n + first, of_numbers / 2, come);
          }
        }
      }
    }

    static DFDX_INLINE void multiply(Given const& given, std::byte* memory, Barriers& b) {
      OwnArguments const& x = given.x;
      index_t const* const symbols = x.symbols;
      auto const o = op::AttentionOptions::of(x.attrs);
      auto const scale = static_cast<float>(o.scale) * A::log2_e;
      bool const speaks = thread() % warp_size == 0;
      std::byte const *const k = memory + Rows::group() * 64 * line, *const v = k + of_k;
      index_t const sharing = F::sharing(symbols), queries = F::queries(symbols), keys = F::keys(symbols),
                    size = F::size(symbols), width = F::width(symbols);
      float s[tile / 8][4], back[tile / 8][4], dk[size_blocks * 8][4], dv[width_blocks * 8][4];
      std::uint32_t weights[tile / 16][4], factor[tile / 16][4];
      Turn<stages> scored, added;
      auto const is_used = [&] {
        if (speaks) b.q.used[added.place].arrive();
        added.next();
      };
      // Whether the products of a tile are still being made while the next is scored: there are registers for that.
      constexpr bool flows = size_blocks + width_blocks < 4;
      for (auto items = key_items(symbols); items.more(); items.next()) {
        Item const at = item(x, items.item);
        index_t const upper = at.first + Rows::upper(), key = upper + thread() % warp_size / 4;
        warp_barrier();  // after stores that not all of its threads made
        // Rows are keys here, columns queries.
        auto const weigh = [&](index_t first) {
          float const* const shifts = numbers_room(memory, scored.place);
          bool const all_seen = !o.causal || first + o.offset >= upper + 15;
          DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
            DFDX_UNROLL for (int i = 0; i < 4; ++i) {
              int const c = A::OfSize::column(j, i);
              float const weight = fast_exp2(A::power_of(s[j][i], scale, shifts[c]));
              bool const is_seen = all_seen || first + c + o.offset >= key + i / 2 * 8;
              s[j][i] = is_seen ? weight : 0.f;
            }
          }
        };
        auto const pull_back = [&] {
          float const* const less = numbers_room(memory, scored.place) + tile;
          DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
            DFDX_UNROLL for (int i = 0; i < 4; ++i) back[j][i] =
                s[j][i] * (back[j][i] - less[A::OfSize::column(j, i)]);
          }
        };
        DFDX_UNROLL for (int i = 0; i < 4; ++i) {
          DFDX_UNROLL for (int j = 0; j < size_blocks * 8; ++j) dk[j][i] = 0;
          DFDX_UNROLL for (int j = 0; j < width_blocks * 8; ++j) dv[j][i] = 0;
        }
        b.k.full[0].wait(items.parity());
        index_t const each = at.unseen < queries ? (queries - at.unseen + tile - 1) / tile : 0;
        index_t first = at.unseen;
        for (index_t left = sharing * each; left > 0; --left, first += tile) {
          if (first >= queries) first = at.unseen;  // of the next head
          std::byte const *const q = q_room(memory, scored.place), *const ct = q + of_q;
          b.q.full[scored.place].wait(scored.parity);
          products_begin(s, back);
          Rows::template multiply<size_blocks, rows, tile>(s, k, q);
          products_asked();
          Rows::template multiply<width_blocks, rows, tile>(back, v, ct);
          products_asked();
          products_made<1>(s, dv, dk, weights, factor);
          if (flows && left != sharing * each) is_used();
          weigh(first);  // while products with values are made
          Rows::rounded(weights, s);
          products_begin(dv, weights);
          Rows::template add<tile>(dv, weights, ct);
          products_asked();
          products_made<1>(back);
          pull_back();  // while dv is
          Rows::rounded(factor, back);
          products_begin(dk, factor);
          Rows::template add<tile>(dk, factor, q);
          products_asked();
          scored.next();
          if constexpr (!flows) {
            products_made<0>(dv, dk, weights, factor);
            is_used();
          }
        }
        products_made<0>(dv, dk, weights, factor);
        if (flows && each != 0) is_used();
        if (speaks) b.k.used[0].arrive();
        index_t const of_q = F::rows(symbols) * size, of_k = F::key_heads(symbols) * keys * size;
        store(x, of_q + at.head * keys * size, upper, keys, size, static_cast<float>(o.scale), dk);
        store(x, of_q + of_k + at.head * keys * width, upper, keys, width, 1.f, dv);
      }
    }
#endif
  };
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
