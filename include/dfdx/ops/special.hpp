// SPDX-License-Identifier: BSL-1.0
// Special functions of probability and number theory: value, derivative, number, one struct each.
#pragma once

#include <dfdx/core/special_math.hpp>
#include <dfdx/ops/unary.hpp>

namespace dfdx::op {

/// erfc - complementary error function, accurate in its tail.
///
/// Math      y = 2/sqrt(pi) int_x^inf e^(-u^2) du, dy/dx = -2/sqrt(pi) e^(-x^2)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct erfc : analytic<erfc, 1> {
  static constexpr char const* name = "erfc";
  static constexpr Code code = numbered(109);
  static constexpr auto eval(auto const& x) { return math::erfc(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (apply<exp>(-(s.x[0] * s.x[0])) * -1.1283791670955126);
  }
};
template <>
struct fused<109> {
  using type = erfc;
};

/// lgamma - logarithm of the gamma function's absolute value.
///
/// Math      y = ln |Gamma(x)|, dy/dx = digamma(x)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Numerics  4 ulp (tests/kernels/accuracy.cpp)
/// Source    elementary calculus
struct lgamma : analytic<lgamma, 1> {
  static constexpr char const* name = "lgamma";
  static constexpr Code code = numbered(110);
  static constexpr int cost = 32;
  static constexpr auto eval(auto const& x) { return math::lgamma(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<digamma>(s.x[0]);
  }
};
template <>
struct fused<110> {
  using type = lgamma;
};

/// digamma - derivative of lgamma.
///
/// Math      y = Gamma'(x) / Gamma(x), dy/dx = polygamma(1, x)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Numerics  4 ulp (tests/kernels/accuracy.cpp); in f64 8 at the doubles next to the zeros by -0.504 and -5.667
/// Source    elementary calculus
struct digamma : analytic<digamma, 1> {
  static constexpr char const* name = "digamma";
  static constexpr Code code = numbered(111);
  static constexpr int cost = 32;
  static constexpr auto eval(auto const& x) { return math::digamma(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<polygamma>(1.0, s.x[0]);
  }
};
template <>
struct fused<111> {
  using type = digamma;
};

/// polygamma - x-th derivative of digamma at y, for whole x up to 30; no gradient with respect to x.
///
/// Math      z = digamma^(x)(y), dz/dy = polygamma(x + 1, y)
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    "polygamma: shapes do not broadcast: [2, 3] x [4]"
/// Numerics  4 ulp (tests/kernels/accuracy.cpp); of negative x in f64 near a zero there, 4 ulp of the terms whose
///           difference it is
/// Source    Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4
struct polygamma : analytic<polygamma, 2> {
  static constexpr char const* name = "polygamma";
  static constexpr Code code = numbered(112);
  static constexpr int cost = 64;
  static constexpr auto eval(auto const& x, auto const& y) { return math::polygamma(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if constexpr (I == 1) return t * apply<polygamma>(s.x[0] + 1.0, s.x[1]);
    else return V{};
  }
};
template <>
struct fused<112> {
  using type = polygamma;
};

}  // namespace dfdx::op
