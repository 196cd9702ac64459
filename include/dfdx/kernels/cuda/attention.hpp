// SPDX-License-Identifier: BSL-1.0
// Attention on devices, block by block: scores of some queries and some keys are all that exists of the matrix of
// weights at a time. Sums over keys are kept relative to the largest score so far (Milakov and Gimelshein 2018; Dao et
// al. 2022). Gradients compute the weights again; each is summed by one block, in order, so that no run differs.
#pragma once

#include <dfdx/core/math.hpp>
#include <dfdx/kernels/cuda/attention_facts.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// AttendKernel - a block for some queries of a head.
template <class Code, class T>
struct AttendKernel {
  using F = AttentionFacts<Code, T, 2>;
  using C = typename F::C;
  static constexpr int threads = F::threads, least_blocks = F::least_blocks, tile = F::tile,
                       tile_rows = F::tile_rows;
  static constexpr index_t work(index_t const* s) {
    return F::heads(s) * F::tiles_of(F::queries(s), tile_rows) * threads;
  }
  struct OfQueries;
  struct OfKeys;
  struct OfWeights;

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const tiles = F::tiles_of(F::queries(x.symbols), tile_rows), all = F::heads(x.symbols) * tiles;
    for (index_t t = block(); t < all; t += blocks()) some(x, t / tiles, t % tiles * tile_rows);
  }

 private:
  static DFDX_INLINE void some(OwnArguments const& x, index_t head, index_t first) {
    auto const o = op::AttentionOptions::of(x.attrs);
    index_t const* const s = x.symbols;
    constexpr int rows = F::own_rows, columns = F::own_columns;
    C* const q = F::template memory<OfQueries, tile_rows * F::pitch>();
    C* const kv = F::template memory<OfKeys, tile * F::pitch>();
    C* const weights = F::template memory<OfWeights, tile_rows * F::weights_pitch>();
    index_t const keyed = head / F::sharing(s);
    T const *const keys = F::template matrix<1>(x, keyed), *const values = F::template matrix<2>(x, keyed);
    constexpr C least = -std::numeric_limits<C>::infinity();
    auto const scale = static_cast<C>(o.scale);
    C const by = F::factor_of_largest(scale), before = by == scale ? C(1) : scale;
    C largest[rows], total[rows];
    typename F::Packed y[rows][F::template packs<F::width_room>] = {};
    DFDX_UNROLL for (int i = 0; i < rows; ++i) largest[i] = least, total[i] = C(0);
    barrier();  // until all have used what lies there
    F::template bring<0, tile_rows>(q, F::template matrix<0>(x, head), first, s);
    index_t const end = F::end_of_keys(o, first + tile_rows, s);
    for (index_t k0 = 0; k0 < end; k0 += tile) {
      barrier();
      F::template bring<1, tile>(kv, keys, k0, s);
      barrier();
      C scores[rows][columns];
      F::template multiply<F::size_room>(scores, q, kv);
      DFDX_UNROLL for (int i = 0; i < rows; ++i) {
        C most = largest[i];
        DFDX_UNROLL for (int j = 0; j < columns; ++j) {
          C& score = scores[i][j];
          bool const seen = F::sees(o, first + F::row(i), k0 + F::column(j), s);
          score = seen ? score * before : least;
          most = score > most ? score : most;
        }
        most = F::row_max(most);
        // A row that has seen nothing yet stays as it is.
        C const shift = most == least ? C(0) : most, factor = math::exp((largest[i] - shift) * by);
        C part(0);
        DFDX_UNROLL for (int j = 0; j < columns; ++j) {
          C const p = math::exp((scores[i][j] - shift) * by);
          F::weight(weights, i, j) = p;
          part = part + p;
        }
        total[i] = total[i] * factor + F::row_sum(part);
        largest[i] = most;
        DFDX_UNROLL for (auto& some : y[i]) {
          DFDX_UNROLL for (int d = 0; d < F::pack; ++d) some.x[d] = some.x[d] * factor;
        }
      }
      barrier();
      F::template bring<2, tile>(kv, values, k0, s);
      barrier();
      F::template add<F::width_room>(y, weights, kv);
    }
    T* const to = static_cast<T*>(x.base[3]);
    C* const sums = static_cast<C*>(x.base[4]);
    DFDX_UNROLL for (int i = 0; i < rows; ++i) {
      index_t const query = first + F::row(i), at = head * F::queries(s) + query, width = F::width(s);
      if (query >= F::queries(s)) continue;
      if (to != nullptr) F::write(to + at * width, width, y[i], total[i]);
      if (sums != nullptr && F::column(0) == 0) sums[at] = largest[i] * by + math::log(total[i]);
    }
  }
};

/// AttendBackKernel - the gradient of queries, a block for some of them, and those of keys and values likewise.
template <class Code, class T>
struct AttendBackKernel {
  using F = AttentionFacts<Code, T, 4>;
  using C = typename F::C;
  static constexpr int threads = F::threads, least_blocks = F::least_blocks, tile = F::tile;
  struct OfQueries;
  struct OfKeys;
  struct OfValues;
  struct OfCotangents;
  struct OfWeights;

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    index_t const of_queries = F::heads(s) * F::tiles_of(F::queries(s), tile),
                  of_keys = F::key_heads(s) * F::tiles_of(F::keys(s), tile);
    cudaError_t const said = start<AttendBackKernel>(x, blocks_for(of_queries, 1), stream);
    return said != cudaSuccess ? said : start<Keys>(x, blocks_for(of_keys, 1), stream);
  }

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const tiles = F::tiles_of(F::queries(x.symbols), tile), all = F::heads(x.symbols) * tiles;
    for (index_t t = block(); t < all; t += blocks()) queries(x, t / tiles, t % tiles * tile);
  }
  struct Keys {
    static constexpr int threads = F::threads, least_blocks = F::least_blocks;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const tiles = F::tiles_of(F::keys(x.symbols), tile), all = F::key_heads(x.symbols) * tiles;
      for (index_t t = block(); t < all; t += blocks()) keys(x, t / tiles, t % tiles * tile);
    }
  };

 private:
  static constexpr int rows = F::own_rows, columns = F::own_columns;
  template <index_t N>
  using Rows = typename F::Packed[rows][F::template packs<N>];
  template <class Use>
  static DFDX_INLINE C* memory() {
    return F::template memory<Use, tile * F::pitch>();
  }
  static DFDX_INLINE C* weights_memory() { return F::template memory<OfWeights, tile * F::weights_pitch>(); }
  // Of a query the logarithm of its sum of weights, lowered, and what its row's gradients sum to.
  struct OfQuery {
    C log_sum, less;
  };
  static DFDX_INLINE OfQuery of_query(OwnArguments const& x, index_t head, index_t query) {
    index_t const* const s = x.symbols;
    if (query >= F::queries(s)) return {C(0), C(0)};
    index_t const at = head * F::queries(s) + query;
    return {F::lowered(F::sums(x, at)), F::sums(x, F::rows(s) + at)};
  }
  // Scores become weights, and cotangents of weights those of scores, times the scale.
  static DFDX_INLINE void pull_back(C& score, C& back, C scale, OfQuery const& q, bool sees) {
    C const above = score * scale - q.log_sum;
    score = sees ? math::exp(above > C(0) ? C(0) : above) : C(0);
    back = score * (back - q.less) * scale;
  }

  static DFDX_INLINE void queries(OwnArguments const& x, index_t head, index_t first) {
    auto const o = op::AttentionOptions::of(x.attrs);
    auto const scale = static_cast<C>(o.scale);
    index_t const* const s = x.symbols;
    C *const q = memory<OfQueries>(), *const k = memory<OfKeys>(), *const v = memory<OfValues>(),
             *const ct = memory<OfCotangents>(), *const weights = weights_memory();
    index_t const keyed = head / F::sharing(s);
    T const *const keys = F::template matrix<1>(x, keyed), *const values = F::template matrix<2>(x, keyed);
    OfQuery of[rows];
    Rows<F::size_room> dq = {};
    DFDX_UNROLL for (int i = 0; i < rows; ++i) of[i] = of_query(x, head, first + F::row(i));
    barrier();  // until all have used what lies there
    F::template bring<0, tile>(q, F::template matrix<0>(x, head), first, s);
    F::template bring<3, tile>(ct, F::template matrix<3>(x, head), first, s);
    index_t const end = F::end_of_keys(o, first + tile, s);
    for (index_t k0 = 0; k0 < end; k0 += tile) {
      barrier();
      F::template bring<1, tile>(k, keys, k0, s);
      F::template bring<2, tile>(v, values, k0, s);
      barrier();
      C scores[rows][columns], back[rows][columns];
      F::template multiply<F::size_room>(scores, q, k);
      F::template multiply<F::width_room>(back, ct, v);
      DFDX_UNROLL for (int i = 0; i < rows; ++i) {
        DFDX_UNROLL for (int j = 0; j < columns; ++j) {
          bool const sees = F::sees(o, first + F::row(i), k0 + F::column(j), s);
          pull_back(scores[i][j], back[i][j], scale, of[i], sees);
          F::weight(weights, i, j) = back[i][j];
        }
      }
      barrier();
      F::template add<F::size_room>(dq, weights, k);
    }
    write(x, head * F::queries(s), first, F::queries(s), F::size(s), dq);
  }

  static DFDX_INLINE void keys(OwnArguments const& x, index_t key_head, index_t k0) {
    auto const o = op::AttentionOptions::of(x.attrs);
    auto const scale = static_cast<C>(o.scale);
    index_t const* const s = x.symbols;
    C *const q = memory<OfQueries>(), *const k = memory<OfKeys>(), *const v = memory<OfValues>(),
             *const ct = memory<OfCotangents>(), *const weights = weights_memory();
    Rows<F::size_room> dk = {};
    Rows<F::width_room> dv = {};
    barrier();  // until all have used what lies there
    F::template bring<1, tile>(k, F::template matrix<1>(x, key_head), k0, s);
    F::template bring<2, tile>(v, F::template matrix<2>(x, key_head), k0, s);
    // Queries before the first that sees a key have no part in it.
    index_t const unseen = o.causal && k0 > o.offset ? (k0 - o.offset) / tile * tile : 0;
    index_t const sharing = F::sharing(s);
    for (index_t head = key_head * sharing; head < (key_head + 1) * sharing; ++head) {
      T const *const queries = F::template matrix<0>(x, head), *const cts = F::template matrix<3>(x, head);
      for (index_t first = unseen; first < F::queries(s); first += tile) {
        barrier();
        F::template bring<0, tile>(q, queries, first, s);
        F::template bring<3, tile>(ct, cts, first, s);
        OfQuery of[columns];
        DFDX_UNROLL for (int j = 0; j < columns; ++j) of[j] = of_query(x, head, first + F::column(j));
        barrier();
        C scores[rows][columns], back[rows][columns];
        F::template multiply<F::size_room>(scores, k, q);
        F::template multiply<F::width_room>(back, v, ct);
        DFDX_UNROLL for (int i = 0; i < rows; ++i) {
          DFDX_UNROLL for (int j = 0; j < columns; ++j) {
            bool const sees = F::sees(o, first + F::column(j), k0 + F::row(i), s);
            pull_back(scores[i][j], back[i][j], scale, of[j], sees);
          }
        }
        add_weighted<F::width_room>(dv, scores, weights, ct);
        add_weighted<F::size_room>(dk, back, weights, q);
      }
    }
    index_t const size = F::size(s), width = F::width(s), n = F::keys(s), of_q = F::rows(s) * size,
                  of_k = F::key_heads(s) * n * size;
    write(x, key_head * n, k0, n, size, dk, of_q);
    write(x, key_head * n, k0, n, width, dv, of_q + of_k);
  }
  template <index_t N>
  static DFDX_INLINE void add_weighted(Rows<N>& to, C const (&by)[rows][columns], C* weights, C const* b) {
    barrier();  // until all have used what lies there
    DFDX_UNROLL for (int i = 0; i < rows; ++i) {
      DFDX_UNROLL for (int j = 0; j < columns; ++j) F::weight(weights, i, j) = by[i][j];
    }
    barrier();
    F::template add<N>(to, weights, b);
  }
  // This thread's rows of a tile that begins at row `first`, of n behind `before` others, to the result from its
  // element `at` on.
  template <int Packs>
  static DFDX_INLINE void write(OwnArguments const& x, index_t before, index_t first, index_t n,
                                index_t count, typename F::Packed const (&y)[rows][Packs], index_t at = 0) {
    T* const to = static_cast<T*>(x.base[5]) + at;
    DFDX_UNROLL for (int i = 0; i < rows; ++i) {
      index_t const r = first + F::row(i);
      if (r < n) F::write(to + (before + r) * count, count, y[i], C(1));
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
