// SPDX-License-Identifier: BSL-1.0
// Windows along axes, and what a convolution is besides its numbers. Attributes of ops hold a window as one number.
#pragma once

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>

namespace dfdx {

/// Window - `size` elements, `dilation` apart, every `stride` elements; the first starts `before` elements before
/// the axis.
struct Window {
  index_t size = 1, stride = 1, dilation = 1, before = 0;

  static constexpr int bits = 15;
  static constexpr index_t limit = (index_t{1} << bits) - 1;

  constexpr bool valid() const {
    return size >= 1 && stride >= 1 && dilation >= 1 && before >= 0 && size <= limit && stride <= limit &&
           dilation <= limit && before <= limit;
  }
  constexpr index_t packed() const {
    return size | stride << bits | dilation << (2 * bits) | before << (3 * bits);
  }
  static constexpr Window of(index_t packed) {
    return {packed & limit, packed >> bits & limit, packed >> (2 * bits) & limit,
            packed >> (3 * bits) & limit};
  }

  /// Where element k of window p lies.
  constexpr index_t at(index_t p, index_t k) const { return stride * p + dilation * k - before; }
  /// How many elements a window spans.
  constexpr index_t reach() const { return dilation * (size - 1) + 1; }
  /// The first window whose element k does not lie before position `from`.
  constexpr index_t first(index_t k, index_t from) const {
    index_t const distance = from + before - dilation * k;
    return distance <= 0 ? 0 : (distance + stride - 1) / stride;
  }
};

/// Span - elements first, first + step, ... of an axis.
struct Span {
  index_t first = 0, count = 0, step = 1;

  /// That part of window p that lies within n elements.
  static constexpr Span inside(Window const& w, index_t p, index_t n) {
    index_t low = 0, high = w.size;
    while (low < high && w.at(p, low) < 0) ++low;
    while (high > low && w.at(p, high - 1) >= n) --high;
    return {w.at(p, low), high - low, w.dilation};
  }
  /// The p-th of m parts of n elements, which overlap where m does not divide n.
  static constexpr Span bin(index_t p, index_t n, index_t m) {
    index_t const first = p * n / m;
    return {first, ((p + 1) * n + m - 1) / m - first, 1};
  }
  /// The window that an attribute holds, or for 0 the bin.
  static constexpr Span of(index_t packed, index_t p, index_t n, index_t m) {
    return packed == 0 ? bin(p, n, m) : inside(Window::of(packed), p, n);
  }
};

/// largest_place - the place of the largest of the elements of a sample x of extents n, `step` apart, that stand where
/// the spans of its axes say: the first if several; of a NaN if there is one. Counted row by row.
template <class T>
constexpr index_t largest_place(T const* x, Span const (&s)[3], index_t const (&n)[3],
                                index_t const (&step)[3]) {
  using C = compute_t<T>;
  index_t best = -1;
  C most{};
  for (index_t i = 0, a = s[0].first; i < s[0].count; ++i, a += s[0].step)
    for (index_t j = 0, b = s[1].first; j < s[1].count; ++j, b += s[1].step)
      for (index_t k = 0, c = s[2].first; k < s[2].count; ++k, c += s[2].step) {
        C const v = static_cast<C>(x[a * step[0] + b * step[1] + c * step[2]]);
        index_t const place = (a * n[1] + b) * n[2] + c;
        if (v != v) return place;
        if (best < 0 || v > most) best = place, most = v;
      }
  return best;
}

/// ConvGeometry - extents of a convolution with up to three axes (leading ones of extent 1 where it has fewer):
/// channels of one group, the input's extents, the result's, and the windows that take the one to the other.
struct ConvGeometry {
  index_t batch = 0, groups = 1, in = 0, out = 0;
  index_t x[3] = {1, 1, 1}, y[3] = {1, 1, 1};
  Window w[3]{};

  constexpr index_t x_size() const { return x[0] * x[1] * x[2]; }
  constexpr index_t y_size() const { return y[0] * y[1] * y[2]; }
  constexpr index_t w_size() const { return w[0].size * w[1].size * w[2].size; }
  /// Whether each window is the element at its own position.
  constexpr bool pointwise() const {
    bool r = true;
    for (int i = 0; i < 3; ++i)
      r = r && w[i].size == 1 && w[i].stride == 1 && w[i].before == 0 && x[i] == y[i];
    return r;
  }
};

}  // namespace dfdx
