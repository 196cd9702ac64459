// SPDX-License-Identifier: BSL-1.0
// Device kernels of the ops that lay elements out anew: pad, concat, flip, slide and index_copy.
#pragma once

#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/kernels/cuda/threads.hpp>

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

/// IndexCopyKernel - parts at places of an axis; of several for one place the last is copied. Each place knows which
/// that is, from a table, so that none waits for another; what is in no part is there already, or has been copied.
template <class Code, class E, class I, int Axis>
struct IndexCopyKernel {
  using W = Walks<Code>;
  static constexpr int rank = W::template rank<3>;
  static constexpr index_t workspace(index_t const* s) {
    return W::template extent<3, Axis>(s) * static_cast<index_t>(sizeof(int));
  }

  /// Which part is the last for each place, -1 before there is one.
  struct FindLast {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = W::template count<1>(s);
      for (index_t k = block() * threads + thread(); k < n; k += blocks() * threads) {
        index_t const place = place_of(x, k);
        if (x.holds(place, W::template extent<3, Axis>(s)))
          raise_to(static_cast<int*>(x.workspace) + place, static_cast<int>(k));
      }
    }
  };
  struct CopyParts {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const inner = W::template count<2, Axis + 1, rank>(s),
                    of_part = W::template count<2, 0, Axis>(s) * inner,
                    all = W::template count<1>(s) * of_part, extent = W::template extent<3, Axis>(s);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        index_t const k = t / of_part, place = place_of(x, k), i = t - k * of_part;
        if (place < 0 || place >= extent || static_cast<int const*>(x.workspace)[place] != k) continue;
        static_cast<E*>(x.base[3])[place * W::template stride<3, Axis>(s) + part<3>(i, inner, s)] =
            static_cast<E const*>(x.base[2])[k * W::template stride<2, Axis>(s) + part<2>(i, inner, s)];
      }
    }
  };
  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    index_t const n = W::template count<1>(s);
    if (n > INT32_MAX) return cudaErrorInvalidValue;
    if (auto const said = CopyFirst<Code, E>::start_unless_there(x, stream); said != cudaSuccess) return said;
    if (n == 0) return cudaSuccess;
    if (auto const bytes = static_cast<std::size_t>(workspace(s)); bytes != 0)
      if (auto const said = cudaMemsetAsync(x.workspace, 0xff, bytes, stream); said != cudaSuccess)
        return said;
    if (auto const said = start<FindLast>(x, blocks_for(n, own_threads), stream); said != cudaSuccess)
      return said;
    return start<CopyParts>(x, blocks_for(W::template count<2>(s), own_threads), stream);
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
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
