// SPDX-License-Identifier: BSL-1.0
// Random numbers on devices: those of core/random.hpp, which are functions of a key and of the place of each element.
#pragma once

#include <dfdx/core/random.hpp>
#include <dfdx/kernels/cuda/own.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// DrawKernel - a thread for each number, or for the two that one counter gives if they are normal.
template <class Code, class T, bool Normal>
struct DrawKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<2>;
  static constexpr index_t at_once = Normal ? 2 : 1;
  static constexpr index_t work(index_t const* s) {
    return (W::template count<2>(s) + at_once - 1) / at_once;
  }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    Key const key(static_cast<std::uint64_t>(*static_cast<std::int64_t const*>(x.base[1])));
    auto const stream = static_cast<std::uint64_t>(x.attrs.i[1]);
    constexpr double most = sizeof(T) == 4 ? 1 - 0x1p-24 : 1;  // the last that does not round to 1
    auto* const to = static_cast<T*>(x.base[2]);
    index_t const n = W::template count<2>(s), all = work(s);
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
      auto const i = static_cast<std::uint64_t>(t);
      if constexpr (Normal) {
        NormalPair const two(key, i, stream);
        to[W::template offset<2, 0, rank>(2 * t, s)] = static_cast<T>(two.even());
        if (2 * t + 1 < n) to[W::template offset<2, 0, rank>(2 * t + 1, s)] = static_cast<T>(two.odd());
      } else {
        double const u = uniform_at(key, i, stream);
        to[W::template offset<2, 0, rank>(t, s)] = static_cast<T>(u < most ? u : most);
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
