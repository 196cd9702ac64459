// SPDX-License-Identifier: BSL-1.0
// Convolutions of single channels, as depthwise ones have them. Lanes run along lines of the result; a plane of the
// input is copied into a frame of zeros first, in which what a line sees is contiguous. Operands are dense.
#pragma once

#include <algorithm>
#include <utility>

#include <dfdx/core/window.hpp>
#include <dfdx/kernels/plane.hpp>
#include <dfdx/kernels/scratch.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// DepthwiseConv - the three products of a geometry whose groups have one channel in and out, as those of Conv.
template <class E>
class DepthwiseConv {
 public:
  explicit DepthwiseConv(ConvGeometry const& geometry) : g(geometry), taps(g.w_size()) {}

  void forward(E const* x, E const* w, E* y) const {
    Plane const frame = Plane::of_input(g);
    Scratch<E> const room(frame.template room<E>());
    Scratch<index_t> const at(static_cast<std::size_t>(taps));
    frame.list(g.w, at.get());
    std::fill_n(room.get(), frame.template room<E>(), E(0));
    for (index_t i = 0; i < g.batch * g.groups; ++i) {
      frame.fill(x + i * g.x_size(), g.x, room.get());
      convolve(frame, room.get(), at.get(), w + i % g.groups * taps, y + i * g.y_size(), g.y, true);
    }
  }

  /// x = y, with zeros between its elements where windows are apart, seen through the mirrored windows.
  void input(E* x, E const* w, E const* y) const {
    ConvGeometry back = g;
    for (int i = 0; i < 3; ++i) {
      back.w[i].stride = 1;
      back.w[i].before = g.w[i].dilation * (g.w[i].size - 1) - g.w[i].before;
      std::swap(back.x[i], back.y[i]);
    }
    Plane frame = Plane::of_input(back);
    for (int i = 0; i < 3; ++i) frame.spread[i] = g.w[i].stride;
    Scratch<E> const room(frame.template room<E>()), mirrored(static_cast<std::size_t>(taps));
    Scratch<index_t> const at(static_cast<std::size_t>(taps));
    frame.list(back.w, at.get());
    std::fill_n(room.get(), frame.template room<E>(), E(0));
    for (index_t i = 0; i < g.batch * g.groups; ++i) {
      frame.fill(y + i * g.y_size(), g.y, room.get());
      for (index_t k = 0; k < taps; ++k) mirrored.get()[k] = w[(i % g.groups + 1) * taps - 1 - k];
      convolve(frame, room.get(), at.get(), mirrored.get(), x + i * g.x_size(), g.x, false);
    }
  }
  /// Whether input() is for this geometry: no window lies beyond the input altogether.
  bool has_input() const {
    bool r = true;
    for (Window const& w : g.w) r = r && w.dilation * (w.size - 1) >= w.before;
    return r;
  }

  void weight(E const* x, E* w, E const* y) const {
    Plane const frame = Plane::of_input(g);
    Scratch<E> const room(frame.template room<E>());
    Scratch<index_t> const at(static_cast<std::size_t>(taps));
    frame.list(g.w, at.get());
    std::fill_n(room.get(), frame.template room<E>(), E(0));
    std::fill_n(w, g.groups * taps, E(0));
    for (index_t i = 0; i < g.batch * g.groups; ++i) {
      frame.fill(x + i * g.x_size(), g.x, room.get());
      for (index_t k = 0; k < taps; k += together)
        add_products(frame, room.get(), at.get() + k, std::min<index_t>(together, taps - k),
                     y + i * g.y_size(), w + i % g.groups * taps + k);
    }
  }

 private:
  using Plane = detail::Plane;
  static constexpr int W = lane_size<E>, together = 9;  // elements of a window at a time

  template <int C>
  DFDX_INLINE void lanes(E const* from, index_t const* at, E const* w, E* to, index_t count) const {
    lane<E> sum[C];
    DFDX_UNROLL for (int c = 0; c < C; ++c) sum[c] = lane<E>(E(0));
    for (index_t k = 0; k < taps; ++k) {
      lane<E> const factor(w[k]);
      DFDX_UNROLL for (int c = 0; c < C; ++c) sum[c] =
          xsimd::fma(factor, lane<E>::load_unaligned(from + at[k] + c * W), sum[c]);
    }
    DFDX_UNROLL for (int c = 0; c < C; ++c) {
      if (count >= (c + 1) * W) sum[c].store_unaligned(to + c * W);
      else if (count > c * W) store_n(to + c * W, sum[c], static_cast<int>(count - c * W));
    }
  }
  void convolve(Plane const& f, E const* from, index_t const* at, E const* w, E* to, index_t const (&n)[3],
                bool strides) const {
    index_t const s0 = strides ? g.w[0].stride : 1, s1 = strides ? g.w[1].stride : 1;
    for (index_t i = 0; i < n[0]; ++i)
      for (index_t j = 0; j < n[1]; ++j, to += n[2]) {
        E const* const line = from + i * s0 * f.step[0] + j * s1 * f.step[1];
        index_t q = 0;
        for (; n[2] - q > 2 * W; q += 4 * W) lanes<4>(line + q, at, w, to + q, n[2] - q);
        for (; n[2] - q > 0; q += W) lanes<1>(line + q, at, w, to + q, n[2] - q);
      }
  }
  // w[k] += the sum over positions of y times what element k of their windows is.
  void add_products(Plane const& f, E const* from, index_t const* at, index_t count, E const* y, E* w) const {
    lane<E> sum[together];
    index_t places[together];
    DFDX_UNROLL for (int k = 0; k < together; ++k) {
      sum[k] = lane<E>(E(0));
      places[k] = at[k < count ? k : 0];
    }
    for (index_t i = 0; i < g.y[0]; ++i)
      for (index_t j = 0; j < g.y[1]; ++j, y += g.y[2]) {
        E const* const line = from + i * g.w[0].stride * f.step[0] + j * g.w[1].stride * f.step[1];
        index_t q = 0;
        for (; q + W <= g.y[2]; q += W) {
          auto const v = lane<E>::load_unaligned(y + q);
          DFDX_UNROLL for (int k = 0; k < together; ++k) sum[k] =
              xsimd::fma(v, lane<E>::load_unaligned(line + q + places[k]), sum[k]);
        }
        if (int const rest = static_cast<int>(g.y[2] - q); rest > 0) {
          lane<E> const v = load_n(y + q, rest);
          DFDX_UNROLL for (int k = 0; k < together; ++k) sum[k] =
              xsimd::fma(v, load_n(line + q + places[k], rest), sum[k]);
        }
      }
    alignas(64) E part[W];
    DFDX_UNROLL for (int k = 0; k < together; ++k) {
      sum[k].store_aligned(part);
      E all = 0;
      for (E v : part) all += v;
      if (k < count) w[k] += all;
    }
  }

  ConvGeometry g;
  index_t taps;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
