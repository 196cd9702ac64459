// SPDX-License-Identifier: BSL-1.0
// Convolutions of single channels, as depthwise ones have them. Lanes run along lines of the result; a plane of the
// input is copied into a frame of zeros first, in which what a line sees is contiguous. Operands are dense.
#pragma once

#include <algorithm>
#include <utility>

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/kernels/plane.hpp>
#include <dfdx/kernels/rvv/depthwise.hpp>
#include <dfdx/kernels/simd/short_lines.hpp>
#include <dfdx/kernels/simd/spread_lines.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// DepthwiseConv - the three products of a geometry whose groups have one channel in and out, as those of Conv.
template <class E>
class DepthwiseConv {
 public:
  constexpr explicit DepthwiseConv(ConvGeometry const& geometry) : g(geometry), taps(g.w_size()) {}

  void forward(E const* x, E const* w, E* y) const {
    if (Short::fits(g)) {
      Short const one(g);
      return each_plane(
          [&](index_t i) { one.forward(x + i * g.x_size(), w + i % g.groups * taps, y + i * g.y_size()); });
    }
    over_parts(Plane::of_input(g), x,
               [&](index_t plane, Plane const& f, E const* from, index_t const* at, Lines l) {
                 convolve(f, from, at, w + plane % g.groups * taps, y + plane * g.y_size() + l.first * g.y[2],
                          l.count);
               });
  }

  /// x = y, with zeros between its elements where windows are apart, seen through the mirrored windows.
  void input(E* x, E const* w, E const* y) const {
#if !defined(DFDX_RVV)
    if (detail::SpreadLines<E>::fits(g)) {
      detail::SpreadLines<E> const one(g);
      return each_plane(
          [&](index_t i) { one.input(x + i * g.x_size(), w + i % g.groups * taps, y + i * g.y_size()); });
    }
#endif
    ConvGeometry back = g;
    for (int i = 0; i < 3; ++i) {
      back.w[i].stride = 1;
      back.w[i].before = g.w[i].dilation * (g.w[i].size - 1) - g.w[i].before;
      std::swap(back.x[i], back.y[i]);
    }
    Plane frame = Plane::of_input(back);
    bool spread = false;
    for (int i = 0; i < 3; ++i) frame.spread[i] = g.w[i].stride, spread = spread || g.w[i].stride != 1;
    Scratch<E> const mirrored(static_cast<std::size_t>(g.groups * taps));
    for (index_t i = 0; i < g.groups * taps; ++i)
      mirrored.get()[i] = w[i / taps * taps + taps - 1 - i % taps];
    DepthwiseConv const other(back);
    if (!spread && Short::fits(back)) return other.forward(y, mirrored.get(), x);
    other.over_parts(frame, y, [&](index_t plane, Plane const& f, E const* from, index_t const* at, Lines l) {
      other.convolve(f, from, at, mirrored.get() + plane % g.groups * taps,
                     x + plane * g.x_size() + l.first * g.x[2], l.count);
    });
  }
  /// Whether input() is for this geometry: no window lies beyond the input altogether.
  constexpr bool has_input() const {
    bool r = true;
    for (Window const& w : g.w) r = r && w.dilation * (w.size - 1) >= w.before;
    return r;
  }

  /// Sums of a group stay vectors until all samples have been added.
  void weight(E const* x, E* w, E const* y) const {
#if defined(DFDX_RVV)
    std::fill_n(w, g.groups * taps, E(0));
    over_parts(
        Plane::of_input(g), x, [&](index_t plane, Plane const& f, E const* from, index_t const* at, Lines l) {
          E const* const ys = y + plane * g.y_size() + l.first * g.y[2];
          for (index_t i = 0; i < g.y[0]; ++i)
            rvv::add_line_products(from + i * g.w[0].stride * f.step[0], g.w[1].stride * f.step[1], at, taps,
                                   ys + i * l.count * g.y[2], l.count, g.y[2], w + plane % g.groups * taps);
        });
#else
    std::size_t const size = static_cast<std::size_t>(g.groups * taps * W);
    Scratch<E> const sums(size);
    if (size > 0) std::fill_n(sums.get(), size, E(0));
    if (Short::fits(g)) {
      Short const one(g);
      each_plane([&](index_t i) {
        one.weight(x + i * g.x_size(), y + i * g.y_size(), sums.get() + i % g.groups * taps * W);
      });
    } else
      over_parts(Plane::of_input(g), x,
                 [&](index_t plane, Plane const& f, E const* from, index_t const* at, Lines l) {
                   add_products(f, from, at, y + plane * g.y_size() + l.first * g.y[2], l.count,
                                sums.get() + plane % g.groups * taps * W);
                 });
    for (index_t i = 0; i < g.groups * taps; ++i)
      w[i] = xsimd::reduce_add(lane<E>::load_aligned(sums.get() + i * W));
#endif
  }

 private:
  using Plane = detail::Plane;
  using Short = detail::ShortLines<E>;
  static constexpr int W = lane_size<E>, together = 9;     // elements of a window at a time
  static constexpr index_t ahead = 16 * 1024 / sizeof(E);  // what is written then

  // Lines of a plane of the result.
  struct Lines {
    index_t first, count;
  };

  template <class F>
  void each_plane(F const& f) const {
    for (index_t i = 0; i < g.batch * g.groups; ++i) f(i);
  }
  // f(plane, frame, its numbers, where the elements of a window are, lines) for parts of all planes, whose frames stay
  // in the first cache.
  template <class F>
  void over_parts(Plane frame, E const* x, F const& f) const {
    index_t const stride = g.w[1].stride, reach = g.w[1].reach(), near = 16 * 1024 / sizeof(E);
    index_t lines = g.y[1];
    if (g.y[0] == 1 && frame.spread[1] == 1 && frame.size() > near)
      lines = std::min(lines,
                       std::max<index_t>((near / frame.step[1] - reach) / stride + 1, 2 * reach + 8) / 4 * 4);
    bool const whole = lines == g.y[1];
    frame.extent[1] = stride * (lines - 1) + reach;
    frame.step[0] = frame.extent[1] * frame.step[1];
    Scratch<E> const room(frame.room<E>());
    Scratch<index_t> const at(static_cast<std::size_t>(taps));
    frame.list(g.w, at.get());
    std::fill_n(room.get(), frame.room<E>(), E(0));
    for (index_t i = 0; i < g.batch * g.groups; ++i)
      for (index_t j = 0; j < g.y[1]; j += lines) {
        Plane here = frame;
        here.before[1] -= j * stride;
        here.fill(x + i * g.x_size(), g.x, room.get(), !whole);
        f(i, here, room.get(), at.get(), Lines{j, std::min(lines, g.y[1] - j)});
      }
  }
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
  // Windows of three by three elements, the lines of which are neighbours.
  bool has_three() const {
    return g.w[0].size == 1 && g.y[0] == 1 && g.w[1].size == 3 && g.w[2].size == 3 && g.w[1].dilation == 1;
  }
  // R lines of one lane seen through windows of three lines of three, S lines apart: lines that several see are read
  // once.
  template <int S, int R>
  DFDX_INLINE void three_lines(E const* from, index_t step, index_t const* at, E const* w, E* to,
                               index_t to_row, int count) const {
    lane<E> sum[R], factor[9];
    DFDX_UNROLL for (int r = 0; r < R; ++r) detail::ask_to_write(to + r * to_row + ahead);
    DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r] = lane<E>(E(0));
    DFDX_UNROLL for (int k = 0; k < 9; ++k) factor[k] = lane<E>(w[k]);
    DFDX_UNROLL for (int i = 0; i < S * (R - 1) + 3; ++i) {
      DFDX_UNROLL for (int k = 0; k < 3; ++k) {
        auto const v = held(lane<E>::load_unaligned(from + i * step + at[k]));
        DFDX_UNROLL for (int r = 0; r < R; ++r) {
          if (i >= S * r && i < S * r + 3) sum[r] = xsimd::fma(factor[(i - S * r) * 3 + k], v, sum[r]);
        }
      }
    }
    DFDX_UNROLL for (int r = 0; r < R; ++r) store_n(to + r * to_row, sum[r], count);
  }
  template <int S>
  [[gnu::noinline]] void convolve_three(E const* from, index_t step, index_t const* at, E const* w, E* to,
                                        index_t lines) const {
    index_t const n = g.y[2];
    int const count = static_cast<int>(std::min<index_t>(n, W));
    for (index_t j = 0; j < lines;) {
      bool const four = lines - j >= 4;
      for (index_t q = 0; q < n; q += W) {
        // The last lane of a line overlaps the one before: whole lanes are stored at once.
        index_t const p = n >= W ? std::min<index_t>(q, n - W) : q;
        E const* const line = from + j * S * step + p;
        if (four && count == W) three_lines<S, 4>(line, step, at, w, to + j * n + p, n, W);
        else if (four) three_lines<S, 4>(line, step, at, w, to + j * n + p, n, count);
        else three_lines<S, 1>(line, step, at, w, to + j * n + p, n, count);
      }
      j += four ? 4 : 1;
    }
  }
  // Some lines of a plane of the result, or all planes.
  void convolve(Plane const& f, E const* from, index_t const* at, E const* w, E* to, index_t lines) const {
#if defined(DFDX_RVV)
    for (index_t i = 0; i < g.y[0]; ++i)
      rvv::convolve_lines(from + i * g.w[0].stride * f.step[0], f.step[1], g.w[1].stride, at, taps,
                          has_three(), w, to + i * lines * g.y[2], lines, g.y[2]);
#else
    if (has_three()) {
      if (g.w[1].stride == 1) return convolve_three<1>(from, f.step[1], at, w, to, lines);
      if (g.w[1].stride == 2) return convolve_three<2>(from, f.step[1], at, w, to, lines);
    }
    index_t const s0 = g.w[0].stride, s1 = g.w[1].stride, n = g.y[2];
    for (index_t i = 0; i < g.y[0]; ++i)
      for (index_t j = 0; j < lines; ++j, to += n) {
        E const* const line = from + i * s0 * f.step[0] + j * s1 * f.step[1];
        index_t q = 0;
        for (; n - q > 2 * W; q += 4 * W) lanes<4>(line + q, at, w, to + q, n - q);
        for (; n - q > 0; q += W) lanes<1>(line + q, at, w, to + q, n - q);
      }
#endif
  }
  // sums += the sums over lines of y times what each element of their windows is, of windows of three by three.
  template <int S, int R>
  DFDX_INLINE static void add_three_lines(E const* from, index_t step, index_t const* at, E const* y,
                                          index_t y_row, int count, lane<E> (&sum)[9]) {
    lane<E> v[R];
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      detail::ask_to_read(y + r * y_row, 16 * 1024);
      v[r] = load_n(y + r * y_row, count);
    }
    DFDX_UNROLL for (int i = 0; i < S * (R - 1) + 3; ++i) {
      DFDX_UNROLL for (int k = 0; k < 3; ++k) {
        lane<E> const u = held(load_n(from + i * step + at[k], count));
        DFDX_UNROLL for (int r = 0; r < R; ++r) {
          if (i >= S * r && i < S * r + 3)
            sum[(i - S * r) * 3 + k] = xsimd::fma(u, v[r], sum[(i - S * r) * 3 + k]);
        }
      }
    }
  }
  template <int S>
  [[gnu::noinline]] void add_three(E const* from, index_t step, index_t const* at, E const* y, index_t lines,
                                   E* sums) const {
    index_t const n = g.y[2];
    lane<E> sum[9];
    DFDX_UNROLL for (int k = 0; k < 9; ++k) sum[k] = lane<E>(E(0));
    for (index_t j = 0; j < lines;) {
      E const *const line = from + j * S * step, *const here = y + j * n;
      bool const four = lines - j >= 4;
      for (index_t q = 0; q < n; q += W) {
        int const count = static_cast<int>(std::min<index_t>(W, n - q));
        if (four && count == W) add_three_lines<S, 4>(line + q, step, at, here + q, n, W, sum);
        else if (four) add_three_lines<S, 4>(line + q, step, at, here + q, n, count, sum);
        else add_three_lines<S, 1>(line + q, step, at, here + q, n, count, sum);
      }
      j += four ? 4 : 1;
    }
    DFDX_UNROLL for (int k = 0; k < 9; ++k) {
      E* const to = sums + k * W;
      (sum[k] + lane<E>::load_aligned(to)).store_aligned(to);
    }
  }
  // sums += the sums over some lines of y times what each element of their windows is.
  void add_products(Plane const& f, E const* from, index_t const* at, E const* y, index_t lines,
                    E* sums) const {
    if (has_three() && g.w[1].stride == 1) return add_three<1>(from, f.step[1], at, y, lines, sums);
    if (has_three() && g.w[1].stride == 2) return add_three<2>(from, f.step[1], at, y, lines, sums);
    for (index_t k = 0; k < taps; k += together)
      add_some(f, from, at + k, std::min<index_t>(together, taps - k), y, lines, sums + k * W);
  }
  void add_some(Plane const& f, E const* from, index_t const* at, index_t count, E const* y, index_t lines,
                E* sums) const {
    lane<E> sum[together];
    index_t places[together];
    DFDX_UNROLL for (int k = 0; k < together; ++k) {
      sum[k] = lane<E>(E(0));
      places[k] = at[k < count ? k : 0];
    }
    for (index_t i = 0; i < g.y[0]; ++i)
      for (index_t j = 0; j < lines; ++j, y += g.y[2]) {
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
    for (int k = 0; k < count; ++k) {
      E* const to = sums + k * W;
      (sum[k] + lane<E>::load_aligned(to)).store_aligned(to);
    }
  }

  ConvGeometry g;
  index_t taps;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
