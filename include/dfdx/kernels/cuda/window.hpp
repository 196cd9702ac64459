// SPDX-License-Identifier: BSL-1.0
// Device kernels of pooling and of what resamples an axis: the largest element of each window, and linear maps along an
// axis. Each thread makes an element of the result by itself, so that results do not depend on their order.
#pragma once

#include <dfdx/core/sampling.hpp>
#include <dfdx/kernels/cuda/own.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// WindowArgmaxKernel - a thread for each window of elements T.
template <class Code, class T, class Place, class Windows>
struct WindowArgmaxKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<0>;
  static constexpr index_t work(index_t const* s) { return W::template count<1>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const all = work(s);
    index_t n[3] = {1, 1, 1}, m[3] = {1, 1, 1}, window[3] = {}, step[3] = {};
    geometry(x, n, m, window, step, std::make_index_sequence<static_cast<std::size_t>(rank - 1)>{});
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
      index_t const k = t % m[2], j = t / m[2] % m[1], i = t / m[2] / m[1] % m[0], b = t / m[2] / m[1] / m[0];
      Span const spans[3] = {Span::of(window[0], i, n[0], m[0]), Span::of(window[1], j, n[1], m[1]),
                             Span::of(window[2], k, n[2], m[2])};
      T const* const sample = static_cast<T const*>(x.base[0]) + b * W::template stride<0, 0>(s);
      static_cast<Place*>(x.base[1])[W::template offset<1, 0, rank>(t, s)] =
          static_cast<Place>(largest_place(sample, spans, n, step));
    }
  }

 private:
  template <std::size_t... D>
  static DFDX_INLINE void geometry(OwnArguments const& x, index_t (&n)[3], index_t (&m)[3],
                                   index_t (&window)[3], index_t (&step)[3], std::index_sequence<D...>) {
    constexpr int first = 4 - rank;
    ((n[first + D] = W::template extent<0, static_cast<int>(D) + 1>(x.symbols),
      m[first + D] = W::template extent<1, static_cast<int>(D) + 1>(x.symbols),
      window[first + D] = kernels::detail::resolved(Windows::value[D], x.symbols),
      step[first + D] = W::template stride<0, static_cast<int>(D) + 1>(x.symbols)),
     ...);
  }
};

/// FixedSampling, GivenSampling - how ResampleKernel samples, and its windows: known when it is compiled; attributes of
/// the call.
template <op::Sampling How, index_t Packed>
struct FixedSampling {
  static DFDX_INLINE constexpr op::Sampling how(Attrs const&) { return How; }
  static DFDX_INLINE constexpr index_t window(Attrs const&) { return Packed; }
};
struct GivenSampling {
  static DFDX_INLINE constexpr op::Sampling how(Attrs const& a) { return static_cast<op::Sampling>(a.i[1]); }
  static DFDX_INLINE constexpr index_t window(Attrs const& a) { return a.i[2]; }
};

/// ResampleKernel - a thread for each element of the result. Of a transposed map it is a sum over those positions whose
/// terms reach it: they lie together, and where they begin is found by bisection.
template <class Code, class T, int Axis, bool Transposed, class Sampled>
struct ResampleKernel {
  using W = Walks<Code>;
  using C = std::conditional_t<std::is_integral_v<T>, std::int64_t, compute_t<T>>;
  static constexpr int threads = own_threads, rank = W::template rank<1>;
  static constexpr index_t work(index_t const* s) { return W::template count<1>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const all = work(s), inner = W::template count<1, Axis + 1, rank>(s),
                  from = W::template extent<0, Axis>(s), to = W::template extent<1, Axis>(s),
                  step = W::template stride<0, Axis>(s);
    op::detail::SamplingRule const rule{Sampled::how(x.attrs), Sampled::window(x.attrs),
                                        Transposed ? to : from, Transposed ? from : to, x.attrs.f[0]};
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
      index_t const i = W::remainder(W::quotient(t, inner), to);
      T const* const line =
          static_cast<T const*>(x.base[0]) + W::template offset<1, 0, rank, 0, 0, Axis>(t, s);
      C sum{};
      bool is_first = true;  // what is moved keeps its sign, also a zero
      auto const add = [&](index_t place, double c) {
        C const term = static_cast<C>(static_cast<C>(c) * static_cast<C>(line[place * step]));
        sum = is_first ? term : static_cast<C>(sum + term);
        is_first = false;
      };
      if constexpr (Transposed) {
        for (index_t p = first_that_reaches(rule, i); p < rule.m && reach_of(rule, p).first <= i; ++p)
          rule.for_terms_at(i, p, [&](index_t, double c) { add(p, c); });
      } else {
        rule.for_terms(i, add);
      }
      static_cast<T*>(x.base[1])[W::template offset<1, 0, rank>(t, s)] = static_cast<T>(sum);
    }
  }

 private:
  // The first and the last place that the terms of a position have, or would have if the axis had no ends: both grow
  // with the position.
  struct Reach {
    index_t first = INT64_MAX, last = -1;
  };
  static DFDX_INLINE Reach reach_of(op::detail::SamplingRule const& rule, index_t p) {
    if (rule.is_of_windows()) {
      if (rule.window != 0) {
        Window const w = Window::of(rule.window);
        return {w.at(p, 0), w.at(p, w.size - 1)};
      }
      Span const bin = Span::bin(p, rule.n, rule.m);
      return {bin.first, bin.first + bin.count - 1};
    }
    Reach r;
    rule.for_terms(p, [&](index_t place, double) {
      r.first = place < r.first ? place : r.first;
      r.last = place > r.last ? place : r.last;
    });
    return r;
  }
  static DFDX_INLINE index_t first_that_reaches(op::detail::SamplingRule const& rule, index_t i) {
    index_t low = 0, high = rule.m;
    while (low < high) {
      index_t const p = low + (high - low) / 2;
      if (reach_of(rule, p).last < i) low = p + 1;
      else high = p;
    }
    return low;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
