// SPDX-License-Identifier: BSL-1.0
// The device kernel of recurrences: a line is one thread's, which goes along it as the CPU does.
#pragma once

#include <dfdx/core/math.hpp>
#include <dfdx/kernels/cuda/lines.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// RecurrenceKernel - op::recurrence of numbers T along an axis, whose attributes come with each call. Steps of a line
/// wait for each other, and joined in another order products of many numbers might be infinite where none of the
/// results is: so lines are what is shared among threads. What the next steps need is read before them.
template <class Code, class T, int Axis>
struct RecurrenceKernel {
  using At = AxisLines<Code, 2, Axis>;
  using Carried = std::conditional_t<is_floating(dtype_v<T>), double, T>;
  static constexpr int threads = own_threads, ahead = 8;
  static DFDX_INLINE constexpr index_t work(index_t const* s) { return At::lines(s); }

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const all = At::lines(x.symbols);
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) line(x, t);
  }

 private:
  template <int K>
  static DFDX_INLINE T* begin(OwnArguments const& x, index_t t, index_t place) {
    return static_cast<T*>(x.base[K]) + At::template begin<K>(t, x.symbols) +
           place * At::template step<K>(x.symbols);
  }
  static DFDX_INLINE void line(OwnArguments const& x, index_t t) {
    index_t const* const s = x.symbols;
    bool const backwards = (x.attrs.i[1] & 1) != 0;
    index_t const n = At::length(s), sign = backwards ? -1 : 1, first = backwards ? n - 1 : 0;
    index_t const a_step = sign * At::template step<0>(s), b_step = sign * At::template step<1>(s),
                  y_step = sign * At::template step<2>(s);
    // With the factor of the place before, step k is multiplied with that of step k - 1.
    T const* const a = begin<0>(x, t, first) - ((x.attrs.i[1] & 2) != 0 ? a_step : 0);
    T const* const b = begin<1>(x, t, first);
    T* const y = begin<2>(x, t, first);
    Carried carried(0);
    for (index_t k0 = 0; k0 < n; k0 += ahead) {
      T by[ahead], more[ahead];
      DFDX_UNROLL for (int i = 0; i < ahead; ++i) {
        index_t const k = k0 + i;
        by[i] = k > 0 && k < n ? a[k * a_step] : T(0);
        more[i] = k < n ? b[k * b_step] : T(0);
      }
      DFDX_UNROLL for (int i = 0; i < ahead; ++i) {
        if (k0 + i >= n) continue;
        auto const own = static_cast<Carried>(more[i]);
        auto const scaled = static_cast<Carried>(math::times(carried, static_cast<Carried>(by[i])));
        carried = k0 + i == 0 ? own : static_cast<Carried>(math::plus(scaled, own));
        y[(k0 + i) * y_step] = static_cast<T>(carried);
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
