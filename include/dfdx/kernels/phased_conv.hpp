// SPDX-License-Identifier: BSL-1.0
// Gradients of the input of convolutions, phase by phase. Windows that are `stride` apart divide the positions of an
// axis of x into as many phases; the positions of one are reached by the same elements of windows, from neighbouring
// positions of y. So each phase is a product of its own (simd/gathered.hpp): its rows are the phase's positions and its
// steps those elements, each with all channels of y, and its sums are stored once. Lanes run over channels of x.
// Samples of y stand in frames of zeros, their channels side by side. Operands are dense.
#pragma once

#include <algorithm>

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/kernels/simd/gathered.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// PhasedConv - the gradient of x of one geometry, as that of Conv.
template <class E>
class PhasedConv {
 public:
  /// Of so many positions of y and more: below, the rows of a phase are too few for tiles.
  static constexpr index_t fewest = 16;

  explicit PhasedConv(ConvGeometry const& geometry)
      : g(geometry), places(g.w_size()), size(g.x_size()), pitch((detail::lanes_of<E>(g.out) + 1) * W) {
    for (int i = 0; i < 3; ++i) phases *= (axes[i] = Axis(g.w[i], g.x[i])).phases;
    line[2] = pitch, line[1] = axes[2].extent * line[2], line[0] = axes[1].extent * line[1];
    frame = axes[0].extent * line[0];
  }

  void input(E* x, E const* w, E const* y) const {
    if (g.batch == 0 || size == 0) return;
    index_t const lanes = detail::lanes_of<E>(g.in), depth = places * g.out,
                  chunk = std::min(g.batch, (fewest_positions + size - 1) / size),
                  block = std::min(chunk * size, block_positions),
                  blocks = (chunk * size + block - 1) / block;
    Table const rows = table(chunk * size), targets = table(chunk * size), steps = table(depth),
                order = table(places), starts = table(phases * (blocks + 1));
    Scratch<Phase> const phase(static_cast<std::size_t>(phases));
    list_elements(phase.get(), steps.get(), order.get());
    list_positions(chunk, block, phase.get(), rows.get(), targets.get(), starts.get());
    // Where no element of a window reaches, sums stay zero.
    bool const gaps =
        std::any_of(phase.get(), phase.get() + phases, [](Phase const& p) { return p.depth == 0; });
    bool const keeps = g.batch > chunk;  // all packed weights, for other samples
    Numbers const framed = some(chunk * frame), panels = some(depth * (keeps ? lanes * W : most_wide)),
                  sums = some(block * most_wide);
    std::fill_n(framed.get(), chunk * frame, E(0));
    detail::Upcoming nothing;
    for (index_t group = 0; group < g.groups; ++group)
      for (index_t s = 0; s < g.batch; s += chunk) {
        index_t const samples = std::min(chunk, g.batch - s), all = samples * size;
        for (index_t i = 0; i < samples; ++i)
          fill(y + ((s + i) * g.groups + group) * g.out * g.y_size(), framed.get() + i * frame);
        detail::for_panels<E>(lanes, [&](index_t j, int width) {
          index_t const channels = std::min(g.in - j, width * W);
          E* const panel = panels.get() + (keeps ? j * depth : 0);
          if (s == 0) pack(w + (group * g.out * g.in + j) * places, channels, width * W, order.get(), panel);
          for (index_t b = 0; b * block < all; ++b) {
            if (gaps) std::fill_n(sums.get(), block * most_wide, E(0));
            E const* weights = panel;
            index_t const *step = steps.get(), *start = starts.get() + b;
            for (index_t p = 0; p < phases; ++p, start += blocks + 1) {
              Phase const& here = phase.get()[p];
              index_t const from = start[0], to = std::min(start[1], here.first + samples * here.positions);
              detail::gathered_product(framed.get(), rows.get() + from, to - from, step, here.depth, weights,
                                       width, sums.get(), targets.get() + from, false, false, nothing);
              weights += here.depth * width * W, step += here.depth;
            }
            put(sums.get(), b * block, std::min(block, all - b * block), channels,
                x + ((s * g.groups + group) * g.in + j) * size);
          }
        });
      }
  }

 private:
  // Sums of a block of positions, a panel wide, stay in the second cache.
  static constexpr index_t W = lane_size<E>, most_wide = detail::gathered_lanes * W, block_positions = 768,
                           fewest_positions = 384;
  using Numbers = Scratch<E>;
  using Table = Scratch<index_t>;

  // One axis. Position phase + stride q of x is reached by the elements k of windows of that phase, from q + shift(k).
  struct Axis {
    Window w{};
    index_t phases = 1, before = 0, extent = 0;  // zeros before y, all of its frame

    Axis() = default;
    Axis(Window const& window, index_t x) : w(window), phases(std::min(window.stride, x)) {
      index_t end = 0;
      for (index_t k = 0; k < w.size; ++k)
        if (phase(k) < phases) {
          before = std::max(before, -shift(k));
          end = std::max(end, (x - phase(k) + w.stride - 1) / w.stride + shift(k));
        }
      extent = before + end;
    }
    index_t phase(index_t k) const {
      index_t const r = (w.dilation * k - w.before) % w.stride;
      return r < 0 ? r + w.stride : r;
    }
    index_t shift(index_t k) const { return (phase(k) + w.before - w.dilation * k) / w.stride; }
  };
  // All positions of one phase: the first of its rows, how many a sample has, and its elements times channels of y.
  struct Phase {
    index_t first, positions, depth;
  };

  static Table table(index_t n) { return Table(static_cast<std::size_t>(n)); }
  static Numbers some(index_t n) { return Numbers(static_cast<std::size_t>(n)); }

  // f(phase of each axis) in order.
  template <class F>
  void each_phase(F const& f) const {
    index_t p[3];
    for (p[0] = 0; p[0] < axes[0].phases; ++p[0])
      for (p[1] = 0; p[1] < axes[1].phases; ++p[1])
        for (p[2] = 0; p[2] < axes[2].phases; ++p[2]) f(p);
  }

  // What is read for each phase from the frame of its position on; of each element of a window its place among the
  // packed ones, or -1 if it reaches nothing.
  void list_elements(Phase* phase, index_t* steps, index_t* order) const {
    std::fill_n(order, places, index_t(-1));
    index_t slot = 0;
    each_phase([&](index_t const(&p)[3]) {
      index_t const before = slot;
      for (index_t place = 0; place < places; ++place) {
        index_t const k[3] = {place / (g.w[1].size * g.w[2].size), place / g.w[2].size % g.w[1].size,
                              place % g.w[2].size};
        index_t at = 0;
        bool reaches = true;
        for (int i = 0; i < 3; ++i) {
          reaches = reaches && axes[i].phase(k[i]) == p[i];
          at += (axes[i].shift(k[i]) + axes[i].before) * line[i];
        }
        if (!reaches) continue;
        order[place] = slot++;
        for (index_t o = 0; o < g.out; ++o) *steps++ = at + o;
      }
      (phase++)->depth = (slot - before) * g.out;
    });
  }
  // The positions of each phase in the samples of a chunk: where they are in the frames, where their sums go within
  // their block, and at which of them each block starts.
  void list_positions(index_t samples, index_t block, Phase* phase, index_t* rows, index_t* targets,
                      index_t* starts) const {
    index_t const end = (samples * size + block - 1) / block * block;
    index_t at = 0, q[3];
    each_phase([&](index_t const(&p)[3]) {
      index_t next = 0;  // the position at which a block starts that is not listed yet
      auto const start_blocks = [&](index_t position) {
        for (; next <= position; next += block) *starts++ = at;
      };
      phase->first = at;
      for (index_t s = 0; s < samples; ++s)
        for (q[0] = 0; p[0] + q[0] * g.w[0].stride < g.x[0]; ++q[0])
          for (q[1] = 0; p[1] + q[1] * g.w[1].stride < g.x[1]; ++q[1])
            for (q[2] = 0; p[2] + q[2] * g.w[2].stride < g.x[2]; ++q[2]) {
              index_t position = s, row = s * frame;
              for (int i = 0; i < 3; ++i) {
                position = position * g.x[i] + p[i] + q[i] * g.w[i].stride;
                row += q[i] * line[i];
              }
              start_blocks(position);
              rows[at] = row;
              targets[at++] = position % block * most_wide;
            }
      start_blocks(end);
      phase->positions = (at - phase->first) / samples;
      ++phase;
    });
  }

  // A sample of y into its frame; positions that reach nothing stay outside.
  void fill(E const* y, E* to) const {
    index_t inside[3];
    for (int i = 0; i < 3; ++i) {
      inside[i] = std::min(g.y[i], axes[i].extent - axes[i].before);
      to += axes[i].before * line[i];
    }
    for (index_t i = 0; i < inside[0]; ++i)
      for (index_t j = 0; j < inside[1]; ++j)
        transpose(y + (i * g.y[1] + j) * g.y[2], g.y_size(), g.out, inside[2], to + i * line[0] + j * line[1],
                  pitch);
  }
  // The weights of some channels of x, in rows of so many, element by element in the order of phases.
  void pack(E const* w, index_t channels, index_t row, index_t const* order, E* to) const {
    Numbers const turned = some(places * row);
    for (index_t o = 0; o < g.out; ++o) {
      E const* const from = w + o * g.in * places;
      detail::Upcoming(from + 2 * g.in * places, channels * places, 1)
          .ask();  // of the channel after the next
      transpose<true>(from, places, channels, places, turned.get(), row);
      for (index_t k = 0; k < places; ++k)
        if (order[k] >= 0) std::copy_n(turned.get() + k * row, row, to + (order[k] * g.out + o) * row);
    }
  }
  // Sums of n positions from p on, counted through samples, into their channels.
  void put(E const* sums, index_t p, index_t n, index_t channels, E* x) const {
    for (index_t m; n > 0; sums += m * most_wide, p += m, n -= m) {
      m = std::min(n, size - p % size);
      transpose(sums, most_wide, m, channels, x + p / size * g.groups * g.in * size + p % size, size);
    }
  }

  ConvGeometry g;
  index_t places, size, pitch, frame, phases = 1, line[3];
  Axis axes[3];
};

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
