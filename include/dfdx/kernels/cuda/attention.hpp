// SPDX-License-Identifier: BSL-1.0
// Attention on devices, block by block: scores of some queries and some keys are all that exists of the matrix of
// weights at a time. Sums over keys are kept relative to the largest score so far (Milakov and Gimelshein 2018; Dao et
// al. 2022). Gradients compute the weights again; each is summed by one block, in order, so that no run differs.
#pragma once

#include <dfdx/core/math.hpp>
#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/value/attention_options.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// AttentionFacts - what is known of attend (operands q, k, v of T) and attend_back (and `given`). Code says all
/// extents or, where they come with each call, the most columns of a matrix, for which there is room. Results and
/// `given` are numbers C. 8 threads share a row of a tile.
template <class Code, class T, int Tiles>
struct AttentionFacts {
  using W = Walks<Code>;
  using C = compute_t<T>;
  static constexpr int rank = W::template rank<0>, lanes = 8;
  static DFDX_INLINE constexpr index_t queries(index_t const* s) {
    return W::template extent<0, rank - 2>(s);
  }
  static DFDX_INLINE constexpr index_t keys(index_t const* s) { return W::template extent<1, rank - 2>(s); }
  template <int K>
  static DFDX_INLINE constexpr index_t columns(index_t const* s) {
    return W::template extent<K, rank - 1>(s);
  }
  static DFDX_INLINE constexpr index_t size(index_t const* s) { return columns<0>(s); }
  static DFDX_INLINE constexpr index_t width(index_t const* s) { return columns<2>(s); }
  static DFDX_INLINE constexpr index_t heads(index_t const* s) {
    return W::template count<0, 0, rank - 2>(s);
  }
  static DFDX_INLINE constexpr index_t key_heads(index_t const* s) {
    return W::template count<1, 0, rank - 2>(s);
  }
  static DFDX_INLINE constexpr index_t sharing(index_t const* s) { return heads(s) / key_heads(s); }
  static DFDX_INLINE constexpr index_t rows(index_t const* s) { return heads(s) * queries(s); }
  /// How many columns of operand K there is room for, zeros behind its own.
  template <int K>
  static constexpr index_t room() {
    if constexpr (requires { Code::most_columns; }) return Code::most_columns;
    else return columns<K>(nullptr);
  }
  static constexpr int least_blocks() {
    if constexpr (requires { Code::least_blocks; }) return Code::least_blocks;
    else return 0;
  }
  static constexpr index_t size_room = room<0>(), width_room = room<2>();
  // An element more in each row, so that what is read down a column lies in different banks.
  static constexpr index_t widest = size_room > width_room ? size_room : width_room, pitch = widest + 1;
  static constexpr index_t bytes(index_t r) {
    return (Tiles * r * pitch + r * (r + 1)) * static_cast<index_t>(sizeof(C));
  }
  static constexpr index_t most_bytes = index_t{47} << 10;  // of 48 KiB: arrays are aligned
  /// Rows of a tile; 0 if rows are too long for any.
  static constexpr int tile = bytes(32) <= most_bytes   ? 32
                              : bytes(16) <= most_bytes ? 16
                              : bytes(8) <= most_bytes  ? 8
                                                        : 0;
  static constexpr int threads = tile * lanes;
  static constexpr index_t tiles_of(index_t n) { return tile == 0 ? 0 : (n + tile - 1) / tile; }
  static constexpr index_t per_thread(index_t n) { return (n + lanes - 1) / lanes; }

  /// The row of a tile that this thread works at, and which of its lanes it is.
  static DFDX_INLINE int row() { return thread() / lanes; }
  static DFDX_INLINE int lane() { return thread() % lanes; }
  static DFDX_INLINE C row_sum(C x) {
    for (int m = lanes / 2; m > 0; m /= 2) x = x + exchanged(x, m);
    return x;
  }
  static DFDX_INLINE C row_max(C x) {
    for (int m = lanes / 2; m > 0; m /= 2) {
      C const y = exchanged(x, m);
      x = y > x ? y : x;
    }
    return x;
  }

  /// Matrix `index` of operand K.
  template <int K>
  static DFDX_INLINE T const* matrix(OwnArguments const& x, index_t index) {
    return static_cast<T const*>(x.base[K]) + W::template offset<K, 0, rank - 2>(index, x.symbols);
  }
  /// Rows `first` and on of a matrix of operand K into shared memory, zeros behind the last.
  template <int K>
  static DFDX_INLINE void bring(C* to, T const* from, index_t first, index_t const* s) {
    constexpr index_t wide = room<K>();
    index_t const n = W::template extent<K, rank - 2>(s), by_row = W::template stride<K, rank - 2>(s),
                  by_column = W::template stride<K, rank - 1>(s);
    from += first * by_row;
    for (index_t i = thread(); i < tile * wide; i += threads) {
      index_t const r = i / wide, c = i % wide;
      bool const is_there = first + r < n && c < columns<K>(s);
      to[r * pitch + c] = is_there ? static_cast<C>(from[r * by_row + c * by_column]) : C(0);
    }
  }
  template <index_t N>
  static DFDX_INLINE C dot(C const* a, C const* b) {
    C sum(0);
    for (index_t i = 0; i < N; ++i) sum = sum + a[i] * b[i];
    return sum;
  }
  static DFDX_INLINE bool sees(op::AttentionOptions const& o, index_t query, index_t key, index_t const* s) {
    return query < queries(s) && key < keys(s) && (!o.causal || key <= query + o.offset);
  }
};

/// AttendKernel - a block for some queries of a head.
template <class Code, class T>
struct AttendKernel {
  using F = AttentionFacts<Code, T, 2>;
  using C = typename F::C;
  static constexpr int threads = F::threads, tile = F::tile, least_blocks = F::least_blocks();
  static constexpr index_t work(index_t const* s) {
    return F::heads(s) * F::tiles_of(F::queries(s)) * threads;
  }
  struct OfQueries;
  struct OfKeys;
  struct OfWeights;

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const tiles = F::tiles_of(F::queries(x.symbols)), all = F::heads(x.symbols) * tiles;
    for (index_t t = block(); t < all; t += blocks()) some(x, t / tiles, t % tiles * tile);
  }

 private:
  static DFDX_INLINE void some(OwnArguments const& x, index_t head, index_t first) {
    auto const o = op::AttentionOptions::of(x.attrs);
    index_t const* const s = x.symbols;
    constexpr index_t columns = F::per_thread(F::width_room), each = tile / F::lanes;
    C* const q = shared<OfQueries, C, tile * F::pitch>();
    C* const kv = shared<OfKeys, C, tile * F::pitch>();
    C* const weights = shared<OfWeights, C, tile*(tile + 1)>();
    int const row = F::row(), lane = F::lane();
    index_t const query = first + row, keyed = head / F::sharing(s);
    T const *const keys = F::template matrix<1>(x, keyed), *const values = F::template matrix<2>(x, keyed);
    constexpr C least = -std::numeric_limits<C>::infinity();
    C largest = least, total(0);
    C y[columns] = {};
    barrier();  // until all have used what lies there
    F::template bring<0>(q, F::template matrix<0>(x, head), first, s);
    index_t const seen = first + tile + o.offset, all = F::keys(s), end = o.causal && seen < all ? seen : all;
    for (index_t k0 = 0; k0 < end; k0 += tile) {
      barrier();
      F::template bring<1>(kv, keys, k0, s);
      barrier();
      C scores[each], most = largest;
      DFDX_UNROLL for (index_t j = 0; j < each; ++j) {
        index_t const k = lane + j * F::lanes;
        C score = F::template dot<F::size_room>(q + row * F::pitch, kv + k * F::pitch);
        score = F::sees(o, query, k0 + k, s) ? score * static_cast<C>(o.scale) : least;
        scores[j] = score;
        most = score > most ? score : most;
      }
      most = F::row_max(most);
      // A row that has seen nothing yet stays as it is.
      C const shift = most == least ? C(0) : most, factor = math::exp(largest - shift);
      C part(0);
      DFDX_UNROLL for (index_t j = 0; j < each; ++j) {
        C const p = math::exp(scores[j] - shift);
        weights[row * (tile + 1) + lane + j * F::lanes] = p;
        part = part + p;
      }
      total = total * factor + F::row_sum(part);
      largest = most;
      barrier();
      F::template bring<2>(kv, values, k0, s);
      barrier();
      DFDX_UNROLL for (index_t u = 0; u < columns; ++u) {
        index_t const c = lane + u * F::lanes;
        C sum = y[u] * factor;
        if (c < F::width_room)
          for (index_t j = 0; j < tile; ++j) sum = sum + weights[row * (tile + 1) + j] * kv[j * F::pitch + c];
        y[u] = sum;
      }
    }
    if (query >= F::queries(s)) return;
    C* const to = static_cast<C*>(x.base[3]);
    index_t const at = head * F::queries(s) + query, width = F::width(s);
    DFDX_UNROLL for (index_t u = 0; u < columns; ++u) {
      index_t const c = lane + u * F::lanes;
      if (c < width) to[at * width + c] = y[u] / total;
    }
    if (lane == 0) to[F::rows(s) * width + at] = largest + math::log(total);
  }
};

/// AttendBackKernel - the gradient of queries, a block for some of them, and those of keys and values likewise.
template <class Code, class T>
struct AttendBackKernel {
  using F = AttentionFacts<Code, T, 4>;
  using C = typename F::C;
  static constexpr int threads = F::threads, tile = F::tile;
  struct OfQueries;
  struct OfKeys;
  struct OfValues;
  struct OfCotangents;
  struct OfWeights;

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    cudaError_t const said =
        start<AttendBackKernel>(x, blocks_for(F::heads(s) * F::tiles_of(F::queries(s)), 1), stream);
    if (said != cudaSuccess) return said;
    return start<Keys>(x, blocks_for(F::key_heads(s) * F::tiles_of(F::keys(s)), 1), stream);
  }

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const tiles = F::tiles_of(F::queries(x.symbols)), all = F::heads(x.symbols) * tiles;
    for (index_t t = block(); t < all; t += blocks()) queries(x, t / tiles, t % tiles * tile);
  }
  struct Keys {
    static constexpr int threads = F::threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const tiles = F::tiles_of(F::keys(x.symbols)), all = F::key_heads(x.symbols) * tiles;
      for (index_t t = block(); t < all; t += blocks()) keys(x, t / tiles, t % tiles * tile);
    }
  };

 private:
  // Element i of the list of cotangents, logarithms of sums, and sums of rows.
  static DFDX_INLINE C given(OwnArguments const& x, index_t i) {
    return static_cast<C const*>(x.base[3])[i * F::W::template stride<3, 0>(x.symbols)];
  }
  static DFDX_INLINE void bring_cotangents(C* to, OwnArguments const& x, index_t head, index_t first) {
    constexpr index_t wide = F::width_room;
    index_t const n = F::queries(x.symbols), width = F::width(x.symbols);
    for (index_t i = thread(); i < tile * wide; i += threads) {
      index_t const r = i / wide, c = i % wide;
      bool const is_there = first + r < n && c < width;
      to[r * F::pitch + c] = is_there ? given(x, (head * n + first + r) * width + c) : C(0);
    }
  }
  static DFDX_INLINE C* queries_room() { return shared<OfQueries, C, tile * F::pitch>(); }
  static DFDX_INLINE C* keys_room() { return shared<OfKeys, C, tile * F::pitch>(); }
  static DFDX_INLINE C* values_room() { return shared<OfValues, C, tile * F::pitch>(); }
  static DFDX_INLINE C* cotangents_room() { return shared<OfCotangents, C, tile * F::pitch>(); }
  static DFDX_INLINE C* weights_room() { return shared<OfWeights, C, tile*(tile + 1)>(); }
  // The weight of a key for a query, of rows of the tiles of both.
  static DFDX_INLINE C weight(op::AttentionOptions const& o, OwnArguments const& x, index_t head,
                              index_t first, int q, index_t k0, int k) {
    index_t const* const s = x.symbols;
    if (!F::sees(o, first + q, k0 + k, s)) return C(0);
    C const score = F::template dot<F::size_room>(queries_room() + q * F::pitch, keys_room() + k * F::pitch);
    return math::exp(score * static_cast<C>(o.scale) -
                     given(x, F::rows(s) * F::width(s) + head * F::queries(s) + first + q));
  }
  // What its score is pulled back to.
  static DFDX_INLINE C score_back(op::AttentionOptions const& o, OwnArguments const& x, index_t head,
                                  index_t first, int q, int k, C p) {
    index_t const* const s = x.symbols;
    if (first + q >= F::queries(s)) return C(0);
    C const dp =
        F::template dot<F::width_room>(cotangents_room() + q * F::pitch, values_room() + k * F::pitch);
    return p * (dp - given(x, F::rows(s) * (F::width(s) + 1) + head * F::queries(s) + first + q)) *
           static_cast<C>(o.scale);
  }

  static DFDX_INLINE void queries(OwnArguments const& x, index_t head, index_t first) {
    auto const o = op::AttentionOptions::of(x.attrs);
    index_t const* const s = x.symbols;
    constexpr index_t columns = F::per_thread(F::size_room), each = tile / F::lanes;
    C* const weights = weights_room();
    index_t const keyed = head / F::sharing(s);
    T const *const keys = F::template matrix<1>(x, keyed), *const values = F::template matrix<2>(x, keyed);
    int const row = F::row(), lane = F::lane();
    C dq[columns] = {};
    barrier();  // until all have used what lies there
    F::template bring<0>(queries_room(), F::template matrix<0>(x, head), first, s);
    bring_cotangents(cotangents_room(), x, head, first);
    index_t const seen = first + tile + o.offset, all = F::keys(s), end = o.causal && seen < all ? seen : all;
    for (index_t k0 = 0; k0 < end; k0 += tile) {
      barrier();
      F::template bring<1>(keys_room(), keys, k0, s);
      F::template bring<2>(values_room(), values, k0, s);
      barrier();
      DFDX_UNROLL for (index_t j = 0; j < each; ++j) {
        int const k = lane + static_cast<int>(j) * F::lanes;
        weights[row * (tile + 1) + k] =
            score_back(o, x, head, first, row, k, weight(o, x, head, first, row, k0, k));
      }
      barrier();
      add<F::size_room>(dq, weights + row * (tile + 1), keys_room());
    }
    if (first + row >= F::queries(s)) return;
    write<F::size_room>(x, (head * F::queries(s) + first + row) * F::size(s), F::size(s), dq);
  }

  static DFDX_INLINE void keys(OwnArguments const& x, index_t key_head, index_t k0) {
    auto const o = op::AttentionOptions::of(x.attrs);
    index_t const* const s = x.symbols;
    constexpr index_t each = tile / F::lanes;
    C* const weights = weights_room();
    int const row = F::row(), lane = F::lane();
    C dk[F::per_thread(F::size_room)] = {}, dv[F::per_thread(F::width_room)] = {};
    barrier();  // until all have used what lies there
    F::template bring<1>(keys_room(), F::template matrix<1>(x, key_head), k0, s);
    F::template bring<2>(values_room(), F::template matrix<2>(x, key_head), k0, s);
    // Queries before the first that sees a key have no part in it.
    index_t const unseen = o.causal && k0 > o.offset ? (k0 - o.offset) / tile * tile : 0;
    index_t const sharing = F::sharing(s);
    for (index_t h = 0; h < sharing; ++h) {
      index_t const head = key_head * sharing + h;
      T const* const queries = F::template matrix<0>(x, head);
      for (index_t first = unseen; first < F::queries(s); first += tile) {
        barrier();
        F::template bring<0>(queries_room(), queries, first, s);
        bring_cotangents(cotangents_room(), x, head, first);
        barrier();
        C p[each];
        DFDX_UNROLL for (index_t j = 0; j < each; ++j) {
          int const q = lane + static_cast<int>(j) * F::lanes;
          p[j] = weight(o, x, head, first, q, k0, row);
          weights[row * (tile + 1) + q] = p[j];
        }
        barrier();
        add<F::width_room>(dv, weights + row * (tile + 1), cotangents_room());
        barrier();
        DFDX_UNROLL for (index_t j = 0; j < each; ++j) {
          int const q = lane + static_cast<int>(j) * F::lanes;
          weights[row * (tile + 1) + q] = score_back(o, x, head, first, q, row, p[j]);
        }
        barrier();
        add<F::size_room>(dk, weights + row * (tile + 1), queries_room());
      }
    }
    if (k0 + row >= F::keys(s)) return;
    index_t const size = F::size(s), width = F::width(s), of_q = F::rows(s) * size,
                  of_k = F::key_heads(s) * F::keys(s) * size, at = key_head * F::keys(s) + k0 + row;
    write<F::size_room>(x, of_q + at * size, size, dk);
    write<F::width_room>(x, of_q + of_k + at * width, width, dv);
  }

  // sums[c] += factors times the rows of a tile, for the columns of this thread.
  template <index_t N>
  static DFDX_INLINE void add(C (&sums)[F::per_thread(N)], C const* factors, C const* from) {
    constexpr index_t columns = F::per_thread(N);
    DFDX_UNROLL for (index_t u = 0; u < columns; ++u) {
      index_t const c = F::lane() + u * F::lanes;
      C sum = sums[u];
      if (c < N)
        for (index_t j = 0; j < tile; ++j) sum = sum + factors[j] * from[j * F::pitch + c];
      sums[u] = sum;
    }
  }
  template <index_t N>
  static DFDX_INLINE void write(OwnArguments const& x, index_t first, index_t count,
                                C const (&sums)[F::per_thread(N)]) {
    C* const to = static_cast<C*>(x.base[4]) + first;
    constexpr index_t columns = F::per_thread(N);
    DFDX_UNROLL for (index_t u = 0; u < columns; ++u) {
      index_t const c = F::lane() + u * F::lanes;
      if (c < count) to[c] = sums[u];
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
