// SPDX-License-Identifier: BSL-1.0
// Device kernels of searchsorted and argmax.
#pragma once

#include <dfdx/core/order.hpp>
#include <dfdx/kernels/cuda/lines.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// SearchKernel - where values belong in ascending lists, a thread for each value.
template <class Code, class T, bool Behind>
struct SearchKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, lists = W::template rank<0>, rank = W::template rank<1>;
  static constexpr index_t work(index_t const* s) { return W::template count<2>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const count = work(s), n = W::template extent<0, lists - 1>(s),
                  step = W::template stride<0, lists - 1>(s);
    for (index_t t = block() * threads + thread(); t < count; t += blocks() * threads) {
      auto const v =
          static_cast<compute_t<T>>(static_cast<T const*>(x.base[1])[W::template offset<1, 0, rank>(t, s)]);
      T const* list = static_cast<T const*>(x.base[0]);
      if constexpr (lists > 1)
        list += W::template offset<1, 0, rank - 1, 0>(t / W::template extent<1, rank - 1>(s), s);
      index_t low = 0, high = n;
      while (low < high) {
        index_t const m = low + (high - low) / 2;
        auto const other = static_cast<compute_t<T>>(list[m * step]);
        if (Behind ? !op::detail::before(v, other) : op::detail::before(other, v)) low = m + 1;
        else high = m;
      }
      static_cast<std::int64_t*>(x.base[2])[W::template offset<2, 0, rank>(t, s)] = low;
    }
  }
};

/// ArgmaxKernel - a block for each line: the first of the largest elements along an axis (of the smallest), or of NaN.
template <class Code, class T, int Axis, bool Smallest>
struct ArgmaxKernel {
  using At = AxisLines<Code, 0, Axis>;
  static constexpr int threads = 128;
  static constexpr index_t work(index_t const* s) { return At::lines(s) * threads; }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const lines = At::lines(s), n = At::length(s), step = At::template step<0>(s);
    Found* const found = shared<ArgmaxKernel, Found, threads>();
    for (index_t line = block(); line < lines; line += blocks()) {
      T const* const from = static_cast<T const*>(x.base[0]) + At::template begin<0>(line, s);
      Found mine{static_cast<compute_t<T>>(from[0]), 0};
      for (index_t i = thread(); i < n; i += threads) {
        Found const other{static_cast<compute_t<T>>(from[i * step]), i};
        if (other.is_before(mine)) mine = other;
      }
      barrier();  // until all have read what the last line left
      found[thread()] = mine;
      barrier();
      for (int half = threads / 2; half > 0; half /= 2) {
        if (thread() < half && found[thread() + half].is_before(found[thread()]))
          found[thread()] = found[thread() + half];
        barrier();
      }
      if (thread() == 0)
        static_cast<std::int64_t*>(x.base[1])[At::template begin<1>(line, s)] = found[0].place;
    }
  }

 private:
  struct Found {
    compute_t<T> value;
    index_t place;
    DFDX_INLINE bool is_before(Found const& o) const {
      bool const is_nan = value != value, other_is_nan = o.value != o.value;
      if (is_nan || other_is_nan) return is_nan && (!other_is_nan || place < o.place);
      if (value == o.value) return place < o.place;
      return Smallest ? value < o.value : value > o.value;
    }
  };
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
