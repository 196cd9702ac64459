// SPDX-License-Identifier: BSL-1.0
// Rounding and division with remainder: value, derivative, number, one struct each.
#pragma once

#include <dfdx/ops/elementwise.hpp>

namespace dfdx::op {

/// floor - the largest integer not above x.
///
/// Math      y = floor x, dy/dx = 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool; integers as they are
/// Errors    "floor: numeric dtype required, got bool"
/// Source    elementary calculus
struct floor : stepped<floor, 1> {
  static constexpr char const* name = "floor";
  static constexpr Code code = numbered(113);
  static constexpr auto eval(auto const& x) { return math::floor(x); }
};
template <>
struct fused<113> {
  using type = floor;
};

/// ceil - the smallest integer not below x.
///
/// Math      y = ceil x, dy/dx = 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool; integers as they are
/// Errors    "ceil: numeric dtype required, got bool"
/// Source    elementary calculus
struct ceil : stepped<ceil, 1> {
  static constexpr char const* name = "ceil";
  static constexpr Code code = numbered(114);
  static constexpr auto eval(auto const& x) { return math::ceil(x); }
};
template <>
struct fused<114> {
  using type = ceil;
};

/// round - the nearest integer, of two the even one.
///
/// Math      y = round x, dy/dx = 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool; integers as they are
/// Errors    "round: numeric dtype required, got bool"
/// Source    elementary calculus
struct round : stepped<round, 1> {
  static constexpr char const* name = "round";
  static constexpr Code code = numbered(115);
  static constexpr auto eval(auto const& x) { return math::round(x); }
};
template <>
struct fused<115> {
  using type = round;
};

/// trunc - x without its fraction.
///
/// Math      y = trunc x, dy/dx = 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool; integers as they are
/// Errors    "trunc: numeric dtype required, got bool"
/// Source    elementary calculus
struct trunc : stepped<trunc, 1> {
  static constexpr char const* name = "trunc";
  static constexpr Code code = numbered(116);
  static constexpr auto eval(auto const& x) { return math::trunc(x); }
};
template <>
struct fused<116> {
  using type = trunc;
};

/// fmod - what x leaves when divided by y, with the sign of x; exact. By an integer 0 it is x.
///
/// Math      z = x - y trunc(x / y), dz/dx = 1, dz/dy = -trunc(x / y)
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "fmod: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct fmod : arithmetic<fmod, 2> {
  static constexpr char const* name = "fmod";
  static constexpr Code code = numbered(119);
  static constexpr int cost = 4;
  static constexpr auto eval(auto const& x, auto const& y) { return math::fmod(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return t;
    else return -(t * apply<trunc>(s.x[0] / s.x[1]));
  }
};
template <>
struct fused<119> {
  using type = fmod;
};

struct floor_divide;

/// remainder - what x leaves when divided by y, with the sign of y (Python's %). By an integer 0 it is x.
///
/// Math      z = x - y floor(x / y), dz/dx = 1, dz/dy = -floor(x / y) of the exact quotient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "remainder: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct remainder : arithmetic<remainder, 2> {
  static constexpr char const* name = "remainder";
  static constexpr Code code = numbered(120);
  static constexpr int cost = 4;
  static constexpr auto eval(auto const& x, auto const& y) { return math::remainder(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return t;
    else return -(t * apply<floor_divide>(s.x[0], s.x[1]));
  }
};
template <>
struct fused<120> {
  using type = remainder;
};

/// floor_divide - x / y rounded down, from the exact quotient; by an integer 0 it is 0.
///
/// Math      z = floor(x / y), dz/dx = dz/dy = 0
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "floor_divide: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct floor_divide : stepped<floor_divide, 2> {
  static constexpr char const* name = "floor_divide";
  static constexpr Code code = numbered(121);
  static constexpr int cost = 6;
  static constexpr auto eval(auto const& x, auto const& y) { return math::floor_divide(x, y); }
};
template <>
struct fused<121> {
  using type = floor_divide;
};

}  // namespace dfdx::op
