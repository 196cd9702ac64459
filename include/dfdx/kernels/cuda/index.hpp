// SPDX-License-Identifier: BSL-1.0
// Device kernels of the ops that move elements to computed places: take and its transpose, gather and its transpose,
// and the look at labels. Sums are added in the order of the indices, so that results do not depend on which thread
// is first.
#pragma once

#include <dfdx/kernels/cuda/own.hpp>

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

/// RowsAddKernel - the transpose of take, into zeros: a block for each index, which does nothing if that was there
/// before, and else adds up all rows that have it, in order.
template <class Code, class T, class I>
struct RowsAddKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, axes = W::template rank<1>, rank = W::template rank<0>;
  static constexpr bool into_zeros = true;
  static constexpr index_t work(index_t const* s) { return W::template count<1>(s) * threads; }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    auto const* const index = static_cast<I const*>(x.base[1]);
    index_t const n = W::template count<1>(s), rows = W::template extent<2, 0>(s);
    for (index_t i = block(); i < n; i += blocks()) {
      auto const mine = static_cast<index_t>(index[W::template offset<1, 0, axes>(i, s)]);
      if (!x.holds(mine, rows)) continue;
      T* const y = static_cast<T*>(x.base[2]) + mine * W::template stride<2, 0>(s);
      add_all(x, index, i, mine, y);
    }
  }

 private:
  static DFDX_INLINE void add_all(OwnArguments const& x, I const* index, index_t i, index_t mine, T* y) {
    constexpr int warps = threads / warp_size;
    index_t const* const s = x.symbols;
    index_t const n = W::template count<1>(s), row = W::template count<0, axes>(s);
    unsigned* const found = shared<RowsAddKernel, unsigned, warps>();
    bool first = true;
    for (index_t begin = 0; first && begin < n; begin += threads) {
      index_t const j = begin + thread();
      unsigned const vote =
          votes(j < n && static_cast<index_t>(index[W::template offset<1, 0, axes>(j, s)]) == mine);
      barrier();  // until all have used what lies there
      if (thread() % warp_size == 0) found[thread() / warp_size] = vote;
      barrier();
      for (int w = 0; first && w < warps; ++w) {
        unsigned bits = found[w];
        for (index_t k = begin + w * warp_size; first && bits != 0; ++k, bits >>= 1) {
          if ((bits & 1u) == 0) continue;
          first = k >= i;
          if (first) add(x, k, y, row);
        }
      }
    }
  }
  static DFDX_INLINE void add(OwnArguments const& x, index_t k, T* y, index_t row) {
    index_t const* const s = x.symbols;
    T const* const from = static_cast<T const*>(x.base[0]) + W::template offset<1, 0, axes, 0>(k, s);
    for (index_t c = thread(); c < row; c += threads) {
      T& to = y[W::template offset<0, axes, rank, 2, 1 - axes>(c, s)];
      to = static_cast<T>(to + from[W::template offset<0, axes, rank>(c, s)]);
    }
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
/// whether an element replaces those before it.
template <class Code, class T, class I, int Axis>
struct ScatterKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<1>;
  static constexpr bool into_zeros = true;
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
      T const* const from = static_cast<T const*>(x.base[0]) + line_of<0>(t, s);
      I const* const index = static_cast<I const*>(x.base[1]) + line_of<1>(t, s);
      T* const y = static_cast<T*>(x.base[2]) + line_of<2>(t, s);
      for (index_t k = 0; k < W::template extent<1, Axis>(s); ++k) {
        auto const i = static_cast<index_t>(index[k * W::template stride<1, Axis>(s)]);
        if (!x.holds(i, W::template extent<2, Axis>(s))) continue;
        T& to = y[i * W::template stride<2, Axis>(s)];
        T const v = from[k * W::template stride<0, Axis>(s)];
        to = x.attrs.i[1] != 0 ? v : static_cast<T>(to + v);
      }
    }
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
