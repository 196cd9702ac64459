// SPDX-License-Identifier: BSL-1.0
// Elementwise exponentials, logarithms and roots to other bases: value, derivative, number, one struct each.
#pragma once

#include <limits>

#include <dfdx/ops/unary.hpp>

namespace dfdx::op {

/// exp2 - 2 to the power x.
///
/// Math      y = 2^x, dy/dx = y ln 2
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct exp2 : analytic<exp2, 1> {
  static constexpr char const* name = "exp2";
  static constexpr Code code = numbered(96);
  static constexpr auto eval(auto const& x) { return math::exp2(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (s.y * 0.69314718055994531);
  }
};
template <>
struct fused<96> {
  using type = exp2;
};

/// log2 - logarithm to base 2.
///
/// Math      y = log2 x, dy/dx = 1 / ((x + eps) ln 2), eps 0 by default
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct log2 : analytic<log2, 1> {
  static constexpr char const* name = "log2";
  static constexpr Code code = numbered(97);
  static constexpr auto eval(auto const& x) { return math::log2(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / (guarded(s.x[0], s.attrs) * 0.69314718055994531);
  }
};
template <>
struct fused<97> {
  using type = log2;
};

/// log10 - logarithm to base 10.
///
/// Math      y = log10 x, dy/dx = 1 / ((x + eps) ln 10), eps 0 by default
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct log10 : analytic<log10, 1> {
  static constexpr char const* name = "log10";
  static constexpr Code code = numbered(98);
  static constexpr auto eval(auto const& x) { return math::log10(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / (guarded(s.x[0], s.attrs) * 2.3025850929940457);
  }
};
template <>
struct fused<98> {
  using type = log10;
};

/// cbrt - cube root, also of negative numbers.
///
/// Math      y = x^(1/3), dy/dx = 1 / (3 y^2 + eps), eps 0 by default
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct cbrt : analytic<cbrt, 1> {
  static constexpr char const* name = "cbrt";
  static constexpr Code code = numbered(99);
  static constexpr auto eval(auto const& x) { return math::cbrt(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / guarded(s.y * s.y * 3.0, s.attrs);
  }
};
template <>
struct fused<99> {
  using type = cbrt;
};

/// logaddexp - ln(e^x + e^y) without overflow.
///
/// Math      z = ln(e^x + e^y), dz/dx = 1 / (1 + e^(y - x)), dz/dy = 1 / (1 + e^(x - y)); 1/2 for equal infinities
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    "logaddexp: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct logaddexp : analytic<logaddexp, 2> {
  static constexpr char const* name = "logaddexp";
  static constexpr Code code = numbered(122);
  static constexpr auto eval(auto const& x, auto const& y) { return math::logaddexp(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    V const& mine = s.x[I];
    V const& other = s.x[1 - I];
    V const same = apply<logical_and>(mine == other, apply<abs>(mine) == infinity);
    return t * apply<sigmoid>(apply<where>(same, zeros_as(mine), mine - other));
  }
};
template <>
struct fused<122> {
  using type = logaddexp;
};

}  // namespace dfdx::op
