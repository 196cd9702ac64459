// SPDX-License-Identifier: BSL-1.0
// A plane of the input of a convolution within zeros, in which what a line of the result sees is contiguous.
#pragma once

#include <algorithm>

#include <dfdx/core/window.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Plane - along a line elements that are a stride apart are neighbours: those of each remainder make a part of it.
/// `spread` puts zeros between elements.
struct Plane {
  index_t before[3], extent[3], step[3], apart, part, spread[3] = {1, 1, 1};

  static Plane of_input(ConvGeometry const& g) {
    Plane f{};
    for (int i = 0; i < 3; ++i) {
      f.before[i] = g.w[i].before;
      f.extent[i] = g.w[i].stride * (g.y[i] - 1) + g.w[i].reach();
      f.spread[i] = 1;
    }
    f.apart = g.w[2].stride;
    f.part = (f.extent[2] + f.apart - 1) / f.apart;
    f.step[2] = 1, f.step[1] = f.part * f.apart, f.step[0] = f.extent[1] * f.step[1];
    return f;
  }
  /// The numbers of one plane.
  index_t size() const { return extent[0] * step[0]; }
  /// What several planes take. Lanes at the end of the last line reach beyond it.
  template <class E>
  std::size_t room(index_t planes = 1) const {
    return static_cast<std::size_t>(planes * size() + 4 * lane_size<E>);
  }
  template <class E>
  void fill(E const* x, index_t const (&n)[3], E* to) const {
    for (index_t i = 0; i < n[0]; ++i)
      for (index_t j = 0; j < n[1]; ++j) {
        index_t const a = i * spread[0] + before[0], b = j * spread[1] + before[1];
        if (a >= extent[0] || b >= extent[1]) continue;
        E const* const from = x + (i * n[1] + j) * n[2];
        E* const line = to + a * step[0] + b * step[1];
        index_t const count =
            std::clamp<index_t>((extent[2] - before[2] + spread[2] - 1) / spread[2], 0, n[2]);
        if (apart == 1 && spread[2] == 1) {
          copy(from, count, line + before[2]);
        } else if (apart == 1) {
          for (index_t k = 0; k < count; ++k) line[before[2] + k * spread[2]] = from[k];
        } else {
          for (index_t r = 0; r < apart; ++r) {  // elements k for which before + k = r + apart * m
            index_t const first = (r + apart - before[2] % apart) % apart;
            E* put = line + r * part + (before[2] + first) / apart;
            for (index_t k = first; k < count; k += apart) *put++ = from[k];
          }
        }
      }
  }
  /// Where each element of a window lies from the window's place on.
  void list(Window const (&w)[3], index_t* to) const {
    for (index_t i = 0; i < w[0].size; ++i)
      for (index_t j = 0; j < w[1].size; ++j)
        for (index_t k = 0; k < w[2].size; ++k) {
          index_t const along = w[2].dilation * k;
          *to++ = i * w[0].dilation * step[0] + j * w[1].dilation * step[1] + along % apart * part +
                  along / apart;
        }
  }

 private:
  // Lines are short: no call each.
  template <class E>
  static DFDX_INLINE void copy(E const* from, index_t count, E* to) {
    constexpr int W = lane_size<E>;
    index_t k = 0;
    for (; k + W <= count; k += W) lane<E>::load_unaligned(from + k).store_unaligned(to + k);
    if (int const rest = static_cast<int>(count - k); rest > 0) store_n(to + k, load_n(from + k, rest), rest);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
