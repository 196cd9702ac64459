// SPDX-License-Identifier: BSL-1.0
// Device kernels of the ops that move elements to computed places: take and its transpose, gather and its transpose,
// and the look at labels. Sums are added in the order of the indices, so that results do not depend on which thread
// is first.
#pragma once

#include <dfdx/kernels/cuda/grouped.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// TakeKernel - rows of a table of numbers E by an index of numbers I.
template <class Code, class E, class I>
struct TakeKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, axes = W::template rank<1>, rows = W::template rank<0>;
  static constexpr index_t work(index_t const* s) { return W::template count<2>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    auto const* const table = static_cast<E const*>(x.base[0]);
    auto const* const index = static_cast<I const*>(x.base[1]);
    auto* const out = static_cast<E*>(x.base[2]);
    index_t const row = W::template count<0, 1>(s), n = W::template count<2>(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
      index_t const at = W::quotient(t, row), in_row = W::remainder(t, row);
      auto const r = static_cast<index_t>(index[W::template offset<1, 0, axes>(at, s)]);
      bool const holds = x.holds(r, W::template extent<0, 0>(s));
      index_t const from = r * W::template stride<0, 0>(s) + W::template offset<0, 1, rows>(in_row, s);
      out[W::template offset<1, 0, axes, 2>(at, s) + W::template offset<0, 1, rows, 2, axes - 1>(in_row, s)] =
          holds ? table[from] : E{};
    }
  }
};

/// RowsAddKernel - the transpose of take, into zeros: rows are grouped by their index, and a thread adds up an element
/// of a group, in order. Onto - a first operand is there, to which they are added.
template <class Code, class T, class I, bool Onto = false>
struct RowsAddKernel {
  using W = Walks<Code>;
  using C = compute_t<T>;
  static constexpr int from = Onto ? 2 : 0, to = Onto ? 3 : 2;
  static constexpr int axes = W::template rank<1>, rank = W::template rank<from>;
  static constexpr bool into_zeros = !Onto;
  static constexpr index_t workspace(index_t const* s) { return Grouped::bytes(1, W::template count<1>(s)); }

  struct Keys {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = W::template count<1>(s);
      Grouped const grouped(x.workspace, 1, n);
      for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
        auto const row =
            static_cast<index_t>(static_cast<I const*>(x.base[1])[W::template offset<1, 0, axes>(t, s)]);
        bool const holds = x.holds(row, W::template extent<to, 0>(s));
        grouped.key(0, t) = holds ? static_cast<Grouped::Key>(row) : -1;
      }
    }
  };
  struct Sums {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = W::template count<1>(s), row = W::template count<from, axes>(s), all = n * row;
      Grouped const grouped(x.workspace, 1, n);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        index_t const at = t / row, c = t % row;
        Grouped::Key key;
        if (!grouped.begins(0, at, key)) continue;
        T const* const first =
            static_cast<T const*>(x.base[from]) + W::template offset<from, axes, rank>(c, s);
        C const sum = grouped.template sum<C>(0, at, [&](index_t place) {
          return static_cast<C>(first[W::template offset<1, 0, axes, from>(place, s)]);
        });
        T& y = static_cast<T*>(x.base[to])[key * W::template stride<to, 0>(s) +
                                           W::template offset<from, axes, rank, to, 1 - axes>(c, s)];
        if constexpr (Onto) y = static_cast<T>(static_cast<C>(y) + sum);
        else y = static_cast<T>(sum);
      }
    }
  };
  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    index_t const n = W::template count<1>(s);
    if constexpr (Onto)
      if (auto const said = CopyFirst<Code, T>::start_unless_there(x, stream); said != cudaSuccess)
        return said;
    if (n == 0) return cudaSuccess;
    if (W::template extent<to, 0>(s) > INT32_MAX) return cudaErrorInvalidValue;
    if (auto const said = start<Keys>(x, blocks_for(n, own_threads), stream); said != cudaSuccess)
      return said;
    if (auto const said = Grouped(x.workspace, 1, n).sort(stream); said != cudaSuccess) return said;
    return start<Sums>(x, blocks_for(n * W::template count<from, axes>(s), own_threads), stream);
  }
};

/// GatherKernel - elements at places along an axis.
template <class Code, class E, class I, int Axis>
struct GatherKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<1>;
  static constexpr index_t work(index_t const* s) { return W::template count<1>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    auto const* const from = static_cast<E const*>(x.base[0]);
    auto const* const index = static_cast<I const*>(x.base[1]);
    auto* const out = static_cast<E*>(x.base[2]);
    index_t const n = W::template count<1>(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
      auto const i = static_cast<index_t>(index[W::template offset<1, 0, rank>(t, s)]);
      bool const holds = x.holds(i, W::template extent<0, Axis>(s));
      index_t const at =
          W::template offset<1, 0, rank, 0, 0, Axis>(t, s) + i * W::template stride<0, Axis>(s);
      out[W::template offset<1, 0, rank, 2>(t, s)] = holds ? from[at] : E{};
    }
  }
};

/// ScatterKernel - its transpose, into zeros: a thread for each line along the axis, in order; attrs.i[1] says
/// whether an element replaces those before it. Onto - a first operand is there, whose elements they are added to.
template <class Code, class T, class I, int Axis, bool Onto = false>
struct ScatterKernel {
  using W = Walks<Code>;
  static constexpr int from = Onto ? 2 : 0, to = Onto ? 3 : 2;
  static constexpr int threads = own_threads, rank = W::template rank<1>;
  static constexpr bool into_zeros = !Onto;
  static constexpr index_t lines(index_t const* s) {
    return W::template count<1, 0, Axis>(s) * W::template count<1, Axis + 1, rank>(s);
  }
  static constexpr index_t work(index_t const* s) { return lines(s); }
  template <int K>
  static DFDX_INLINE index_t line_of(index_t t, index_t const* s) {
    index_t const inner = W::template count<1, Axis + 1, rank>(s);
    return W::template offset<1, 0, Axis, K>(W::quotient(t, inner), s) +
           W::template offset<1, Axis + 1, rank, K>(W::remainder(t, inner), s);
  }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const n = W::template count<1, 0, Axis>(s) * W::template count<1, Axis + 1, rank>(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
      T const* const first = static_cast<T const*>(x.base[from]) + line_of<from>(t, s);
      I const* const index = static_cast<I const*>(x.base[1]) + line_of<1>(t, s);
      T* const y = static_cast<T*>(x.base[to]) + line_of<to>(t, s);
      for (index_t k = 0; k < W::template extent<1, Axis>(s); ++k) {
        auto const i = static_cast<index_t>(index[k * W::template stride<1, Axis>(s)]);
        if (!x.holds(i, W::template extent<to, Axis>(s))) continue;
        T& sum = y[i * W::template stride<to, Axis>(s)];
        T const v = first[k * W::template stride<from, Axis>(s)];
        sum = x.attrs.i[1] != 0 ? v : static_cast<T>(sum + v);
      }
    }
  }
  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream)
    requires Onto
  {
    auto const said = CopyFirst<Code, T>::start_unless_there(x, stream);
    return said != cudaSuccess ? said : start<ScatterKernel>(x, blocks_for(work(x.symbols), threads), stream);
  }
};

/// LabelKernel - labels as they are, if each is below attrs.i[0], or is attrs.i[1].
template <class Code, class I>
struct LabelKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<0>;
  static constexpr index_t work(index_t const* s) { return W::template count<0>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const n = W::template count<0>(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads) {
      I const label = static_cast<I const*>(x.base[0])[W::template offset<0, 0, rank>(t, s)];
      bool const holds = static_cast<index_t>(label) == x.attrs.i[1] ||
                         x.holds(static_cast<index_t>(label), x.attrs.i[0], true);
      static_cast<I*>(x.base[1])[W::template offset<0, 0, rank, 1>(t, s)] = holds ? label : I{};
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
