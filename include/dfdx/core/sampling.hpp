// SPDX-License-Identifier: BSL-1.0
// Which elements of an axis the elements of a resampled one are made of, and with which coefficients: sums and means
// over windows, and the interpolations of images.
#pragma once

#include <cmath>

#include <dfdx/core/window.hpp>

namespace dfdx::op {

/// Sampling - what an element of a resampled axis is made of: sums, means, elements, what lies between elements.
/// mean counts the elements that a window has, padded_mean also those of the padding; positions of linear and cubic
/// are of the elements' middles or, aligned, of their ends.
enum class Sampling {
  sum,
  mean,
  padded_mean,
  nearest,
  nearest_exact,
  linear,
  linear_aligned,
  cubic,
  cubic_aligned
};

namespace detail {

constexpr bool takes_elements(Sampling s) { return s == Sampling::nearest || s == Sampling::nearest_exact; }

/// SamplingRule - which elements of an axis of n the elements of one of m are made of.
struct SamplingRule {
  Sampling how;
  index_t window, n, m;
  double factor;  // by which the axis grows; 0: that of the extents

  /// The distance of neighbours in elements of the axis.
  DFDX_INLINE double scale() const {
    return factor != 0 ? 1 / factor : static_cast<double>(n) / static_cast<double>(m);
  }
  DFDX_INLINE double aligned_at(index_t p) const {
    return m > 1 ? static_cast<double>(p) * static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0;
  }
  DFDX_INLINE double middle_at(index_t p) const { return scale() * (static_cast<double>(p) + 0.5) - 0.5; }
  // Divided: times the reciprocal of 49, the 49th position would be in element 0.
  DFDX_INLINE index_t element_at(double p) const { return static_cast<index_t>(p / factor); }
  DFDX_INLINE index_t within(index_t i) const { return i < 0 ? 0 : i < n ? i : n - 1; }

  DFDX_INLINE bool is_of_windows() const {
    return how == Sampling::sum || how == Sampling::mean || how == Sampling::padded_mean;
  }

  // f(position, coefficient)
  template <class F>
  DFDX_INLINE void for_terms(index_t p, F const& f) const {
    switch (how) {
      case Sampling::sum:
      case Sampling::mean:
      case Sampling::padded_mean: return window_terms(p, f);
      case Sampling::nearest:
        return f(within(factor == 0 ? p * n / m : element_at(static_cast<double>(p))), 1.0);
      case Sampling::nearest_exact:
        return f(within(factor == 0 ? (2 * p + 1) * n / (2 * m) : element_at(static_cast<double>(p) + 0.5)),
                 1.0);
      case Sampling::linear: return linear_terms(std::fmax(middle_at(p), 0), f);
      case Sampling::linear_aligned: return linear_terms(aligned_at(p), f);
      case Sampling::cubic: return cubic_terms(middle_at(p), f);
      case Sampling::cubic_aligned: return cubic_terms(aligned_at(p), f);
    }
  }
  // Of these the ones whose position is i. A window, which may be long, is asked once.
  template <class F>
  DFDX_INLINE void for_terms_at(index_t i, index_t p, F const& f) const {
    if (is_of_windows()) {
      Span const s = Span::of(window, p, n, m);
      index_t const k = (i - s.first) / s.step;
      if (k >= 0 && k < s.count && s.first + k * s.step == i) f(i, share(s, p));
    } else {
      for_terms(p, [&](index_t place, double c) {
        if (place == i) f(place, c);
      });
    }
  }

 private:
  // The coefficient of each element of window p, of which `s` lies on the axis.
  DFDX_INLINE double share(Span const& s, index_t p) const {
    index_t count = how == Sampling::sum ? 1 : s.count;
    if (how == Sampling::padded_mean) {
      Window const w = Window::of(window);
      index_t const begin = w.at(p, 0), end = begin + w.size, last = n + w.before;
      count = (end < last ? end : last) - begin;
    }
    return 1 / static_cast<double>(count);
  }
  template <class F>
  DFDX_INLINE void window_terms(index_t p, F const& f) const {
    Span const s = Span::of(window, p, n, m);
    if (s.count == 0) return;
    double const each = share(s, p);
    for (index_t k = 0; k < s.count; ++k) f(s.first + k * s.step, each);
  }
  template <class F>
  DFDX_INLINE void linear_terms(double at, F const& f) const {
    index_t const i = within(static_cast<index_t>(at));
    double const t = std::fmin(at - static_cast<double>(i), 1);
    f(i, 1 - t);
    f(within(i + 1), t);
  }
  // Keys' cubic with the coefficient -3/4.
  template <class F>
  DFDX_INLINE void cubic_terms(double at, F const& f) const {
    double const floor = std::floor(at), t = at - floor, a = -0.75;
    auto const near = [a](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    auto const far = [a](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    auto const i = static_cast<index_t>(floor);
    f(within(i - 1), far(t + 1));
    f(within(i), near(t));
    f(within(i + 1), near(1 - t));
    f(within(i + 2), far(2 - t));
  }
};

}  // namespace detail

}  // namespace dfdx::op
