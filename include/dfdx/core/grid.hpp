// SPDX-License-Identifier: BSL-1.0
// Between which elements of an image a place is that a grid gives, and what each of them counts there.
#pragma once

#include <dfdx/core/math.hpp>
#include <dfdx/core/shape.hpp>

namespace dfdx {

enum class GridMode { bilinear, nearest, bicubic };
enum class GridPadding { zeros, border, reflection };

/// GridSampleOptions - of grid_sample.
struct GridSampleOptions {
  GridMode mode = GridMode::bilinear;
  GridPadding padding_mode = GridPadding::zeros;
  bool align_corners = false;
};

namespace op::detail {

constexpr index_t packed(GridSampleOptions const& o) {
  return static_cast<index_t>(o.mode) + 4 * static_cast<index_t>(o.padding_mode) + 16 * o.align_corners;
}
constexpr GridSampleOptions grid_options(index_t packed) {
  return {static_cast<GridMode>(packed & 3), static_cast<GridPadding>(packed >> 2 & 3), packed >= 16};
}
/// grid_terms - of how many elements along each axis a place is made.
constexpr int grid_terms(GridMode m) { return m == GridMode::nearest ? 1 : m == GridMode::bilinear ? 2 : 4; }

/// GridPoint - where a place is on an axis, counted in elements, and how that changes with what the grid says. (V is a
/// number, or a vector of them.)
template <class V>
struct GridPoint {
  V at, slope;
};

/// GridAxis - an axis of n elements: -1 to 1 are, aligned, the middles of its outermost elements, else their outer
/// edges.
template <class V>
struct GridAxis {
  using C = math::scalar_of<V>;
  V last, scale, shift, turns;
  static DFDX_INLINE constexpr GridAxis of(index_t n, bool aligned) {
    auto const span = static_cast<C>(aligned ? n - 1 : n);
    return {V(static_cast<C>(n - 1)), V(span / 2), V(aligned ? C(0) : C(0.5)),
            V(span == 0 ? C(0) : 1 / span)};
  }
  /// Where u is.
  DFDX_INLINE GridPoint<V> point(V const& u) const { return {(u + V(C(1))) * scale - shift, scale}; }
  /// A point brought onto the axis, where it does not change any more at the ends; NaN is element 0.
  DFDX_INLINE GridPoint<V> clipped(GridPoint<V> const& p) const {
    V const zero(C(0));
    auto const above = p.at > zero, below = p.at < last;
    return {math::select(above, math::select(below, p.at, last), zero),
            math::select(above && below, p.slope, zero)};
  }
  /// One that may be beyond the ends, by the rule for those.
  DFDX_INLINE GridPoint<V> padded(GridPoint<V> const& p, GridPadding padding) const {
    if (padding == GridPadding::zeros) return p;
    if (padding == GridPadding::border) return clipped(p);
    V const zero(C(0)), from = p.at + shift, span = scale + scale;
    auto const is_before = from < zero;
    V const distance = math::select(is_before, zero - from, from);
    V const turn = math::floor(V(distance * turns)), rest = distance - turn * span, half = turn * V(C(0.5));
    auto const is_even = math::floor(half) == half;
    V const back = zero - p.slope;
    return clipped({V(math::select(is_even, rest, V(span - rest)) - shift),
                    math::select(is_before, math::select(is_even, back, p.slope),
                                 math::select(is_even, p.slope, back))});
  }
};

/// GridTerms - the elements along an axis that a place is made of, as numbers, with their weights and how these change
/// with what the grid says; and whether there are any (1, else 0 and so are the weights). All of them are on the axis,
/// but those of cubics may be -1, which is none and has no weight. Of two, one of which would be beyond an end, both
/// are the other, each for a half: so the sum over both is right also if that element is no number.
template <class V, int K>
struct GridTerms {
  V at[K], weight[K], slope[K], some;
};

template <class V>
DFDX_INLINE GridTerms<V, 1> grid_nearest(GridPoint<V> const& p, GridAxis<V> const& axis) {
  using C = math::scalar_of<V>;
  V const zero(C(0)), one(C(1)), at = math::round(p.at);
  auto const some = at >= zero && at <= axis.last;
  V const is = math::select(some, one, zero);
  return {{math::select(some, at, zero)}, {is}, {zero}, is};
}
template <class V>
DFDX_INLINE GridTerms<V, 2> grid_linear(GridPoint<V> const& p, GridAxis<V> const& axis) {
  using C = math::scalar_of<V>;
  V const zero(C(0)), one(C(1)), half(C(0.5)), at = math::floor(p.at), t = p.at - at, rest = one - t;
  auto const some = at >= zero - one && at <= axis.last, low = at >= zero, high = at < axis.last;
  V const alone = half * math::select(low, rest, t), slope = half * p.slope;
  V const next = math::select(low, V(zero - slope), slope);
  auto const count = [&](V const& both, V const& of_one) {
    return math::select(some, math::select(low && high, both, of_one), zero);
  };
  return {{math::select(some && low, at, zero),
           math::select(some, math::select(high, V(at + one), axis.last), zero)},
          {count(rest, alone), count(t, alone)},
          {count(zero - p.slope, next), count(p.slope, next)},
          math::select(some, one, zero)};
}
/// Keys' cubic with the coefficient -3/4.
template <class V>
DFDX_INLINE GridTerms<V, 4> grid_cubic(GridPoint<V> const& p, GridAxis<V> const& axis, GridPadding padding) {
  using C = math::scalar_of<V>;
  constexpr double a = -0.75;
  auto const c = [](double x) { return V(static_cast<C>(x)); };
  V const zero = c(0), one = c(1), first = math::floor(p.at), t = p.at - first, rest = one - t;
  auto const near = [&](V const& x) { return (c(a + 2) * x - c(a + 3)) * x * x + one; };
  auto const far = [&](V const& x) { return ((c(a) * x - c(5 * a)) * x + c(8 * a)) * x - c(4 * a); };
  auto const near_slope = [&](V const& x) { return (c(3 * (a + 2)) * x - c(2 * (a + 3))) * x; };
  auto const far_slope = [&](V const& x) { return (c(3 * a) * x - c(10 * a)) * x + c(8 * a); };
  GridTerms<V, 4> r{
      {zero, zero, zero, zero},
      {far(t + one), near(t), near(rest), far(rest + one)},
      {far_slope(t + one), near_slope(t), zero - near_slope(rest), zero - far_slope(rest + one)},
      zero};
  DFDX_UNROLL for (int k = 0; k < 4; ++k) {
    V const at = axis.padded({V(first + c(k - 1)), one}, padding).at;
    auto const is = at >= zero && at <= axis.last;
    r.at[k] = math::select(is, at, V(zero - one));
    r.weight[k] = math::select(is, r.weight[k], zero);
    r.slope[k] = math::select(is, V(r.slope[k] * p.slope), zero);
    r.some = math::select(is, one, r.some);
  }
  return r;
}

/// grid_terms_of - the K terms, grid_terms(mode), of the place u on an axis.
template <int K, class V>
DFDX_INLINE GridTerms<V, K> grid_terms_of(V const& u, GridAxis<V> const& axis, GridPadding padding) {
  GridPoint<V> const p = axis.point(u);
  if constexpr (K == 4) return grid_cubic(p, axis, padding);
  else if constexpr (K == 2) return grid_linear(axis.padded(p, padding), axis);
  else return grid_nearest(axis.padded(p, padding), axis);
}

}  // namespace op::detail

}  // namespace dfdx
