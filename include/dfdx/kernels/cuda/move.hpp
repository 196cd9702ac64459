// SPDX-License-Identifier: BSL-1.0
// Device kernels of the ops that lay elements out anew: pad, concat, flip, slide and index_copy.
#pragma once

#include <dfdx/kernels/cuda/own.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// PadKernel - a thread for each element of the result; Gap constants lie between neighbours.
template <class Code, class T, int Axis, index_t Gap>
struct PadKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<1>;
  static constexpr index_t work(index_t const* s) { return W::template count<1>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    auto const* const from = static_cast<T const*>(x.base[0]);
    auto* const to = static_cast<T*>(x.base[1]);
    index_t const n = work(s), inner = W::template count<1, Axis + 1, rank>(s);
    auto const constant = math::convert_number<T>(x.attrs.f[0]);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
      index_t const at = W::remainder(W::quotient(t, inner), W::template extent<1, Axis>(s)) - x.attrs.i[1];
      bool const inside = at >= 0 && at % (Gap + 1) == 0 && at / (Gap + 1) < W::template extent<0, Axis>(s);
      index_t const place =
          W::template offset<1, 0, rank, 0, 0, Axis>(t, s) + at / (Gap + 1) * W::template stride<0, Axis>(s);
      to[W::template offset<1, 0, rank>(t, s)] = inside ? from[place] : constant;
    }
  }
};

/// ConcatKernel - a thread for each element of the result.
template <class Code, class E, int Axis>
struct ConcatKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<2>;
  static constexpr index_t work(index_t const* s) { return W::template count<2>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    auto* const to = static_cast<E*>(x.base[2]);
    index_t const n = work(s), inner = W::template count<2, Axis + 1, rank>(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
      index_t const at = W::remainder(W::quotient(t, inner), W::template extent<2, Axis>(s)),
                    first = W::template extent<0, Axis>(s);
      to[W::template offset<2, 0, rank>(t, s)] = at < first ? part<0>(x, t, at) : part<1>(x, t, at - first);
    }
  }

 private:
  template <int K>
  static DFDX_INLINE E part(OwnArguments const& x, index_t t, index_t at) {
    return static_cast<E const*>(x.base[K])[W::template offset<2, 0, rank, K, 0, Axis>(t, x.symbols) +
                                            at * W::template stride<K, Axis>(x.symbols)];
  }
};

/// FlipKernel - axes whose bits are in Axes are walked from their ends.
template <class Code, class E, index_t Axes>
struct FlipKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<1>;
  static constexpr index_t work(index_t const* s) { return W::template count<1>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const n = work(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads)
      static_cast<E*>(x.base[1])[W::template offset<1, 0, rank>(t, s)] =
          static_cast<E const*>(x.base[0])[flipped<rank>(t, s)];
  }

 private:
  template <int Last>
  static DFDX_INLINE index_t flipped(index_t at, index_t const* s) {
    if constexpr (Last == 0) {
      return 0;
    } else {
      index_t const n = W::template extent<1, Last - 1>(s), i = at % n;
      return ((Axes >> (Last - 1) & 1) != 0 ? n - 1 - i : i) * W::template stride<0, Last - 1>(s) +
             flipped<Last - 1>(at / n, s);
    }
  }
};

/// SlideKernel - a block for each row of the window, which moves it on in its place if the result lies there: what all
/// threads are about to write they have read. All is row-major.
template <class Code, class E, int Axis, bool ToFront>
struct SlideKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<2>;
  static constexpr index_t work(index_t const* s) { return W::template count<2, 0, Axis>(s) * threads; }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const rows = W::template count<2, 0, Axis>(s), inner = W::template count<2, Axis + 1, rank>(s),
                  size = W::template extent<2, Axis>(s) * inner,
                  fresh = W::template extent<1, Axis>(s) * inner;
    for (index_t r = block(); r < rows; r += blocks()) {
      auto const* const window = static_cast<E const*>(x.base[0]) + r * size;
      auto const* const news = static_cast<E const*>(x.base[1]) + r * fresh;
      auto* const to = static_cast<E*>(x.base[2]) + r * size;
      index_t const pieces = (size + threads - 1) / threads;
      for (index_t p = 0; p < pieces; ++p) {
        index_t const i = (ToFront ? pieces - 1 - p : p) * threads + thread();
        E v{};
        if (i < size && ToFront) v = i < fresh ? news[i] : window[i - fresh];
        else if (i < size) v = i + fresh < size ? window[i + fresh] : news[i + fresh - size];
        barrier();
        if (i < size) to[i] = v;
      }
    }
  }
};

/// IndexCopyKernel - a block for each place, which does nothing if the place comes again later; the others are there
/// already, or have been copied.
template <class Code, class E, class I, int Axis>
struct IndexCopyKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<3>;

  struct CopyAll {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = W::template count<3>(s);
      for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads)
        static_cast<E*>(x.base[3])[W::template offset<3, 0, rank>(t, s)] =
            static_cast<E const*>(x.base[0])[W::template offset<3, 0, rank, 0>(t, s)];
    }
  };
  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    if (x.base[3] != x.base[0])
      if (cudaError_t const said =
              start<CopyAll>(x, blocks_for(W::template count<3>(x.symbols), threads), stream);
          said != cudaSuccess)
        return said;
    return start<IndexCopyKernel>(x, blocks_for(W::template count<1>(x.symbols) * threads, threads), stream);
  }

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const n = W::template count<1>(s), extent = W::template extent<3, Axis>(s);
    for (index_t k = block(); k < n; k += blocks()) {
      index_t const place = place_of(x, k);
      bool const holds = x.holds(place, extent);
      if (comes_again(x, k, place) || !holds) continue;
      auto const* const from = static_cast<E const*>(x.base[2]) + k * W::template stride<2, Axis>(s);
      auto* const to = static_cast<E*>(x.base[3]) + place * W::template stride<3, Axis>(s);
      index_t const inner = W::template count<2, Axis + 1, rank>(s),
                    all = W::template count<2, 0, Axis>(s) * inner;
      for (index_t t = thread(); t < all; t += threads) to[part<3>(t, inner, s)] = from[part<2>(t, inner, s)];
    }
  }

 private:
  static DFDX_INLINE index_t place_of(OwnArguments const& x, index_t k) {
    return static_cast<index_t>(static_cast<I const*>(x.base[1])[k * W::template stride<1, 0>(x.symbols)]);
  }
  template <int K>
  static DFDX_INLINE index_t part(index_t t, index_t inner, index_t const* s) {
    index_t const outer = W::quotient(t, inner), rest = W::remainder(t, inner);
    // One axis needs no division.
    index_t const before =
        Axis == 1 ? outer * W::template stride<K, 0>(s) : W::template offset<2, 0, Axis, K>(outer, s);
    return before + (Axis + 2 == rank ? rest * W::template stride<K, rank - 1>(s)
                                      : W::template offset<2, Axis + 1, rank, K>(rest, s));
  }
  // All threads of the block ask together.
  static DFDX_INLINE bool comes_again(OwnArguments const& x, index_t k, index_t place) {
    index_t const n = W::template count<1>(x.symbols);
    int* const again = shared<IndexCopyKernel, int, 1>();
    barrier();  // until all have read what lies there
    if (thread() == 0) *again = 0;
    barrier();
    for (index_t j = k + 1 + thread(); j < n; j += threads)
      if (place_of(x, j) == place) *again = 1;
    barrier();
    return *again != 0;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
