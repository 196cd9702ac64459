// SPDX-License-Identifier: BSL-1.0
// Convolutions whose lanes run over positions, for few channels and windows of one element. Each of them is a product
// of simd/planes.hpp with the weights as its first factor. Samples are copied into frames of zeros (plane.hpp); where
// windows are single elements, some positions of all channels at a time are packed. Operands are dense.
#pragma once

#include <algorithm>
#include <utility>

#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/plane.hpp>
#include <dfdx/kernels/simd/planes.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// PlaneConv - products of one geometry, as those of Conv.
template <class E>
class PlaneConv {
 public:
  constexpr explicit PlaneConv(ConvGeometry const& geometry)
      : g(geometry), taps(g.w_size()), depth(g.in * taps), positions(g.y_size()) {}

  void forward(E const* x, E const* w, E* y) const {
    index_t const size = g.out * depth;
    run(x, y,
        [&](index_t group, E* to) { detail::pack_strips(w + group * size, depth, 1, g.out, depth, to); });
  }

  /// Whether windows are single elements of the input.
  constexpr bool is_pointwise() const {
    bool r = taps == 1;
    for (int i = 0; i < 3; ++i) r = r && g.w[i].before == 0 && g.w[i].stride * (g.y[i] - 1) < g.x[i];
    return r;
  }
  /// Of single elements; other windows are mirrored (Conv).
  void input(E* x, E const* w, E const* y) const {
    ConvGeometry back = g;
    std::swap(back.in, back.out);
    for (int i = 0; i < 3; ++i) back.x[i] = g.y[i], back.w[i] = Window{};
    auto const pack = [&](index_t group, E* to) {
      detail::pack_strips(w + group * g.out * g.in, 1, g.in, g.in, g.out, to);
    };
    if (g.pointwise()) return PlaneConv(back).run(y, x, pack);
    // The elements that windows are, then zeros between them.
    back.batch = 1;
    PlaneConv const one(back);
    index_t const all = g.groups * g.in * positions;
    Numbers const part = some(all);
    for (index_t s = 0; s < g.batch; ++s) {
      one.run(y + s * g.groups * g.out * positions, part.get(), pack);
      for (index_t c = 0; c < g.groups * g.in; ++c, x += g.x_size()) {
        std::fill_n(x, g.x_size(), E(0));
        E const* from = part.get() + c * positions;
        for (index_t i = 0; i < g.y[0]; ++i)
          for (index_t j = 0; j < g.y[1]; ++j, from += g.y[2]) {
            E* const to = x + (i * g.w[0].stride * g.x[1] + j * g.w[1].stride) * g.x[2];
            for (index_t k = 0; k < g.y[2]; ++k) to[k * g.w[2].stride] = from[k];
          }
      }
    }
  }

  /// Lanes run over positions, and are added up at the end.
  void weight(E const* x, E* w, E const* y) const {
    Plane const frame = Plane::of_input(g);
    Numbers const framed(frame.room<E>(g.in)), sums = some(g.out * depth * W);
    std::fill_n(framed.get(), frame.room<E>(g.in), E(0));
    Table const steps = table(depth);
    list_windows(frame, steps.get());
    index_t const lines = g.y[0] * g.y[1], lanes = lines * detail::lanes_of<E>(g.y[2]);
    Places const places(static_cast<std::size_t>(lanes));
    list_places(frame, false, places.get());
    // Copying pays where many channels of y are multiplied with it.
    Copies const copies(*this, g.out < 12 ? 0 : lines);
    for (index_t group = 0; group < g.groups; ++group) {
      std::fill_n(sums.get(), g.out * depth * W, E(0));
      for (index_t s = 0; s < g.batch; ++s) {
        fill(frame, x + (s * g.groups + group) * g.in * g.x_size(), framed.get());
        E const* const ys = y + (s * g.groups + group) * g.out * positions;
        if (copies.lines <= 0) add_products(framed.get(), ys, places.get(), lanes, steps.get(), sums.get());
        else
          each_copied(copies, frame, framed.get(), steps.get(), false, [&](index_t p, index_t n) {
            add_products(copies.numbers.get(), ys + p, copies.places.get(), detail::lanes_of<E>(n),
                         copies.steps.get(), sums.get());
          });
      }
      for (index_t i = 0; i < g.out * depth; ++i)
        w[group * g.out * depth + i] = xsimd::reduce_add(lane<E>::load_aligned(sums.get() + i * W));
    }
  }

 private:
  static constexpr index_t W = lane_size<E>, deepest = 512, near = 256 * 1024 / sizeof(E),
                           windows_near = 24 * 1024 / sizeof(E);
  using Numbers = Scratch<E>;
  using Table = Scratch<index_t>;
  using Places = Scratch<detail::Place>;
  using Plane = detail::Plane;

  static Numbers some(index_t n) { return Numbers(static_cast<std::size_t>(n)); }
  static Table table(index_t n) { return Table(static_cast<std::size_t>(n)); }

  // pack(group, to) packs a group's weights.
  template <class F>
  void run(E const* x, E* y, F const& pack) const {
    Numbers const strips = some(detail::strips_size(g.out, depth));
    for (index_t group = 0; group < g.groups; ++group) {
      pack(group, strips.get());
      if (is_pointwise()) in_panels(x, strips.get(), y, group);
      else in_frames(x + group * g.in * g.x_size(), strips.get(), y + group * g.out * positions);
    }
  }
  void list_windows(Plane const& frame, index_t* to) const {
    frame.list(g.w, to);
    for (index_t k = taps; k < depth; ++k) to[k] = to[k - taps] + frame.size();
  }
  // The lanes of all lines. Where they may overlap the last of a line does: whole lanes are stored at once.
  void list_places(Plane const& frame, bool may_overlap, detail::Place* to) const {
    index_t const lines = g.y[0] * g.y[1], n = g.y[2];
    for (index_t i = 0; i < lines; ++i)
      for (index_t q = 0; q < n; q += W) {
        index_t const at = may_overlap && n >= W ? std::min(q, n - W) : q;
        *to++ = {line_at(frame, i) + at, i * n + at, static_cast<int>(std::min(W, n - at))};
      }
  }
  // Where line i of windows begins; of one plane those beyond it too.
  index_t line_at(Plane const& frame, index_t i) const {
    if (g.y[0] == 1) return i * g.w[1].stride * frame.step[1];
    return i / g.y[1] * g.w[0].stride * frame.step[0] + i % g.y[1] * g.w[1].stride * frame.step[1];
  }
  // sums += the products of places of all channels of y with those of x that lie at steps on.
  void add_products(E const* x, E const* y, detail::Place const* places, index_t lanes, index_t const* steps,
                    E* sums) const {
    constexpr bool fits = detail::tile_sums >= detail::window_lanes * (detail::window_rows - 1);
    constexpr int some = detail::sums_lanes, window = fits ? detail::window_lanes : some;
    bool const by_windows = fits && depth % window == 0;
    index_t const together = by_windows ? detail::window_rows : detail::sums_rows;
    for (index_t o = 0; o < g.out; o += together)
      for (index_t k = 0, n; k < depth; k += n) {
        n = by_windows ? window : detail::next_panel(depth - k);
        auto const dots = by_windows  ? detail::plane_dots_of<window, E>
                          : n == some ? detail::plane_dots_of<some, E>
                                      : detail::plane_dots_of<some - 1, E>;
        dots(x, y + o * positions, positions, g.out - o, places, lanes, steps + k, n,
             sums + (o * depth + k) * W, depth * W);
      }
  }
  // Copies - the windows of some lines in a row: lanes of positions need not end where lines do. Of as many lines as
  // stay in the first cache, and no more than so many. Where windows lie one line below the other, a line is copied
  // once for all elements of a column of the window.
  struct Copies {
    Copies(PlaneConv const& c, index_t most)
        : column(c.g.y[0] == 1 && c.g.w[0].size == 1 && c.g.w[1].stride == 1 ? c.g.w[1].size : 1),
          below(c.g.w[1].dilation * (column - 1)),
          lines(std::min(most, windows_near / (c.depth / column * c.g.y[2]) - below)),
          row(detail::lanes_of<E>((lines + below) * c.g.y[2]) * W),
          numbers(some(lines > 0 ? c.depth / column * row + W : 0)),
          places(lines > 0 ? static_cast<std::size_t>(row / W) : 0),
          steps(table(c.depth)) {
      index_t const along = c.g.w[2].size;
      for (index_t k = 0; k < c.depth; ++k)
        steps.get()[k] = (k / (along * column) * along + k % along) * row +
                         k / along % column * c.g.w[1].dilation * c.g.y[2];
    }
    index_t column, below, lines, row;
    Numbers numbers;
    Places places;
    Table steps;
  };
  // f(position, n) for n positions from there on, whose windows have been copied, until all have been. The last lane
  // may overlap the one before it.
  template <class F>
  void each_copied(Copies const& c, Plane const& frame, E const* framed, index_t const* windows,
                   bool may_overlap, F const& f) const {
    index_t const all = g.y[0] * g.y[1];
    for (index_t line = 0; line < all; line += c.lines) {
      index_t const n = std::min(c.lines, all - line) * g.y[2];
      copy_windows(c, frame, framed, line, n + c.below * g.y[2], windows);
      for (index_t i = 0; i < n; i += W) {
        index_t const at = may_overlap && n >= W ? std::min(i, n - W) : i;
        c.places.get()[i / W] = {at, at, static_cast<int>(std::min(W, n - at))};
      }
      f(line * g.y[2], n);
    }
  }
  // The elements of windows of n positions, those of `line` and on, as rows.
  void copy_windows(Copies const& c, Plane const& frame, E const* framed, index_t line, index_t n,
                    index_t const* windows) const {
    index_t const length = g.y[2], along = g.w[2].size;
    E* to = c.numbers.get();
    for (index_t k = 0; k < depth; k += along * c.column)
      for (index_t j = 0; j < along; ++j, to += c.row) {
        E const* const from = framed + windows[k + j];
        for (index_t i = 0, l = line; i < n; i += length, ++l) {
          E const* const at = from + line_at(frame, l);
          for (index_t q = 0; q < length; q += W) lane<E>::load_unaligned(at + q).store_unaligned(to + i + q);
        }
      }
  }
  void fill(Plane const& frame, E const* x, E* to) const {
    for (index_t c = 0; c < g.in; ++c) frame.fill(x + c * g.x_size(), g.x, to + c * frame.size());
  }
  void in_frames(E const* x, E const* strips, E* y) const {
    Plane const frame = Plane::of_input(g);
    Numbers const framed(frame.room<E>(g.in));
    std::fill_n(framed.get(), frame.room<E>(g.in), E(0));
    Table const steps = table(depth);
    list_windows(frame, steps.get());
    index_t const lanes = g.y[0] * g.y[1] * detail::lanes_of<E>(g.y[2]);
    Places const places(static_cast<std::size_t>(lanes));
    list_places(frame, true, places.get());
    // Sums of few products are stored as often as not: it pays to have no lanes idle.
    bool const idle = g.out >= 12 && depth <= 32 && g.y[2] % W != 0;
    Copies const copies(*this, idle ? g.y[0] * g.y[1] : 0);
    // Frames of more than the first cache go by a tile of lanes at a time, which all strips see before the next.
    index_t const chunk = frame.size() * g.in * static_cast<index_t>(sizeof(E)) <= 24 * 1024
                              ? lanes
                              : detail::plane_lanes(g.out);
    detail::Ahead<E> const nothing(strips);
    index_t const bytes = g.batch * g.groups * g.out * positions * static_cast<index_t>(sizeof(E));
    auto const put = bytes >= past_caches ? detail::Put::stream
                     : bytes >= far_away  ? detail::Put::store_far
                                          : detail::Put::store;
    for (index_t s = 0; s < g.batch; ++s) {
      fill(frame, x + s * g.groups * g.in * g.x_size(), framed.get());
      auto const product = [&](E const* from, detail::Place const* at, index_t n, index_t const* by, E* to) {
        detail::plane_product(from, at, n, by, depth, strips, depth, g.out, to, positions, put, nothing);
      };
      E* const ys = y + s * g.groups * g.out * positions;
      if (copies.lines > 0)
        each_copied(copies, frame, framed.get(), steps.get(), true, [&](index_t p, index_t n) {
          product(copies.numbers.get(), copies.places.get(), detail::lanes_of<E>(n), copies.steps.get(),
                  ys + p);
        });
      else
        for (index_t j = 0; j < lanes; j += chunk)
          product(framed.get(), places.get() + j, std::min(chunk, lanes - j), steps.get(), ys);
    }
    if (put == detail::Put::stream) detail::end_streams();
  }

  // Single elements are read in place where that is good. Packed are all others, those with strides between, and the
  // end of x, beyond which a lane would read.
  void in_panels(E const* x, E const* strips, E* y, index_t group) const {
    index_t const parts = std::max<index_t>(1, (depth + deepest - 1) / deepest),
                  deep = (depth + parts - 1) / parts;
    index_t const tile = detail::plane_lanes(g.out) * W,
                  fit = std::clamp<index_t>(near / std::max<index_t>(deep, 1) / tile, 1, 512 / tile) * tile;
    index_t const row = std::min(fit, detail::lanes_of<E>(positions) * W);
    Scratch<detail::Place> const places(static_cast<std::size_t>(row / W));
    Table const packed = table(deep), in_place = table(deep);
    for (index_t k = 0; k < deep; ++k) packed.get()[k] = k * row, in_place.get()[k] = k * g.x_size();
    Numbers const panel = some(deep * row);
    // Rows on more pages than a core keeps at hand, read again for each strip, cost more than a copy that many share.
    bool const few = deep * g.x_size() * static_cast<index_t>(sizeof(E)) <= 64 * 4096;
    bool const together = g.pointwise() && (few || g.out < 128);
    for (index_t s = 0; s < g.batch; ++s)
      for (index_t p = 0; p < positions; p += row) {
        index_t const n = std::min(row, positions - p), lanes = detail::lanes_of<E>(n);
        for (index_t j = 0; j < lanes; ++j)
          places.get()[j] = {j * W, p + j * W, static_cast<int>(std::min(W, n - j * W))};
        for (index_t k = 0; k < depth; k += deep) {
          index_t const here = std::min(deep, depth - k), channel = (s * g.groups + group) * g.in + k;
          E const* from = x + channel * g.x_size() + p;
          bool const reads = together && (channel + here - 1) * g.x_size() + p + lanes * W <=
                                             g.batch * g.groups * g.in * g.x_size();
          if (!reads) pack_panel(x + channel * g.x_size(), here, p, n, panel.get(), row);
          detail::plane_product(reads ? from : panel.get(), places.get(), lanes,
                                (reads ? in_place : packed).get(), here, strips + k * detail::plane_rows,
                                depth, g.out, y + (s * g.groups + group) * g.out * positions, positions,
                                k > 0 ? detail::Put::add : detail::Put::store,
                                next_panel(x, group, s, p, row, k, deep, lanes));
        }
      }
  }
  // What in_panels reads after the `deep` channels from k on of `row` positions from p on: channels, positions, or the
  // next sample.
  detail::Ahead<E> next_panel(E const* x, index_t group, index_t s, index_t p, index_t row, index_t k,
                              index_t deep, index_t lanes) const {
    index_t const turns = (g.out + detail::plane_rows - 1) / detail::plane_rows *
                          (lanes / detail::plane_lanes(g.out)) *
                          (std::min(deep, depth - k) / detail::tile_turn);
    k += deep;
    if (k >= depth) k = 0, p += row;
    if (p >= positions) p = 0, ++s;
    if (s >= g.batch) return detail::Ahead<E>(x);
    return {x + ((s * g.groups + group) * g.in + k) * g.x_size() + place_of(p), place_of(row), g.x_size(),
            std::min(deep, depth - k), turns};
  }
  // Where position p, or the first of its line, lies in a channel, where windows are single elements.
  index_t place_of(index_t p) const {
    return p / (g.y[1] * g.y[2]) * g.w[0].stride * g.x[1] * g.x[2] +
           p / g.y[2] % g.y[1] * g.w[1].stride * g.x[2] + p % g.y[2] * g.w[2].stride;
  }
  // n positions from p on of some channels, in rows.
  void pack_panel(E const* x, index_t channels, index_t p, index_t n, E* to, index_t row) const {
    if (g.pointwise()) {
      for (index_t c = 0; c < channels; ++c, x += g.x_size(), to += row) {
        index_t i = 0;
        for (; i + W <= n; i += W) lane<E>::load_unaligned(x + p + i).store_aligned(to + i);
        if (i < n) load_n(x + p + i, static_cast<int>(n - i)).store_aligned(to + i);
      }
      return;
    }
    for (index_t c = 0; c < channels; ++c, x += g.x_size(), to += row)
      for (index_t done = 0, count, line = p / g.y[2], q = p % g.y[2]; done < n;
           done += count, ++line, q = 0) {
        count = std::min(n - done, g.y[2] - q);
        E const* const from =
            x + (line / g.y[1] * g.w[0].stride * g.x[1] + line % g.y[1] * g.w[1].stride) * g.x[2];
        if (g.w[2].stride == 2) copy_every(std::integral_constant<int, 2>{}, from + q * 2, count, to + done);
        else copy_every(g.w[2].stride, from + q * g.w[2].stride, count, to + done);
      }
  }
  // A constant step is a shuffle of vectors.
  template <class Step>
  static void copy_every(Step step, E const* DFDX_RESTRICT from, index_t n, E* DFDX_RESTRICT to) {
    for (index_t i = 0; i < n; ++i) to[i] = from[i * step];
  }

  ConvGeometry g;
  index_t taps, depth, positions;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
