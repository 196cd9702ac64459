// SPDX-License-Identifier: BSL-1.0
// Gradients of attention of 16-bit floats on devices, by tensor cores (Dao 2023): weights are computed again, by blocks
// of queries for the gradient of those and by blocks of keys for the gradients of keys and values, so that each is
// summed in one order. What tiles hold next is on its way while they are used.
//
// Numerics: sums are f32. Weights, and what scores are pulled back to, are rounded to the dtype of the operands before
// products.
#pragma once

#include <dfdx/kernels/cuda/tensor_attention.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// TensorAttendBackKernel - AttendBackKernel for 16-bit floats: a block for 64 queries of a head, or for 64 keys, 16
/// for each warp.
template <class Code, class T>
struct TensorAttendBackKernel {
  using A = TensorAttention<Code, T>;
  using F = typename A::F;
  using OfSize = typename A::OfSize;
  using OfWidth = typename A::OfWidth;
  static constexpr int threads = A::threads, rows = A::rows;
  static constexpr bool fits = A::is_narrow && A::size <= 128 && A::width <= 128;
  static DFDX_INLINE constexpr index_t tiles_of(index_t n) { return (n + rows - 1) / rows; }
  struct OfTiles;

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const *const s = x.symbols, query_blocks = F::heads(s) * tiles_of(F::queries(s)),
                         key_blocks = F::key_heads(s) * tiles_of(F::keys(s));
    cudaError_t said = start<TensorAttendBackKernel>(x, blocks_for(query_blocks, 1), stream);
    if (said == cudaSuccess) said = start<Keys>(x, blocks_for(key_blocks, 1), stream);
    return said;
  }

  static DFDX_INLINE void run(OwnArguments const& x) {
    // Blocks of the last queries, which see the most keys, begin first.
    index_t const each = tiles_of(F::queries(x.symbols)), all = F::heads(x.symbols) * each;
    for (index_t t = block(); t < all; t += blocks()) queries(x, t / each, (each - 1 - t % each) * rows);
  }
  struct Keys {
    static constexpr int threads = A::threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const each = tiles_of(F::keys(x.symbols)), all = F::key_heads(x.symbols) * each;
      for (index_t t = block(); t < all; t += blocks()) keys(x, t / each, t % each * rows);
    }
  };

 private:
  // This warp's sums, times `by`, to rows of n of the result that are `count` from element `at` on.
  template <int Blocks>
  static DFDX_INLINE void store(OwnArguments const& x, index_t at, index_t count, index_t n, float by,
                                float const (&sums)[Blocks][4]) {
    float const of_rows[2] = {by, by};
    A::store_rows(static_cast<T*>(x.base[5]) + at, OfSize::warp() * 16, count, n, of_rows, sums);
  }

  // --- the gradient of queries ---
  static constexpr int key_tile = 32, of_pair = key_tile * (OfSize::pitch + OfWidth::pitch);

  static DFDX_INLINE void queries(OwnArguments const& x, index_t head, index_t first) {
    auto const o = op::AttentionOptions::of(x.attrs);
    static_assert(2 * of_pair <= A::most_elements || !fits);
    // Two pairs of tiles of keys and values; before, the queries and cotangents.
    T* const tiles = reinterpret_cast<T*>(shared<OfTiles, uint4, 2 * of_pair / 8>());
    index_t const* const symbols = x.symbols;
    index_t const keyed = head / F::sharing(symbols), last_seen = first + rows + o.offset,
                  all = F::keys(symbols), end = o.causal && last_seen < all ? last_seen : all,
                  count = F::queries(symbols);
    auto const scale = static_cast<float>(o.scale) * A::log2_e;
    std::uint32_t q[OfSize::steps][4], ct[OfWidth::steps][4];
    barrier();  // until all have used what lies there
    A::template bring<0, rows>(tiles, x, head, first);
    A::template bring<3, rows>(tiles + rows * OfSize::pitch, x, head, first);
    copies_made();
    barrier();
    OfSize::left(q, tiles);
    OfWidth::left(ct, tiles + rows * OfSize::pitch);
    float shifts[2] = {}, less[2] = {};
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      index_t const query = first + OfSize::row(2 * r), at = head * count + query;
      if (query >= count) continue;
      shifts[r] = A::shift_of(F::sums(x, at));
      less[r] = F::sums(x, at + F::rows(symbols));
    }
    barrier();
    auto const bring = [&](int which, index_t k0) {
      T* const to = tiles + which * of_pair;
      A::template bring<1, key_tile>(to, x, keyed, k0);
      A::template bring<2, key_tile>(to + key_tile * OfSize::pitch, x, keyed, k0);
    };
    float dq[OfSize::blocks][4] = {};
    bring(0, 0);
    int which = 0;
    for (index_t k0 = 0; k0 < end; k0 += key_tile, which ^= 1) {
      copies_made();
      barrier();
      if (k0 + key_tile < end) bring(which ^ 1, k0 + key_tile);
      T const *const of_keys = tiles + which * of_pair, *const values = of_keys + key_tile * OfSize::pitch;
      float s[key_tile / 8][4] = {}, back[key_tile / 8][4] = {};
      OfSize::multiply(s, q, of_keys);
      OfWidth::multiply(back, ct, values);
      DFDX_UNROLL for (int j = 0; j < key_tile / 8; ++j) {
        DFDX_UNROLL for (int i = 0; i < 4; ++i) s[j][i] =
            math::exp2(A::power_of(s[j][i], scale, shifts[i / 2]));
      }
      if (A::seen(o, first + OfSize::warp() * 16, k0, key_tile, symbols) < key_tile) {
        int const seen[2] = {A::seen(o, first + OfSize::row(0), k0, key_tile, symbols),
                             A::seen(o, first + OfSize::row(2), k0, key_tile, symbols)};
        DFDX_UNROLL for (int j = 0; j < key_tile / 8; ++j) {
          DFDX_UNROLL for (int i = 0; i < 4; ++i) {
            if (OfSize::column(j, i) >= seen[i / 2]) s[j][i] = 0;
          }
        }
      }
      DFDX_UNROLL for (int j = 0; j < key_tile / 8; ++j) {
        DFDX_UNROLL for (int i = 0; i < 4; ++i) back[j][i] = s[j][i] * (back[j][i] - less[i / 2]);
      }
      OfSize::add(dq, back, of_keys);
    }
    index_t const size = F::size(symbols);
    store(x, (head * count + first) * size, count - first, size, static_cast<float>(o.scale), dq);
  }

  // --- the gradients of keys and values ---
  // Registers hold keys, but not values as well; where rows are long, shared memory has room for 16 queries.
  static constexpr int query_tile = A::size + A::width <= 160 ? 32 : 16;
  static constexpr int of_queries = query_tile * (OfSize::pitch + OfWidth::pitch) + 4 * query_tile;
  static constexpr int of_values = rows * OfWidth::pitch;
  static constexpr int larger(int a, int b) { return a > b ? a : b; }
  static constexpr int keys_room = of_values + larger(2 * of_queries, rows* OfSize::pitch);

  // A tile of queries and of their cotangents, then the logarithms of their sums, and the sums of their rows.
  struct Tile {
    T* queries;
    DFDX_INLINE T* cotangents() const { return queries + query_tile * OfSize::pitch; }
    DFDX_INLINE float* numbers() const {
      return reinterpret_cast<float*>(cotangents() + query_tile * OfWidth::pitch);
    }
    DFDX_INLINE void bring(OwnArguments const& x, index_t head, index_t first) const {
      A::template bring<0, query_tile>(queries, x, head, first);
      A::template bring<3, query_tile>(cotangents(), x, head, first);
      if (int const i = thread(); i < 2 * query_tile) {
        index_t const query = first + i % query_tile;
        // Queries behind the last have weights of 0.
        index_t const *const s = x.symbols, n = F::queries(s);
        if (query >= n) numbers()[i] = i < query_tile ? std::numeric_limits<float>::max() : 0.f;
        else copy_later<4>(numbers() + i, &F::sums(x, F::rows(s) * (i / query_tile) + head * n + query));
      }
    }
  };

  static DFDX_INLINE void keys(OwnArguments const& x, index_t key_head, index_t k0) {
    auto const o = op::AttentionOptions::of(x.attrs);
    static_assert(keys_room <= A::most_elements || !fits);
    T* const values = reinterpret_cast<T*>(shared<OfTiles, uint4, (keys_room + 7) / 8>());
    T* const tiles = values + of_values;  // before, the keys
    auto const scale = static_cast<float>(o.scale) * A::log2_e;
    std::uint32_t k[OfSize::steps][4];
    barrier();  // until all have used what lies there
    A::template bring<1, rows>(tiles, x, key_head, k0);
    A::template bring<2, rows>(values, x, key_head, k0);
    copies_made();
    barrier();
    OfSize::left(k, tiles);
    barrier();
    float dk[OfSize::blocks][4] = {}, dv[OfWidth::blocks][4] = {};
    // Queries before the first that sees a key have no part in it.
    index_t const unseen = o.causal && k0 > o.offset ? (k0 - o.offset) / query_tile * query_tile : 0;
    index_t const *const symbols = x.symbols, n = F::queries(symbols), sharing = F::sharing(symbols);
    index_t const last = unseen < n ? (key_head + 1) * sharing : 0;
    index_t head = key_head * sharing, first = unseen;
    if (head < last) Tile{tiles}.bring(x, head, first);
    int which = 0;
    while (head < last) {
      copies_made();
      barrier();
      index_t next_head = head, next = first + query_tile;
      if (next >= n) ++next_head, next = unseen;
      if (next_head < last) Tile{tiles + (which ^ 1) * of_queries}.bring(x, next_head, next);
      Tile const tile{tiles + which * of_queries};
      float s[query_tile / 8][4] = {}, back[query_tile / 8][4] = {};
      OfSize::multiply(s, k, tile.queries);
      OfWidth::multiply(back, static_cast<T const*>(values), tile.cotangents());
      // A key of this warp is behind what the first query sees.
      bool const hides = o.causal && k0 + OfSize::warp() * 16 + 15 > first + o.offset;
      index_t const ahead = k0 - first - o.offset;
      DFDX_UNROLL for (int j = 0; j < query_tile / 8; ++j) {
        DFDX_UNROLL for (int i = 0; i < 4; ++i) {
          int const query = OfSize::column(j, i);
          s[j][i] = math::exp2(A::power_of(s[j][i], scale, A::shift_of(tile.numbers()[query])));
          if (hides && ahead + OfSize::row(i) > query) s[j][i] = 0;
          back[j][i] = s[j][i] * (back[j][i] - tile.numbers()[query_tile + query]);
        }
      }
      OfWidth::add(dv, s, tile.cotangents());
      OfSize::add(dk, back, tile.queries);
      head = next_head, first = next, which ^= 1;
    }
    index_t const size = F::size(symbols), width = F::width(symbols), of_q = F::rows(symbols) * size,
                  keys = F::keys(symbols), of_k = F::key_heads(symbols) * keys * size,
                  at = key_head * keys + k0;
    store(x, of_q + at * size, keys - k0, size, static_cast<float>(o.scale), dk);
    store(x, of_q + of_k + at * width, keys - k0, width, 1.f, dv);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
