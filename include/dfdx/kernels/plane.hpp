// SPDX-License-Identifier: BSL-1.0
// A plane of the input of a convolution within zeros, in which what a line of the result sees is contiguous.
#pragma once

#include <algorithm>

#include <dfdx/core/window.hpp>
#include <dfdx/kernels/rvv/depthwise.hpp>
#include <dfdx/kernels/simd/pairs.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>

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
  /// Copies a plane of extents n into zeros; where there may be something else, as of other lines, it clears lines that
  /// have no elements. Clearing is for planes of one of the first axis.
  template <class E>
  void fill(E const* x, index_t const (&n)[3], E* to, bool clears = false) const {
    index_t const count = std::clamp<index_t>((extent[2] - before[2] + spread[2] - 1) / spread[2], 0, n[2]);
    // Elements of the input inside, along each axis.
    index_t low[2], high[2];
    for (int i = 0; i < 2; ++i) {
      low[i] = before[i] >= 0 ? 0 : (-before[i] + spread[i] - 1) / spread[i];
      high[i] = std::min(n[i], (extent[i] - before[i] + spread[i] - 1) / spread[i]);
    }
    index_t b = 0;
    auto const clear = [&](index_t a, index_t to_line) {
      if (clears)
        for (; b < to_line; ++b) std::fill_n(to + a * step[0] + b * step[1], step[1], E(0));
      b = to_line + 1;
    };
    for (index_t i = low[0]; i < high[0]; ++i) {
      index_t const a = i * spread[0] + before[0];
      b = 0;
      for (index_t j = low[1]; j < high[1]; ++j) {
        index_t const line = j * spread[1] + before[1];
        clear(a, line);
        fill_line(x + (i * n[1] + j) * n[2], count, to + a * step[0] + line * step[1]);
      }
      clear(a, extent[1]);
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
  template <class E>
  void fill_line(E const* from, index_t count, E* line) const {
    if (apart == 1 && spread[2] == 1) {
      copy(from, count, line + before[2]);
    } else if (apart == 1) {
      for (index_t k = 0; k < count; ++k) line[before[2] + k * spread[2]] = from[k];
#if !defined(DFDX_RVV)
    } else if (apart == 2) {
      index_t const b = before[2];
      for (index_t k = 0; k < count; k += 64 / static_cast<index_t>(sizeof(E)))
        ask_to_read(from + k, 16 * 1024);
      split(from, count, line + b % 2 * part + b / 2, line + (b + 1) % 2 * part + (b + 1) / 2);
#endif
    } else {
      for (index_t r = 0; r < apart; ++r) {  // elements k for which before + k = r + apart * m
        index_t const first = (r + apart - before[2] % apart) % apart;
        E* put = line + r * part + (before[2] + first) / apart;
#if defined(DFDX_RVV)
        if (first < count) rvv::copy_row(from + first, apart, (count - first + apart - 1) / apart, put);
#else
        for (index_t k = first; k < count; k += apart) *put++ = from[k];
#endif
      }
    }
  }
  // Lines are short: no call each. The last lane puts zeros where there are zeros, or where the next line will be.
  template <class E>
  static DFDX_INLINE void copy(E const* from, index_t count, E* to) {
#if defined(DFDX_RVV)
    rvv::copy_row(from, 1, count, to);
#else
    constexpr int W = lane_size<E>, ahead = 16 * 1024;  // planes follow each other
    index_t k = 0;
    for (; k + W <= count; k += W) {
      ask_to_read(from + k, ahead);
      lane<E>::load_unaligned(from + k).store_unaligned(to + k);
    }
    if (int const rest = static_cast<int>(count - k); rest > 0) {
      ask_to_read(from + k, ahead);
      load_n(from + k, rest).store_unaligned(to + k);
    }
#endif
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
