// SPDX-License-Identifier: BSL-1.0
// Elementwise arithmetic on two operands: value, derivatives, number, one struct each.
#pragma once

#include <dfdx/ops/elementwise.hpp>

namespace dfdx::op {

/// add - x plus y.
///
/// Math      z = x + y, dz/dx = dz/dy = 1
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "add: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct add : arithmetic<add, 2> {
  static constexpr char const* name = "add";
  static constexpr Code code = numbered(loop_code::add);
  static constexpr auto eval(auto const& x, auto const& y) { return math::plus(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return t;
  }
};
template <>
struct fused<loop_code::add> {
  using type = add;
};

/// sub - x minus y.
///
/// Math      z = x - y, dz/dx = 1, dz/dy = -1
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "sub: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct sub : arithmetic<sub, 2> {
  static constexpr char const* name = "sub";
  static constexpr Code code = numbered(65);
  static constexpr auto eval(auto const& x, auto const& y) { return math::minus(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    if constexpr (I == 0) return t;
    else return apply_once<neg>(t);
  }
};
template <>
struct fused<65> {
  using type = sub;
};

/// mul - x times y.
///
/// Math      z = x y, dz/dx = y, dz/dy = x
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "mul: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct mul : arithmetic<mul, 2> {
  static constexpr char const* name = "mul";
  static constexpr Code code = numbered(66);
  static constexpr auto eval(auto const& x, auto const& y) { return math::times(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * s.x[1 - I];
  }
};
template <>
struct fused<66> {
  using type = mul;
};

/// div - x over y; of integers too their quotient, as in PyTorch (floor_divide is of integers an integer).
///
/// Math      z = x / y, dz/dx = 1 / y, dz/dy = -z / y; with eps y / (y^2 + eps), -x / (y^2 + eps)
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    f32 f64 f16 bf16, promoted; integers and bool in f32
/// Errors    "div: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct div : analytic<div, 2> {
  static constexpr char const* name = "div";
  static constexpr Code code = numbered(67);
  static constexpr int cost = 2;
  static constexpr auto eval(auto const& x, auto const& y) { return math::divide(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if (s.attrs.f[0] != 0) {
      V const square = guarded(s.x[1] * s.x[1], s.attrs);
      if constexpr (I == 0) return t * s.x[1] / square;
      else return -(t * s.x[0]) / square;
    }
    if constexpr (I == 0) return t / s.x[1];
    else return -(t * s.y) / s.x[1];
  }
};
template <>
struct fused<67> {
  using type = div;
};

/// pow - x to the power y; integers to integer powers are exact, modulo 2^64.
///
/// Math      z = x^y, dz/dx = y x^(y-1) (0 where y = 0), dz/dy = z ln x (0 where x = 0 and y >= 0);
///           with eps x + eps in the place of x
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "pow: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct pow : arithmetic<pow, 2> {
  static constexpr char const* name = "pow";
  static constexpr Code code = numbered(68);
  static constexpr int cost = 8;
  static constexpr auto eval(auto const& x, auto const& y) { return math::pow(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const& x = s.x[0];
    V const& y = s.x[1];
    V const zero = zeros_as(t), base = guarded(x, s.attrs);
    if constexpr (I == 0) return apply<where>(y == zero, zero, t * (y * apply<pow>(base, y - 1.0)));
    else return apply<where>(apply<logical_and>(x == zero, y >= zero), zero, t * (s.y * apply<log>(base)));
  }
};
template <>
struct fused<68> {
  using type = pow;
};

/// maximum - the larger of x and y; NaN if either is NaN.
///
/// Math      z = max(x, y); the gradient goes to the chosen operand, half to each where x = y, all to both where one is
///           NaN
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "maximum: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct maximum : arithmetic<maximum, 2> {
  static constexpr char const* name = "maximum";
  static constexpr Code code = numbered(69);
  static constexpr auto eval(auto const& x, auto const& y) { return math::maximum(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const& mine = s.x[I];
    V const& other = s.x[1 - I];
    return apply<where>(mine == other, t * 0.5, apply<where>(mine < other, zeros_as(t), t));
  }
};
template <>
struct fused<69> {
  using type = maximum;
};

/// minimum - the smaller of x and y; NaN if either is NaN.
///
/// Math      z = min(x, y); the gradient goes to the chosen operand, half to each where x = y, all to both where one is
///           NaN
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "minimum: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct minimum : arithmetic<minimum, 2> {
  static constexpr char const* name = "minimum";
  static constexpr Code code = numbered(70);
  static constexpr auto eval(auto const& x, auto const& y) { return math::minimum(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const& mine = s.x[I];
    V const& other = s.x[1 - I];
    return apply<where>(mine == other, t * 0.5, apply<where>(mine > other, zeros_as(t), t));
  }
};
template <>
struct fused<70> {
  using type = minimum;
};

}  // namespace dfdx::op
