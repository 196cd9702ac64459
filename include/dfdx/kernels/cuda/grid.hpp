// SPDX-License-Identifier: BSL-1.0
// Device kernels of images at places that a grid gives, and of its gradients. No atomics: what comes to an element of
// an image is added up in the order of places.
#pragma once

#include <dfdx/core/grid.hpp>
#include <dfdx/kernels/cuda/grouped.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// GridWalks - what the kernels know of their operands by where they are: images [N, C, Y, X], places [N, P, Q, 2] and
/// what is sampled [N, C, P, Q].
template <class Code, class T, int K, int Images, int Grid, int Sampled>
struct GridWalks {
  using W = Walks<Code>;
  using C = compute_t<T>;
  using Axis = op::detail::GridAxis<C>;
  using Terms = op::detail::GridTerms<C, K>;
  static DFDX_INLINE constexpr index_t count(index_t const* s) { return W::template extent<Images, 0>(s); }
  static DFDX_INLINE constexpr index_t channels(index_t const* s) { return W::template extent<Images, 1>(s); }
  static DFDX_INLINE constexpr index_t places(index_t const* s) {
    return W::template extent<Grid, 1>(s) * W::template extent<Grid, 2>(s);
  }
  template <int A>
  static DFDX_INLINE index_t extent(index_t const* s) {
    return W::template extent<Images, 2 + A>(s);
  }
  /// Where the first channel of what is sampled is at a place.
  static DFDX_INLINE index_t sampled_at(index_t n, index_t place, index_t const* s) {
    return n * W::template stride<Sampled, 0>(s) + W::template offset<Sampled, 2, 4>(place, s);
  }

  /// The terms of a place of the n-th image along both axes.
  struct Place {
    Terms row, column;
    DFDX_INLINE Place(OwnArguments const& x, index_t n, index_t place) {
      index_t const* const s = x.symbols;
      T const* const u = static_cast<T const*>(x.base[Grid]) + n * W::template stride<Grid, 0>(s) +
                         W::template offset<Grid, 1, 3>(place, s);
      auto const o = op::detail::grid_options(x.attrs.i[0]);
      row = terms(u[W::template stride<Grid, 3>(s)], extent<0>(s), o);
      column = terms(u[0], extent<1>(s), o);
    }
    DFDX_INLINE bool some() const { return row.some != 0 && column.some != 0; }
    DFDX_INLINE bool is_element(int r, int c) const { return row.at[r] >= 0 && column.at[c] >= 0; }
    template <int A>
    DFDX_INLINE index_t at(int k, index_t const* s) const {
      index_t const i = static_cast<index_t>(A == 0 ? row.at[k] : column.at[k]), n = extent<A>(s);
      return i < n ? i : n - 1;  // an axis may have more elements than C tells apart
    }

   private:
    static DFDX_INLINE Terms terms(T u, index_t n, GridSampleOptions const& o) {
      return op::detail::grid_terms_of<K>(static_cast<C>(u), Axis::of(n, o.align_corners), o.padding_mode);
    }
  };
  /// f(r, c, where the element is in the n-th image) for all terms of a place.
  template <class F>
  static DFDX_INLINE void for_elements(Place const& p, index_t n, index_t const* s, F const& f) {
    DFDX_UNROLL for (int r = 0; r < K; ++r) DFDX_UNROLL for (int c = 0; c < K; ++c) {
      if (p.is_element(r, c))
        f(r, c,
          n * W::template stride<Images, 0>(s) + p.template at<0>(r, s) * W::template stride<Images, 2>(s) +
              p.template at<1>(c, s) * W::template stride<Images, 3>(s));
    }
  }
};

/// GridSampleKernel - a thread for each place and a few channels.
template <class Code, class T, int K>
struct GridSampleKernel : GridWalks<Code, T, K, 0, 1, 2> {
  using G = GridWalks<Code, T, K, 0, 1, 2>;
  using W = Walks<Code>;
  using C = compute_t<T>;
  static constexpr int threads = own_threads;
  static constexpr index_t some = 4;
  static DFDX_INLINE constexpr index_t groups(index_t const* s) { return (G::channels(s) + some - 1) / some; }
  static constexpr index_t work(index_t const* s) { return G::count(s) * groups(s) * G::places(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const all = G::count(s) * groups(s) * G::places(s), places = G::places(s);
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
      index_t const place = t % places, group = t / places % groups(s), n = t / places / groups(s);
      typename G::Place const p(x, n, place);
      index_t const last = G::channels(s) < (group + 1) * some ? G::channels(s) : (group + 1) * some;
      for (index_t channel = group * some; channel < last; ++channel) {
        T const* const image = static_cast<T const*>(x.base[0]) + channel * W::template stride<0, 1>(s);
        C sum = 0;
        if (p.some())
          G::for_elements(p, n, s, [&](int r, int c, index_t at) {
            C const v = static_cast<C>(image[at]);
            sum = K == 1 ? v : sum + p.row.weight[r] * p.column.weight[c] * v;
          });
        static_cast<T*>(x.base[2])[G::sampled_at(n, place, s) + channel * W::template stride<2, 1>(s)] =
            static_cast<T>(sum);
      }
    }
  }
};

/// GridPlacesKernel - a thread for each place: the gradient with respect to it, channel by channel.
template <class Code, class T, int K>
struct GridPlacesKernel : GridWalks<Code, T, K, 0, 1, 2> {
  using G = GridWalks<Code, T, K, 0, 1, 2>;
  using W = Walks<Code>;
  using C = compute_t<T>;
  static constexpr int threads = own_threads;
  static constexpr index_t work(index_t const* s) { return G::count(s) * G::places(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const all = work(s), places = G::places(s);
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
      index_t const place = t % places, n = t / places;
      typename G::Place const p(x, n, place);
      C by_row = 0, by_column = 0;
      if (p.some())
        G::for_elements(p, n, s, [&](int r, int c, index_t at) {
          T const* image = static_cast<T const*>(x.base[0]) + at;
          T const* ct = static_cast<T const*>(x.base[2]) + G::sampled_at(n, place, s);
          C sum = 0;
          for (index_t channel = 0; channel < G::channels(s); ++channel) {
            sum += static_cast<C>(*ct) * static_cast<C>(*image);
            image += W::template stride<0, 1>(s), ct += W::template stride<2, 1>(s);
          }
          by_row += p.row.slope[r] * p.column.weight[c] * sum;
          by_column += p.row.weight[r] * p.column.slope[c] * sum;
        });
      T* const to = static_cast<T*>(x.base[3]) + n * W::template stride<3, 0>(s) +
                    W::template offset<3, 1, 3>(place, s);
      to[0] = static_cast<T>(by_column);
      to[W::template stride<3, 3>(s)] = static_cast<T>(by_row);
    }
  }
};

/// GridImagesKernel - the gradient with respect to images, into zeros: the terms of all places, grouped by the element
/// that they are of.
template <class Code, class T, int K>
struct GridImagesKernel : GridWalks<Code, T, K, 2, 1, 0> {
  using G = GridWalks<Code, T, K, 2, 1, 0>;
  using W = Walks<Code>;
  using C = compute_t<T>;
  static constexpr bool into_zeros = true;
  static constexpr index_t each = K * K;
  static DFDX_INLINE constexpr index_t terms(index_t const* s) { return G::places(s) * each; }
  // The weights of all terms, and then their groups.
  static DFDX_INLINE constexpr index_t weight_bytes(index_t const* s) {
    return (G::count(s) * terms(s) * static_cast<index_t>(sizeof(C)) + 7) / 8 * 8;
  }
  static constexpr index_t workspace(index_t const* s) {
    return weight_bytes(s) + Grouped::bytes(G::count(s), terms(s));
  }
  static DFDX_INLINE Grouped grouped(OwnArguments const& x) {
    return Grouped(static_cast<std::byte*>(x.workspace) + weight_bytes(x.symbols), G::count(x.symbols),
                   terms(x.symbols));
  }

  struct Keys {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const all = G::count(s) * G::places(s), places = G::places(s);
      Grouped const groups = grouped(x);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        index_t const place = t % places, n = t / places;
        typename G::Place const p(x, n, place);
        DFDX_UNROLL for (int r = 0; r < K; ++r) DFDX_UNROLL for (int c = 0; c < K; ++c) {
          bool const is = p.some() && p.is_element(r, c);
          index_t const term = place * each + r * K + c;
          static_cast<C*>(x.workspace)[n * terms(s) + term] = p.row.weight[r] * p.column.weight[c];
          groups.key(n, term) =
              is ? static_cast<Grouped::Key>(p.template at<0>(r, s) * G::template extent<1>(s) +
                                             p.template at<1>(c, s))
                 : -1;
        }
      }
    }
  };
  struct Sums {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n_terms = terms(s), all = G::count(s) * G::channels(s) * n_terms;
      Grouped const groups = grouped(x);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        index_t const at = t % n_terms, channel = t / n_terms % G::channels(s),
                      n = t / n_terms / G::channels(s);
        Grouped::Key key;
        if (!groups.begins(n, at, key)) continue;
        T const* const ct = static_cast<T const*>(x.base[0]) + channel * W::template stride<0, 1>(s);
        C const* const weight = static_cast<C const*>(x.workspace) + n * n_terms;
        C const sum = groups.template sum<C>(n, at, [&](index_t term) {
          return weight[term] * static_cast<C>(ct[G::sampled_at(n, term / each, s)]);
        });
        index_t const row = key / G::template extent<1>(s), column = key % G::template extent<1>(s);
        static_cast<T*>(x.base[2])[n * W::template stride<2, 0>(s) + channel * W::template stride<2, 1>(s) +
                                   row * W::template stride<2, 2>(s) + column * W::template stride<2, 3>(s)] =
            static_cast<T>(sum);
      }
    }
  };
  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    index_t const places = G::count(s) * G::places(s);
    if (places == 0) return cudaSuccess;
    if (G::template extent<0>(s) * G::template extent<1>(s) > INT32_MAX) return cudaErrorInvalidValue;
    if (auto const said = start<Keys>(x, blocks_for(places, own_threads), stream); said != cudaSuccess)
      return said;
    if (auto const said = grouped(x).sort(stream); said != cudaSuccess) return said;
    return start<Sums>(x, blocks_for(places * each * G::channels(s), own_threads), stream);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
