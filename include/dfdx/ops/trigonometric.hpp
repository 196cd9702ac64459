// SPDX-License-Identifier: BSL-1.0
// Trigonometric and hyperbolic functions beyond sin, cos and tanh, and all inverses: value, derivative, number, one
// struct each.
#pragma once

#include <dfdx/ops/unary.hpp>

namespace dfdx::op {

/// tan - tangent.
///
/// Math      y = tan x, dy/dx = 1 + y^2
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct tan : analytic<tan, 1> {
  static constexpr char const* name = "tan";
  static constexpr Code code = numbered(100);
  static constexpr auto eval(auto const& x) { return math::tan(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (s.y * s.y + 1.0);
  }
};
template <>
struct fused<100> {
  using type = tan;
};

/// asin - inverse sine.
///
/// Math      y = arcsin x, dy/dx = 1 / sqrt(1 - x^2)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct asin : analytic<asin, 1> {
  static constexpr char const* name = "asin";
  static constexpr Code code = numbered(101);
  static constexpr auto eval(auto const& x) { return math::asin(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<rsqrt>((1.0 - s.x[0]) * (1.0 + s.x[0]));
  }
};
template <>
struct fused<101> {
  using type = asin;
};

/// acos - inverse cosine.
///
/// Math      y = arccos x, dy/dx = -1 / sqrt(1 - x^2)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct acos : analytic<acos, 1> {
  static constexpr char const* name = "acos";
  static constexpr Code code = numbered(102);
  static constexpr auto eval(auto const& x) { return math::acos(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return -(t * apply<rsqrt>((1.0 - s.x[0]) * (1.0 + s.x[0])));
  }
};
template <>
struct fused<102> {
  using type = acos;
};

/// atan - inverse tangent.
///
/// Math      y = arctan x, dy/dx = 1 / (1 + x^2)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct atan : analytic<atan, 1> {
  static constexpr char const* name = "atan";
  static constexpr Code code = numbered(103);
  static constexpr auto eval(auto const& x) { return math::atan(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / (s.x[0] * s.x[0] + 1.0);
  }
};
template <>
struct fused<103> {
  using type = atan;
};

/// sinh - hyperbolic sine.
///
/// Math      y = sinh x, dy/dx = cosh x
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct sinh : analytic<sinh, 1> {
  static constexpr char const* name = "sinh";
  static constexpr Code code = numbered(104);
  static constexpr auto eval(auto const& x) { return math::sinh(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<cosh>(s.x[0]);
  }
};
template <>
struct fused<104> {
  using type = sinh;
};

/// cosh - hyperbolic cosine.
///
/// Math      y = cosh x, dy/dx = sinh x
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct cosh : analytic<cosh, 1> {
  static constexpr char const* name = "cosh";
  static constexpr Code code = numbered(105);
  static constexpr auto eval(auto const& x) { return math::cosh(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<sinh>(s.x[0]);
  }
};
template <>
struct fused<105> {
  using type = cosh;
};

/// asinh - inverse hyperbolic sine.
///
/// Math      y = arsinh x, dy/dx = 1 / sqrt(x^2 + 1)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct asinh : analytic<asinh, 1> {
  static constexpr char const* name = "asinh";
  static constexpr Code code = numbered(106);
  static constexpr auto eval(auto const& x) { return math::asinh(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<rsqrt>(s.x[0] * s.x[0] + 1.0);
  }
};
template <>
struct fused<106> {
  using type = asinh;
};

/// acosh - inverse hyperbolic cosine.
///
/// Math      y = arcosh x, dy/dx = 1 / sqrt(x^2 - 1)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct acosh : analytic<acosh, 1> {
  static constexpr char const* name = "acosh";
  static constexpr Code code = numbered(107);
  static constexpr auto eval(auto const& x) { return math::acosh(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<rsqrt>((s.x[0] - 1.0) * (s.x[0] + 1.0));
  }
};
template <>
struct fused<107> {
  using type = acosh;
};

/// atanh - inverse hyperbolic tangent.
///
/// Math      y = artanh x, dy/dx = 1 / (1 - x^2)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct atanh : analytic<atanh, 1> {
  static constexpr char const* name = "atanh";
  static constexpr Code code = numbered(108);
  static constexpr auto eval(auto const& x) { return math::atanh(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / ((1.0 - s.x[0]) * (1.0 + s.x[0]));
  }
};
template <>
struct fused<108> {
  using type = atanh;
};

/// atan2 - angle of the point (y, x), from -pi to pi; x is the ordinate here.
///
/// Math      z = arg(y + i x), dz/dx = y / (x^2 + y^2), dz/dy = -x / (x^2 + y^2); at the origin both count as 0
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    "atan2: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct atan2 : analytic<atan2, 2> {
  static constexpr char const* name = "atan2";
  static constexpr Code code = numbered(117);
  static constexpr auto eval(auto const& x, auto const& y) { return math::atan2(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const sum = s.x[0] * s.x[0] + s.x[1] * s.x[1];
    V const square = apply<where>(sum == 0, 1.0, sum);
    if constexpr (I == 0) return t * (s.x[1] / square);
    else return -(t * (s.x[0] / square));
  }
};
template <>
struct fused<117> {
  using type = atan2;
};

/// hypot - length of the vector (x, y), without overflow.
///
/// Math      z = sqrt(x^2 + y^2), dz/dx = x / z, dz/dy = y / z
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    "hypot: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct hypot : analytic<hypot, 2> {
  static constexpr char const* name = "hypot";
  static constexpr Code code = numbered(118);
  static constexpr auto eval(auto const& x, auto const& y) { return math::hypot(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (s.x[I] / s.y);
  }
};
template <>
struct fused<118> {
  using type = hypot;
};

}  // namespace dfdx::op
