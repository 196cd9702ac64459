// SPDX-License-Identifier: BSL-1.0
// Linear maps along one axis whose coefficients follow from the extents: sums and means over windows, and the
// interpolations of images. Functions of several axes apply it to one after another.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <dfdx/core/window.hpp>
#include <dfdx/ops/index.hpp>

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
  double given;  // distance of neighbours in elements of the axis; 0: that of the extents

  double scale() const { return given != 0 ? given : static_cast<double>(n) / static_cast<double>(m); }
  double aligned_at(index_t p) const {
    return m > 1 ? static_cast<double>(p) * static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0;
  }
  double middle_at(index_t p) const { return scale() * (static_cast<double>(p) + 0.5) - 0.5; }
  index_t within(index_t i) const { return i < 0 ? 0 : i < n ? i : n - 1; }

  // f(position, coefficient)
  template <class F>
  void for_terms(index_t p, F const& f) const {
    switch (how) {
      case Sampling::sum:
      case Sampling::mean:
      case Sampling::padded_mean: return window_terms(p, f);
      case Sampling::nearest:
        return f(within(given == 0 ? p * n / m : static_cast<index_t>(static_cast<double>(p) * given)), 1.0);
      case Sampling::nearest_exact:
        return f(within(given == 0 ? (2 * p + 1) * n / (2 * m)
                                   : static_cast<index_t>((static_cast<double>(p) + 0.5) * given)),
                 1.0);
      case Sampling::linear: return linear_terms(std::fmax(middle_at(p), 0), f);
      case Sampling::linear_aligned: return linear_terms(aligned_at(p), f);
      case Sampling::cubic: return cubic_terms(middle_at(p), f);
      case Sampling::cubic_aligned: return cubic_terms(aligned_at(p), f);
    }
  }

 private:
  template <class F>
  void window_terms(index_t p, F const& f) const {
    Span const s = Span::of(window, p, n, m);
    index_t count = how == Sampling::sum ? 1 : s.count;
    if (how == Sampling::padded_mean) {
      Window const w = Window::of(window);
      index_t const begin = w.at(p, 0), end = begin + w.size, last = n + w.before;
      count = (end < last ? end : last) - begin;
    }
    for (index_t k = 0; k < s.count; ++k) f(s.first + k * s.step, 1 / static_cast<double>(count));
  }
  template <class F>
  void linear_terms(double at, F const& f) const {
    index_t const i = within(static_cast<index_t>(at));
    double const t = std::fmin(at - static_cast<double>(i), 1);
    f(i, 1 - t);
    f(within(i + 1), t);
  }
  // Keys' cubic with the coefficient -3/4.
  template <class F>
  void cubic_terms(double at, F const& f) const {
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

/// resample - a linear map along one axis: attrs.i = {axis + 16 transposed, Sampling, window}, attrs.f[0] the
/// distance of neighbours or 0. The result's shape is given with bind_as.
///
/// Math      y[.., p, ..] = sum_i a[p, i] x[.., i, ..]; transposed: y[.., i, ..] = sum_p a[p, i] x[.., p, ..]
/// Shapes    x: [.., N, ..] -> y: [.., M, ..]
/// Dtypes    all but bool for `nearest` and `nearest_exact`, else floating; f16 and bf16 in f32
/// Errors    those of avg_pool2d and interpolate
/// Source    PyTorch's interpolate; Keys, Cubic convolution interpolation, 1981
struct resample : operation {
  static constexpr char const* name = "resample";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    Attrs turned = s.attrs;
    turned.i[0] ^= 16;
    return bind_as<resample>(s.x[0].meta(), turned, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<resample>(s.y.meta(), s.attrs, t);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    if (out.meta.shape.numel() == 0) return;
    Operand x = in[0];
    Array dense;
    if (!is_contiguous(x.meta.shape, x.strides)) {
      dense = Array(x.meta);
      copy_elements(x, dense.operand());
      x = dense.operand();
    }
    dispatch(out.meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      along<T>(a, static_cast<T const*>(x.data), x.meta.shape, static_cast<T*>(out.data), out.meta.shape);
    });
  }

 private:
  template <class T>
  static void along(Attrs const& a, T const* x, Shape const& from, T* y, Shape const& to) {
    auto const axis = static_cast<int>(a.i[0] & 15);
    bool const transposed = (a.i[0] & 16) != 0;
    index_t const n = from[axis], m = to[axis];
    index_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= from[i];
    for (int i = axis + 1; i < from.rank; ++i) inner *= from[i];
    using C = std::conditional_t<std::is_integral_v<T>, std::int64_t, compute_t<T>>;
    // The terms of all positions, one after another: the map itself, as sparse rows.
    struct Term {
      index_t from, to;
      C coefficient;
    };
    std::vector<Term> terms;
    detail::SamplingRule const rule{static_cast<Sampling>(a.i[1]), a.i[2], transposed ? m : n,
                                    transposed ? n : m, a.f[0]};
    for (index_t p = 0; p < rule.m; ++p)
      rule.for_terms(p, [&](index_t i, double c) {
        terms.push_back({transposed ? p : i, transposed ? i : p, static_cast<C>(c)});
      });
    std::vector<C> sums(static_cast<std::size_t>(m * inner));
    for (index_t o = 0; o < outer; ++o, x += n * inner, y += m * inner) {
      std::fill(sums.begin(), sums.end(), C(0));
      for (Term const& t : terms) {
        C* const DFDX_RESTRICT s = sums.data() + t.to * inner;
        T const* const DFDX_RESTRICT v = x + t.from * inner;
        for (index_t i = 0; i < inner; ++i)
          s[i] = static_cast<C>(s[i] + t.coefficient * static_cast<C>(v[i]));
      }
      for (index_t i = 0; i < m * inner; ++i) y[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
    }
  }
};

}  // namespace dfdx::op
