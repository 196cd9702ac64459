// SPDX-License-Identifier: BSL-1.0
// Convolutions whose windows are read where they are. Each of the three products is one of simd/gathered.hpp: rows are
// positions and steps the elements of a window, or for the gradient of the weight the other way round; lanes run over
// channels. What windows reach beyond the input stands in a frame of zeros about a copy of it. Operands are dense.
#pragma once

#include <algorithm>

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/kernels/phased_conv.hpp>
#include <dfdx/kernels/simd/gathered.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// Frame - channels of some samples within zeros: `before` of them before each axis, extents `size` in all. Where no
/// zeros are needed it is the samples themselves.
struct Frame {
  index_t channels, inner[3], before[3], inside[3], step[3], channel, sample, source;
  bool copies = false;

  /// `source_step` lies between samples of the operand.
  template <class E>
  static Frame of(index_t channels, index_t const (&extents)[3], index_t const (&before)[3],
                  index_t const (&size)[3], index_t source_step) {
    Frame f{};
    f.channels = channels, f.source = source_step;
    for (int i = 0; i < 3; ++i) {
      f.inner[i] = extents[i], f.before[i] = before[i];
      f.inside[i] = std::clamp<index_t>(size[i] - before[i], 0, extents[i]);
      f.copies = f.copies || before[i] > 0 || size[i] > extents[i];
    }
    auto const& n = f.copies ? size : extents;
    f.step[2] = 1, f.step[1] = n[2], f.step[0] = n[1] * n[2];
    f.channel = n[0] * n[1] * n[2];
    // Channels a multiple of 1 KiB apart would compete for the same lines of the first cache.
    if (f.copies && f.channel * static_cast<index_t>(sizeof(E)) % 1024 == 0) f.channel += 16;
    f.sample = f.copies ? channels * f.channel : source_step;
    return f;
  }
  /// Numbers that so many samples take.
  std::size_t room(index_t samples) const { return copies ? static_cast<std::size_t>(samples * sample) : 0; }
  /// So many samples from x on; `to` has their room, and zeros where frames are.
  template <class E>
  E const* fill(E const* x, index_t samples, E* to) const {
    if (!copies) return x;
    for (index_t s = 0; s < samples; ++s)
      for (index_t c = 0; c < channels; ++c)
        for (index_t i = 0; i < inside[0]; ++i)
          for (index_t j = 0; j < inside[1]; ++j)
            std::copy_n(x + s * source + ((c * inner[0] + i) * inner[1] + j) * inner[2], inside[2],
                        to + s * sample + c * channel + (i + before[0]) * step[0] +
                            (j + before[1]) * step[1] + before[2]);
    return to;
  }
};

}  // namespace detail

/// GatheredConv - the three products of one geometry, as those of Conv.
template <class E>
class GatheredConv {
 public:
  constexpr explicit GatheredConv(ConvGeometry const& geometry)
      : g(geometry), places(g.w_size()), depth(g.in * places), positions(g.y_size()) {}

  void forward(E const* x, E const* w, E* y) const {
    if (g.in >= 4 * W && has_elements() && much_outside()) return by_elements<true>(x, w, y);
    index_t const chunk = samples_for(192), lanes = detail::lanes_of<E>(g.out);
    Frame const frame = input_frame();
    Table const rows = places_for(chunk * positions), steps = places_for(depth);
    list_positions(frame, chunk, rows.get());
    list_windows(frame, steps.get());
    Numbers const framed(frame.room(chunk)), panels = some(depth * lanes * W);
    clear(framed, frame.room(chunk));
    Numbers const sums = some(block_rows(lanes) * lanes * W);
    Table const targets = places_for(block_rows(lanes));
    list_lines(targets, block_rows(lanes), lanes);
    detail::Upcoming nothing;
    for (index_t group = 0; group < g.groups; ++group) {
      detail::pack_panels(w + group * g.out * depth, depth, g.out, depth, panels.get(), 0, depth);
      for (index_t s = 0; s < g.batch; s += chunk) {
        index_t const samples = std::min(chunk, g.batch - s);
        E const* const from =
            frame.fill(x + (s * g.groups + group) * g.in * g.x_size(), samples, framed.get());
        in_blocks(samples * positions, lanes, [&](index_t p, index_t m) {
          detail::gathered_product(from, rows.get() + p, m, steps.get(), depth, panels.get(), lanes,
                                   sums.get(), targets.get(), false, false, nothing);
          put(sums.get(), lanes, p, m, positions, g.out, y + (s * g.groups + group) * g.out * positions);
        });
      }
    }
  }

  void weight(E const* x, E* w, E const* y) const {
    index_t const chunk = samples_for(512), lanes = detail::lanes_of<E>(g.out);
    Frame const frame = input_frame();
    Table const rows = places_for(depth), steps = places_for(chunk * positions);
    list_windows(frame, rows.get());
    list_positions(frame, chunk, steps.get());
    Numbers const framed(frame.room(chunk)), panels = some(chunk * positions * lanes * W);
    clear(framed, frame.room(chunk));
    Numbers const sums = some(depth * lanes * W);
    Table const targets = places_for(depth);
    list_lines(targets, depth, lanes);
    detail::Upcoming nothing;
    for (index_t group = 0; group < g.groups; ++group) {
      for (index_t s = 0; s < g.batch; s += chunk) {
        index_t const samples = std::min(chunk, g.batch - s), k = samples * positions;
        E const* const from =
            frame.fill(x + (s * g.groups + group) * g.in * g.x_size(), samples, framed.get());
        for (index_t i = 0; i < samples; ++i)
          detail::pack_panels(y + ((s + i) * g.groups + group) * g.out * positions, positions, g.out,
                              positions, panels.get(), i * positions, k);
        detail::gathered_product(from, rows.get(), depth, steps.get(), k, panels.get(), lanes, sums.get(),
                                 targets.get(), s > 0, g.w[2].stride == 1, nothing);
      }
      if (g.batch == 0) std::fill_n(w + group * g.out * depth, g.out * depth, E(0));
      else transpose(sums.get(), lanes * W, depth, g.out, w + group * g.out * depth, depth);
    }
  }

  /// Whether input() is for this geometry: there are channels enough to make its lists for, and
  /// PhasedConv is not the better way.
  constexpr bool has_input() const {
    bool const strided = g.w[0].stride * g.w[1].stride * g.w[2].stride > 1;
    return g.in >= 2 * W && has_elements() &&
           (!strided || positions < PhasedConv<E>::fewest || much_outside());
  }
  /// Of each element of a window the product of y with its weights, added to where it lies in x.
  void input(E* x, E const* w, E const* y) const { by_elements<false>(y, w, x); }

 private:
  static constexpr index_t W = lane_size<E>, element_rows = 32 * detail::gathered_unit,
                           weights_near = 512 * 1024 / sizeof(E);
  // Between matrices, which a power of two apart would compete for the same lines of the caches.
  static constexpr index_t apart = 5 * W;
  using Frame = detail::Frame;
  using Numbers = Scratch<E>;
  using Table = Scratch<index_t>;

  // Whether lists of each element of a window at each position stay in a cache.
  constexpr bool has_elements() const {
    return places * samples_for(element_rows / 2) * positions <= index_t{1} << 17;
  }
  // Whether of the elements of all windows much lies beyond x.
  constexpr bool much_outside() const {
    double share = 1;
    for (int i = 0; i < 3; ++i) {
      index_t inside = 0;
      for (index_t p = 0; p < g.y[i]; ++p)
        for (index_t k = 0; k < g.w[i].size; ++k) {
          index_t const at = g.w[i].at(p, k);
          inside += at >= 0 && at < g.x[i] ? 1 : 0;
        }
      share *= static_cast<double>(inside) / static_cast<double>(std::max<index_t>(g.y[i] * g.w[i].size, 1));
    }
    return share < 0.94;
  }
  // The product of each element of a window with a matrix of weights of its own, added up: forward to y from x, else to
  // x from y. Nothing is multiplied with what windows reach beyond x.
  template <bool Forward>
  void by_elements(E const* source, E const* w, E* result) const {
    index_t const deep = Forward ? g.in : g.out, wide = Forward ? g.out : g.in;
    index_t const source_size = Forward ? g.x_size() : positions, size = Forward ? positions : g.x_size();
    index_t const chunk = samples_for(element_rows / 2), lanes = detail::lanes_of<E>(wide), pitch = lanes * W,
                  most = chunk * positions;
    Table const rows = places_for(places * most), targets = places_for(places * most),
                steps = places_for(deep), starts = places_for(places + 1), next = places_for(places);
    // Channels on more pages than are at hand are laid side by side: each tile goes through all of them.
    index_t const sample = g.groups * deep * source_size;
    bool const turns = deep * source_size * static_cast<index_t>(sizeof(E)) > 32 * 4096;
    index_t const beside = turns ? (detail::lanes_of<E>(deep) + 1) * W : 1,
                  apart_in_source = turns ? source_size * beside : sample;
    Numbers const turned = some(turns ? chunk * apart_in_source : 0);
    for (index_t p = 0; p < deep; ++p) steps.get()[p] = turns ? p : p * source_size;
    list_elements<Forward>(chunk, pitch, beside, apart_in_source, rows.get(), targets.get(), starts.get());
    index_t const* const order =
        (Forward ? targets : rows).get();  // ascends with the positions of an element
    // The weights of a panel, in parts that stay in the second cache, are packed when they are first used; for other
    // samples all are kept.
    bool const keeps = g.batch > chunk;
    index_t const part = std::clamp<index_t>(weights_near / (places * detail::gathered_lanes * W), 1, deep),
                  parts = (deep + part - 1) / part;
    Numbers const panels = some(
        places * (keeps ? deep * pitch + parts * lanes * apart : part * detail::gathered_lanes * W + apart));
    Numbers const sums = some(chunk * size * pitch);
    for (index_t group = 0; group < g.groups; ++group)
      for (index_t s = 0; s < g.batch; s += chunk) {
        index_t const samples = std::min(chunk, g.batch - s);
        E const* from = source + s * sample + group * deep * source_size;
        // The source of the next samples, while there is time.
        detail::Upcoming upcoming(from + samples * sample, std::min(chunk, g.batch - s - samples) * sample,
                                  places * parts * detail::gathered_tiles(samples * positions, part, lanes));
        if (turns) {
          for (index_t i = 0; i < samples; ++i)
            transpose(from + i * sample, source_size, deep, source_size, turned.get() + i * apart_in_source,
                      beside);
          from = turned.get();
        }
        std::fill_n(sums.get(), samples * size * pitch, E(0));
        E* panel = panels.get();
        detail::for_panels<E>(lanes, [&](index_t j, int width) {
          for (index_t p = 0, here; p < deep; p += here) {
            here = std::min(part, deep - p);
            index_t const matrix = here * width * W + apart;
            if (s == 0)
              pack_elements<Forward>(w + group * g.out * depth, p, here, j, std::min(wide - j, width * W),
                                     width * W, panel, matrix);
            std::copy_n(starts.get(), places, next.get());
            // Positions in blocks, of whose sums those of a panel stay in a cache.
            for (index_t end = element_rows; end - element_rows < samples * positions; end += element_rows)
              for (index_t k = 0; k < places; ++k) {
                index_t& at = next.get()[k];
                index_t const begin = at, limit = std::min(end, samples * positions),
                              last = Forward
                                         ? limit * pitch
                                         : limit / positions * apart_in_source + limit % positions * beside;
                while (at < starts.get()[k + 1] && order[at] < last) ++at;
                detail::gathered_product(from, rows.get() + begin, at - begin, steps.get() + p, here,
                                         panel + k * matrix, width, sums.get() + j, targets.get() + begin,
                                         true, false, upcoming);
              }
            if (keeps) panel += places * matrix;
          }
        });
        for (index_t i = 0; i < samples; ++i)
          transpose(sums.get() + i * size * pitch, pitch, size, wide,
                    result + ((s + i) * g.groups + group) * wide * size, size);
      }
  }
  // Of each element of a window a matrix of weights: channels p and on, which are added up, by the n from j on, in so
  // wide rows.
  template <bool Forward>
  void pack_elements(E const* w, index_t p, index_t deep, index_t j, index_t n, index_t row, E* to,
                     index_t matrix) const {
    if constexpr (Forward) {
      // The weights of some channels as they lie, transposed; then each row to its element.
      constexpr index_t some_channels = 16;
      Numbers const rows = some(some_channels * places * row);
      for (index_t q = 0, c; q < deep; q += c) {
        c = std::min(some_channels, deep - q);
        transpose<true>(w + (j * g.in + p + q) * places, depth, n, c * places, rows.get(), row);
        E const* from = rows.get();
        for (index_t i = q; i < q + c; ++i)
          for (index_t k = 0; k < places; ++k, from += row) std::copy_n(from, row, to + k * matrix + i * row);
      }
    } else {
      for (index_t q = 0; q < deep; ++q) {
        E const* const from = w + ((p + q) * g.in + j) * places;
        detail::Upcoming(from + 2 * depth, n * places, 1).ask();  // those of the channel after the next
        if (places == 1) std::copy_n(from, n, to + q * row);      // as they are
        else transpose<true>(from, places, n, places, to + q * row, matrix);
      }
    }
  }

  static Table places_for(index_t n) { return Table(static_cast<std::size_t>(n)); }
  // Rows of so many lanes, one after the other.
  static void list_lines(Table const& to, index_t rows, index_t lanes) {
    for (index_t i = 0; i < rows; ++i) to.get()[i] = i * lanes * W;
  }
  static Numbers some(index_t n) { return Numbers(static_cast<std::size_t>(n)); }
  static void clear(Numbers const& x, std::size_t n) {
    if (n > 0) std::fill_n(x.get(), n, E(0));
  }

  // How many samples have at least so many positions.
  constexpr index_t samples_for(index_t rows) const {
    return std::max<index_t>(1, std::min(g.batch, (rows + positions - 1) / std::max<index_t>(positions, 1)));
  }
  // Rows of sums that stay in the second cache beside a panel.
  static index_t block_rows(index_t lanes) {
    index_t const fit = static_cast<index_t>(256 * 1024 / sizeof(E)) / (lanes * W);
    return std::clamp<index_t>(fit / detail::gathered_unit, 1, 8) * detail::gathered_unit;
  }
  // Whole lines, if tiles of a lane are of neighbours.
  template <class F>
  void in_blocks(index_t rows, index_t lanes, F const& f) const {
    index_t const most = block_rows(lanes), whole = most / g.y[2] * g.y[2],
                  block = lanes == 1 && whole > 0 ? whole : most;
    for (index_t p = 0; p < rows; p += block) f(p, std::min(block, rows - p));
  }

  Frame input_frame() const {
    index_t before[3], size[3];
    for (int i = 0; i < 3; ++i) {
      before[i] = g.w[i].before;
      size[i] = g.w[i].stride * (g.y[i] - 1) + g.w[i].reach();
    }
    return Frame::of<E>(g.in, g.x, before, size, g.groups * g.in * g.x_size());
  }
  // Offsets of n[0] x n[1] x n[2] places that lie `by` apart, of each of some samples.
  static void list(index_t samples, index_t sample, index_t const (&n)[3], index_t const (&by)[3],
                   index_t* to) {
    for (index_t s = 0; s < samples; ++s)
      for (index_t i = 0; i < n[0]; ++i)
        for (index_t j = 0; j < n[1]; ++j)
          for (index_t k = 0; k < n[2]; ++k) *to++ = s * sample + i * by[0] + j * by[1] + k * by[2];
  }
  void list_positions(Frame const& frame, index_t samples, index_t* to) const {
    index_t by[3];
    for (int i = 0; i < 3; ++i) by[i] = g.w[i].stride * frame.step[i];
    list(samples, frame.sample, g.y, by, to);
  }
  void list_windows(Frame const& frame, index_t* to) const {
    index_t by[3], n[3];
    for (int i = 0; i < 3; ++i) by[i] = g.w[i].dilation * frame.step[i], n[i] = g.w[i].size;
    list(g.in, frame.channel, n, by, to);
  }
  // For each element of a window the positions that have it within x, in order: where they are in what is read, whose
  // positions and samples lie so far apart, and where their sums go.
  template <bool Forward>
  void list_elements(index_t samples, index_t pitch, index_t beside, index_t sample, index_t* rows,
                     index_t* targets, index_t* starts) const {
    index_t k[3], p[3], at = 0, i[3];
    auto const inside = [&](int axis) {
      i[axis] = g.w[axis].at(p[axis], k[axis]);
      return i[axis] >= 0 && i[axis] < g.x[axis];
    };
    for (k[0] = 0; k[0] < g.w[0].size; ++k[0])
      for (k[1] = 0; k[1] < g.w[1].size; ++k[1])
        for (k[2] = 0; k[2] < g.w[2].size; ++k[2]) {
          *starts++ = at;
          for (index_t s = 0; s < samples; ++s)
            for (p[0] = 0; p[0] < g.y[0]; ++p[0]) {
              if (!inside(0)) continue;
              for (p[1] = 0; p[1] < g.y[1]; ++p[1]) {
                if (!inside(1)) continue;
                for (p[2] = 0; p[2] < g.y[2]; ++p[2])
                  if (inside(2)) {
                    index_t const in_y = (p[0] * g.y[1] + p[1]) * g.y[2] + p[2],
                                  in_x = (i[0] * g.x[1] + i[1]) * g.x[2] + i[2];
                    rows[at] = s * sample + (Forward ? in_x : in_y) * beside;
                    targets[at++] = (Forward ? s * positions + in_y : s * g.x_size() + in_x) * pitch;
                  }
              }
            }
        }
    *starts = at;
  }

  // Rows of sums, which are positions p and on of samples that have `all` of them, into channels.
  void put(E const* sums, index_t lanes, index_t p, index_t m, index_t all, index_t channels, E* to) const {
    index_t const sample = g.groups * channels * all;
    for (index_t done = 0; done < m;) {
      index_t const s = (p + done) / all, from = (p + done) % all, n = std::min(m - done, all - from);
      transpose(sums + done * lanes * W, lanes * W, n, channels, to + s * sample + from, all);
      done += n;
    }
  }
  ConvGeometry g;
  index_t places, depth, positions;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
