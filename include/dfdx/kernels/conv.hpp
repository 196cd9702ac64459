// SPDX-License-Identifier: BSL-1.0
// Convolutions as matrix products. Where lanes have channels enough, or positions, windows are read in place
// (gathered_conv.hpp, phased_conv.hpp, plane_conv.hpp); single channels are taken line by line (depthwise_conv.hpp).
// Otherwise those of some output positions become the columns of a matrix (im2col), as many as stay in the second
// cache; products with it are added to the result. Operands are dense.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/kernels/depthwise_conv.hpp>
#include <dfdx/kernels/gathered_conv.hpp>
#include <dfdx/kernels/gemm.hpp>
#include <dfdx/kernels/phased_conv.hpp>
#include <dfdx/kernels/plane_conv.hpp>
#include <dfdx/kernels/reference/gemm.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// ConvWay - how a product of a convolution is made. Mirrored: as the forward product of other geometry, by planes or
/// gathered.
enum class ConvWay { columns, depthwise, planes, gathered, phased, mirrored_planes, mirrored_gathered, dots };

/// Conv - the three products of one geometry. K below is the size of a window over all channels of a group. Each is
/// made in the way that is best for the geometry; who knows that when a program is compiled names it, and brings no
/// others.
template <class E>
class Conv {
 public:
  constexpr explicit Conv(ConvGeometry const& geometry)
      : g(geometry),
        depth(g.in * g.w_size()),
        positions(g.y_size()),
        block(g.pointwise() ? positions : block_of(depth, positions)) {}

  /// A product of some samples, or channels: where it is, the others.
  using Made = void (*)(Conv const& c, E* made, E const* a, E const* b);

  /// y = the sum over windows of x times w. One sample alone is divided among threads by channels of y.
  void forward(E const* x, E const* w, E* y, Made made = &forward_any) const {
    if constexpr (!has_threads) return made(*this, y, x, w);
    bool const by_channels = g.batch == 1 && g.groups == 1;
    divide(by_channels ? g.out : g.batch, by_channels ? channels_together : 1, [&](Part const& p) {
      if (by_channels) made(outputs(p.end - p.begin), y + p.begin * positions, x, w + p.begin * depth);
      else made(samples(p.end - p.begin), y + p.begin * y_sample(), x + p.begin * x_sample(), w);
    });
  }
  /// x = what y leaves at each element of its windows.
  void input(E* x, E const* w, E const* y, Made made = &input_any) const {
    if constexpr (!has_threads) return made(*this, x, w, y);
    divide(g.batch, 1, [&](Part const& p) {
      made(samples(p.end - p.begin), x + p.begin * x_sample(), w, y + p.begin * y_sample());
    });
  }
  /// w = the sum over positions of x times y. Threads have sums of their own, which are added in order.
  void weight(E const* x, E* w, E const* y, Made made = &weight_any) const {
    if constexpr (!has_threads) return made(*this, w, x, y);
    int const parts = parts_of(work(), g.batch);
    auto const size = static_cast<std::size_t>(g.groups * g.out * depth);
    Scratch<E> const sums(size * static_cast<std::size_t>(parts - 1));
    auto const own = [&](int i) { return i == 0 ? w : sums.get() + static_cast<std::size_t>(i - 1) * size; };
    in_parallel(parts, [&](int i) {
      Part const p = part_of(g.batch, i, parts);
      made(samples(p.end - p.begin), own(i), x + p.begin * x_sample(), y + p.begin * y_sample());
    });
    for (int i = 1; i < parts; ++i)
      for (std::size_t j = 0; j < size; ++j) w[j] += own(i)[j];
  }

  /// The way that is best; and whether it is that of all parts that threads may get.
  constexpr ConvWay forward_way() const {
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
    if (takes_planes(g.in, g.out, g.y[2])) return ConvWay::planes;
    if (gathers(g.out)) return ConvWay::gathered;
#endif
    return way_of_channels();
  }
  constexpr ConvWay input_way() const {
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
    if (takes_planes(g.out, g.in, g.x[2]) && PlaneConv<E>(g).is_pointwise()) return ConvWay::planes;
    if (has_mirror())
      if (Conv const m = mirror(); m.takes_mirrored())
        return m.forward_way() == ConvWay::planes ? ConvWay::mirrored_planes : ConvWay::mirrored_gathered;
    if (gathers(g.in) && GatheredConv<E>(g).has_input()) return ConvWay::gathered;
    if (gathers(g.in) && positions >= PhasedConv<E>::fewest) return ConvWay::phased;
#endif
#if !defined(__CUDACC__)
    if (is_depthwise() && DepthwiseConv<E>(g).has_input()) return ConvWay::depthwise;
#endif
    return ConvWay::columns;
  }
  constexpr ConvWay weight_way() const {
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
    if (takes_dots()) return ConvWay::dots;
    // Without windows either factor may be packed: the one of fewer channels.
    if (gathers(g.out) || (g.pointwise() && positions > 0 && g.in >= g.out && g.out >= lane_size<E>))
      return ConvWay::gathered;
#endif
    return way_of_channels();
  }
  constexpr bool has_one_forward_way() const {
    if (!has_threads || g.batch != 1 || g.groups != 1) return true;
    ConvWay const way = forward_way();
    for (index_t n = channels_together; n < g.out; n += channels_together)
      if (outputs(n).forward_way() != way || outputs(g.out - n).forward_way() != way) return false;
    return true;
  }
  // With more samples nothing but turns to mirrors, and from lists of elements: the most and the least will do.
  constexpr bool has_one_input_way() const { return !has_threads || samples(1).input_way() == input_way(); }

  /// The products by one way.
  template <ConvWay Way>
  static void forward_by(Conv const& c, E* y, E const* x, E const* w) {
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
    if constexpr (Way == ConvWay::planes) return PlaneConv<E>(c.g).forward(x, w, y);
    else if constexpr (Way == ConvWay::gathered) return GatheredConv<E>(c.g).forward(x, w, y);
#endif
#if !defined(__CUDACC__)
    if constexpr (Way == ConvWay::depthwise) return DepthwiseConv<E>(c.g).forward(x, w, y);
#endif
    if constexpr (Way == ConvWay::columns) c.forward_columns(x, w, y);
  }
  template <ConvWay Way>
  static void input_by(Conv const& c, E* x, E const* w, E const* y) {
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
    if constexpr (Way == ConvWay::planes) return PlaneConv<E>(c.g).input(x, w, y);
    else if constexpr (Way == ConvWay::mirrored_planes)
      return c.mirrored_input(x, w, y, &forward_by<ConvWay::planes>);
    else if constexpr (Way == ConvWay::mirrored_gathered)
      return c.mirrored_input(x, w, y, &forward_by<ConvWay::gathered>);
    else if constexpr (Way == ConvWay::gathered) return GatheredConv<E>(c.g).input(x, w, y);
    else if constexpr (Way == ConvWay::phased) return PhasedConv<E>(c.g).input(x, w, y);
#endif
#if !defined(__CUDACC__)
    if constexpr (Way == ConvWay::depthwise) return DepthwiseConv<E>(c.g).input(x, w, y);
#endif
    if constexpr (Way == ConvWay::columns) c.input_columns(x, w, y);
  }
  template <ConvWay Way>
  static void weight_by(Conv const& c, E* w, E const* x, E const* y) {
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
    if constexpr (Way == ConvWay::dots) return PlaneConv<E>(c.g).weight(x, w, y);
    else if constexpr (Way == ConvWay::gathered) return GatheredConv<E>(c.g).weight(x, w, y);
#endif
#if !defined(__CUDACC__)
    if constexpr (Way == ConvWay::depthwise) return DepthwiseConv<E>(c.g).weight(x, w, y);
#endif
    if constexpr (Way == ConvWay::columns) c.weight_columns(x, w, y);
  }
  /// By the one that is best.
  static void forward_any(Conv const& c, E* y, E const* x, E const* w) {
    switch (c.forward_way()) {
      case ConvWay::planes: return forward_by<ConvWay::planes>(c, y, x, w);
      case ConvWay::gathered: return forward_by<ConvWay::gathered>(c, y, x, w);
      case ConvWay::depthwise: return forward_by<ConvWay::depthwise>(c, y, x, w);
      default: return forward_by<ConvWay::columns>(c, y, x, w);
    }
  }
  static void input_any(Conv const& c, E* x, E const* w, E const* y) {
    switch (c.input_way()) {
      case ConvWay::planes: return input_by<ConvWay::planes>(c, x, w, y);
      case ConvWay::mirrored_planes: return input_by<ConvWay::mirrored_planes>(c, x, w, y);
      case ConvWay::mirrored_gathered: return input_by<ConvWay::mirrored_gathered>(c, x, w, y);
      case ConvWay::gathered: return input_by<ConvWay::gathered>(c, x, w, y);
      case ConvWay::phased: return input_by<ConvWay::phased>(c, x, w, y);
      case ConvWay::depthwise: return input_by<ConvWay::depthwise>(c, x, w, y);
      default: return input_by<ConvWay::columns>(c, x, w, y);
    }
  }
  static void weight_any(Conv const& c, E* w, E const* x, E const* y) {
    switch (c.weight_way()) {
      case ConvWay::dots: return weight_by<ConvWay::dots>(c, w, x, y);
      case ConvWay::gathered: return weight_by<ConvWay::gathered>(c, w, x, y);
      case ConvWay::depthwise: return weight_by<ConvWay::depthwise>(c, w, x, y);
      default: return weight_by<ConvWay::columns>(c, w, x, y);
    }
  }

 private:
  static constexpr index_t channels_together = 16;

  constexpr ConvWay way_of_channels() const {
#if !defined(__CUDACC__)
    if (is_depthwise()) return ConvWay::depthwise;
#endif
    return ConvWay::columns;
  }

  index_t work() const { return work_of_products(g.batch * g.groups * g.out * positions * depth); }
  index_t x_sample() const { return g.groups * g.in * g.x_size(); }
  index_t y_sample() const { return g.groups * g.out * positions; }
  constexpr Conv samples(index_t n) const {
    ConvGeometry part = g;
    part.batch = n;
    return Conv(part);
  }
  constexpr Conv outputs(index_t n) const {
    ConvGeometry part = g;
    part.out = n;
    return Conv(part);
  }
  template <class F>
  void divide(index_t n, index_t unit, F const& f) const {
    int const parts = parts_of(work(), n / unit);
    in_parallel(parts, [&](int i) { f(part_of(n, i, parts, unit)); });
  }

  void forward_columns(E const* x, E const* w, E* y) const {
    if (depth == 0) std::fill_n(y, g.batch * g.groups * g.out * positions, E(0));
    Scratch<E> const room(columns_size());
    each(x, w, y, [&](E const* xs, E const* ws, E* ys, index_t from, index_t n) {
      multiply(g.out, n, depth, {ws, depth, 1}, {columns(xs, from, n, room.get()), n, 1}, ys + from,
               positions);
    });
  }
  void input_columns(E* x, E const* w, E const* y) const {
    if (!g.pointwise() || g.out == 0) std::fill_n(x, g.batch * g.groups * g.in * g.x_size(), E(0));
    Scratch<E> const room(columns_size());
    each(x, w, y, [&](E* xs, E const* ws, E const* ys, index_t from, index_t n) {
      // A group of one channel: the columns are multiples of it, which need not be made.
      if (g.out == 1 && !g.pointwise()) return add_multiples(xs, ws, ys, from, n);
      E* const to = g.pointwise() ? xs : room.get();
      multiply(depth, n, g.out, {ws, 1, depth}, {ys + from, positions, 1}, to, n);
      if (!g.pointwise()) add_columns(xs, from, n, to);
    });
  }
  void weight_columns(E const* x, E* w, E const* y) const {
    index_t const size = g.out * depth;
    std::fill_n(w, g.groups * size, E(0));
    Scratch<E> const part(static_cast<std::size_t>(size)), room(columns_size());
    each(x, w, y, [&](E const* xs, E* ws, E const* ys, index_t from, index_t n) {
      multiply(g.out, depth, n, {ys + from, positions, 1}, {columns(xs, from, n, room.get()), 1, n},
               part.get(), depth);
      for (index_t i = 0; i < size; ++i) ws[i] += part.get()[i];
    });
  }

  struct Matrix {
    E const* data;
    index_t row, column;
  };

#if !defined(__CUDACC__) && !defined(DFDX_RVV)
  // Whether lanes run over so many channels: not if most would be idle, unless positions are few. Without windows it
  // pays for few positions, those of several samples taken together.
  constexpr bool gathers(index_t channels) const {
    if (depth == 0 || g.out == 0 || positions == 0 || channels < 4) return false;
    index_t const lanes = (channels + lane_size<E> - 1) / lane_size<E> * lane_size<E>;
    return g.pointwise() ? positions < 96 : 4 * channels >= 3 * lanes || positions <= 1024;
  }
  // The gradient of the input is a convolution too, of y, by mirrored windows whose channels are exchanged: where these
  // are neighbours of which none lies beyond the input altogether.
  constexpr bool has_mirror() const {
    bool r = true;
    for (Window const& w : g.w) r = r && w.stride == 1 && w.dilation * (w.size - 1) >= w.before;
    return r;
  }
  constexpr Conv mirror() const {
    ConvGeometry back = g;
    std::swap(back.in, back.out);
    for (int i = 0; i < 3; ++i) {
      back.w[i].before = g.w[i].dilation * (g.w[i].size - 1) - g.w[i].before;
      std::swap(back.x[i], back.y[i]);
    }
    return Conv(back);
  }
  // Of a mirror: whether it pays to mirror windows for it, which are fewer numbers than they are multiplied with.
  constexpr bool takes_mirrored() const {
    return takes_planes(g.in, g.out, g.y[2]) ||
           (gathers(g.out) && g.out * g.w_size() <= g.batch * g.x_size());
  }
  void mirrored_input(E* x, E const* w, E const* y, Made made) const {
    index_t const taps = g.w_size();
    Scratch<E> const mirrored(static_cast<std::size_t>(g.groups * g.out * depth));
    for (index_t group = 0; group < g.groups; ++group) {
      E* const to = mirrored.get() + group * g.out * depth;
      for (index_t o = 0; o < g.out; ++o)
        for (index_t c = 0; c < g.in; ++c, w += taps)
          for (index_t k = 0; k < taps; ++k) to[(c * g.out + o) * taps + k] = w[taps - 1 - k];
    }
    made(mirror(), x, y, mirrored.get());
  }
  // Whether gradients of so few weights of a channel are sums of lanes of positions.
  constexpr bool takes_dots() const {
    return g.w_size() > 1 && positions > 0 && depth > 0 && depth <= 32 && g.out > 1 &&
           2 * g.y[2] > lane_size<E>;
  }
  // Whether lanes run over positions, in lines of so many, from so many channels to so many: for single elements,
  // sums of few products, and where fewer lanes are idle so.
  constexpr bool takes_planes(index_t from, index_t to, index_t line) const {
    if (from == 0 || to == 0 || positions == 0 || is_depthwise()) return false;
    index_t const W = lane_size<E>, along = (line + W - 1) / W * W, across = (to + W - 1) / W * W,
                  sums = from * g.w_size();
    if (g.w_size() == 1) return positions >= 96;
    return to > 1 && (sums <= 32 || (line * across >= along * to && (sums <= 512 || 4 * to < 3 * across)));
  }
#endif
  constexpr bool is_depthwise() const { return g.in == 1 && g.out == 1 && positions > 0; }
  std::size_t columns_size() const { return g.pointwise() ? 0 : static_cast<std::size_t>(depth * block); }

  static constexpr index_t block_of(index_t depth, index_t positions) {
    index_t const fit = static_cast<index_t>(512 * 1024 / sizeof(E)) / (depth > 0 ? depth : 1);
    return std::min(positions, std::max<index_t>(fit / 64 * 64, 64));
  }

  // f for every sample, group and block of positions.
  template <class X, class W, class Y, class F>
  void each(X* x, W* w, Y* y, F const& f) const {
    if (depth == 0 || g.out == 0) return;
    for (index_t i = 0; i < g.batch * g.groups; ++i)
      for (index_t from = 0; from < positions; from += block)
        f(x + i * g.in * g.x_size(), w + i % g.groups * g.out * depth, y + i * g.out * positions, from,
          std::min(block, positions - from));
  }

  static void multiply(index_t m, index_t n, index_t k, Matrix a, Matrix b, E* c, index_t c_row) {
#if !defined(__CUDACC__)
    using Any = gemm_shape<E, -1, -1, -1, -1, -1, -1, -1, -1>;
    gemm_sizes s;
    s.m = m, s.n = n, s.k = k, s.c_row = c_row;
    s.a_row = a.row, s.a_col = a.column, s.b_row = b.row, s.b_col = b.column;
    Scratch<std::byte> const room(multiply_workspace<Any, store_sum>(s));
    kernels::multiply<Any>(a.data, b.data, c, room.get(), store_sum{}, s);
#else
    reference::gemm(m, n, k, a.data, a.row, a.column, b.data, b.row, b.column, c, c_row);
#endif
  }

  // f(row, q, n, low, high, at) for runs of a row of the columns of positions from .. from + count, within one line
  // of the result each: elements low .. high of the n from q on are of the input, the first of them `at`; others are
  // outside.
  template <class F>
  void for_runs(index_t from, index_t count, F const& f) const {
    index_t const p2 = from % g.y[2], p1 = from / g.y[2] % g.y[1], p0 = from / (g.y[2] * g.y[1]);
    index_t k[3], row = 0;
    for (index_t c = 0; c < g.in; ++c)
      for (k[0] = 0; k[0] < g.w[0].size; ++k[0])
        for (k[1] = 0; k[1] < g.w[1].size; ++k[1])
          for (k[2] = 0; k[2] < g.w[2].size; ++k[2], ++row) {
            index_t const first = g.w[2].first(k[2], 0), last = g.w[2].first(k[2], g.x[2]);
            index_t i0 = g.w[0].at(p0, k[0]), i1 = g.w[1].at(p1, k[1]), line = p1;
            for (index_t q = 0, p = p2, n; q < count; q += n, p = 0) {
              n = std::min(g.y[2] - p, count - q);
              bool const inside = i0 >= 0 && i0 < g.x[0] && i1 >= 0 && i1 < g.x[1];
              index_t const low = inside ? std::clamp<index_t>(first - p, 0, n) : n,
                            high = inside ? std::clamp<index_t>(last - p, low, n) : n;
              index_t const at = ((c * g.x[0] + i0) * g.x[1] + i1) * g.x[2] + g.w[2].at(p + low, k[2]);
              f(row, q, n, low, high, low < high ? at : 0);
              i1 += g.w[1].stride;
              if (++line == g.y[1]) line = 0, i1 = g.w[1].at(0, k[1]), i0 += g.w[0].stride;
            }
          }
  }

  // The matrix of the windows at some positions, [K, n].
  E const* columns(E const* x, index_t from, index_t n, E* to) const {
    if (g.pointwise()) return x;
    index_t const step = g.w[2].stride;
    for_runs(from, n, [&](index_t row, index_t q, index_t length, index_t low, index_t high, index_t at) {
      E* const DFDX_RESTRICT c = to + row * n + q;
      for (index_t i = 0; i < low; ++i) c[i] = E(0);
      if (step == 1) std::copy_n(x + at, high - low, c + low);
      else
        for (index_t i = low; i < high; ++i) c[i] = x[at + (i - low) * step];
      for (index_t i = high; i < length; ++i) c[i] = E(0);
    });
    return to;
  }
  void add_columns(E* x, index_t from, index_t n, E const* columns) const {
    for_runs(from, n, [&](index_t row, index_t q, index_t, index_t low, index_t high, index_t at) {
      add(x + at, E(1), columns + row * n + q + low, high - low);
    });
  }
  void add_multiples(E* x, E const* w, E const* y, index_t from, index_t n) const {
    for_runs(from, n, [&](index_t row, index_t q, index_t, index_t low, index_t high, index_t at) {
      add(x + at, w[row], y + from + q + low, high - low);
    });
  }
  void add(E* DFDX_RESTRICT to, E by, E const* DFDX_RESTRICT c, index_t n) const {
    index_t const step = g.w[2].stride;
    if (step == 1)
      for (index_t i = 0; i < n; ++i) to[i] += by * c[i];
    else
      for (index_t i = 0; i < n; ++i) to[i * step] += by * c[i];
  }

  ConvGeometry g;
  index_t depth, positions, block;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
