// SPDX-License-Identifier: BSL-1.0
// Elementwise ops of one operand: value, derivative, number, one struct each.
#pragma once

#include <dfdx/ops/elementwise.hpp>

namespace dfdx::op {

/// compute_scalar - the number type of a lane value.
template <class X>
using compute_scalar = typename math::scalar_of<X>;

/// neg - minus x.
///
/// Math      y = -x, dy/dx = -1
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool
/// Errors    "neg: numeric dtype required, got bool"
/// Source    elementary calculus
struct neg : arithmetic<neg, 1> {
  static constexpr char const* name = "neg";
  static constexpr Code code = numbered(32);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::negated(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return apply_once<neg>(t);
  }
};
template <>
struct fused<32> {
  using type = neg;
};

/// exp - natural exponential.
///
/// Math      y = e^x, dy/dx = y
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct exp : analytic<exp, 1> {
  static constexpr char const* name = "exp";
  static constexpr Code code = numbered(33);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::exp(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * s.y;
  }
};
template <>
struct fused<33> {
  using type = exp;
};

/// expm1 - e^x - 1, accurate near 0.
///
/// Math      y = e^x - 1, dy/dx = y + 1
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct expm1 : analytic<expm1, 1> {
  static constexpr char const* name = "expm1";
  static constexpr Code code = numbered(34);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::expm1(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (s.y + 1.0);
  }
};
template <>
struct fused<34> {
  using type = expm1;
};

/// log - natural logarithm.
///
/// Math      y = ln x, dy/dx = 1 / (x + eps), eps 0 by default
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct log : analytic<log, 1> {
  static constexpr char const* name = "log";
  static constexpr Code code = numbered(35);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::log(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / guarded(s.x[0], s.attrs);
  }
};
template <>
struct fused<35> {
  using type = log;
};

/// log1p - ln(1 + x), accurate near 0.
///
/// Math      y = ln(1 + x), dy/dx = 1 / (1 + x + eps), eps 0 by default
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct log1p : analytic<log1p, 1> {
  static constexpr char const* name = "log1p";
  static constexpr Code code = numbered(36);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::log1p(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / guarded(s.x[0] + 1.0, s.attrs);
  }
};
template <>
struct fused<36> {
  using type = log1p;
};

/// sqrt - square root.
///
/// Math      y = x^(1/2), dy/dx = 1 / (2 y + eps), eps 0 by default
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct sqrt : analytic<sqrt, 1> {
  static constexpr char const* name = "sqrt";
  static constexpr Code code = numbered(37);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::sqrt(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t / guarded(s.y * 2.0, s.attrs);
  }
};
template <>
struct fused<37> {
  using type = sqrt;
};

/// rsqrt - reciprocal square root.
///
/// Math      y = x^(-1/2), dy/dx = -y^3 / 2, with eps -1 / (2 x sqrt(x) + eps)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct rsqrt : analytic<rsqrt, 1> {
  static constexpr char const* name = "rsqrt";
  static constexpr Code code = numbered(38);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return decltype(x + x)(1) / math::sqrt(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if (s.attrs.f[0] != 0) return -(t / guarded(s.x[0] * apply<sqrt>(s.x[0]) * 2.0, s.attrs));
    return t * (s.y * s.y * s.y * -0.5);
  }
};
template <>
struct fused<38> {
  using type = rsqrt;
};

/// square - x times x.
///
/// Math      y = x^2, dy/dx = 2 x
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool
/// Errors    "square: numeric dtype required, got bool"
/// Source    elementary calculus
struct square : arithmetic<square, 1> {
  static constexpr char const* name = "square";
  static constexpr Code code = numbered(39);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::times(x, x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return apply_once<mul>(t, 2.0) * s.x[0];
  }
};
template <>
struct fused<39> {
  using type = square;
};

/// abs - absolute value.
///
/// Math      y = |x|, dy/dx = sign x, 0 at 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool
/// Errors    "abs: numeric dtype required, got bool"
/// Source    elementary calculus
struct abs : arithmetic<abs, 1> {
  static constexpr char const* name = "abs";
  static constexpr Code code = numbered(40);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::abs(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<sign>(s.x[0]);
  }
};
template <>
struct fused<40> {
  using type = abs;
};

/// sign - -1, 0 or 1; 0 for NaN, as in PyTorch.
///
/// Math      y = sign x, dy/dx = 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool
/// Errors    "sign: numeric dtype required, got bool"
/// Source    elementary calculus
struct sign : stepped<sign, 1> {
  static constexpr char const* name = "sign";
  static constexpr Code code = numbered(41);
  static DFDX_INLINE constexpr auto eval(auto const& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    X const zero(0);
    return math::select(x > zero, X(1), math::select(x < zero, X(static_cast<compute_scalar<X>>(-1)), zero));
  }
};
template <>
struct fused<41> {
  using type = sign;
};

/// sin - sine.
///
/// Math      y = sin x, dy/dx = cos x
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct sin : analytic<sin, 1> {
  static constexpr char const* name = "sin";
  static constexpr Code code = numbered(42);
  static constexpr auto eval(auto const& x) { return math::sin(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * apply<cos>(s.x[0]);
  }
};
template <>
struct fused<42> {
  using type = sin;
};

/// cos - cosine.
///
/// Math      y = cos x, dy/dx = -sin x
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct cos : analytic<cos, 1> {
  static constexpr char const* name = "cos";
  static constexpr Code code = numbered(43);
  static constexpr auto eval(auto const& x) { return math::cos(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return -(t * apply<sin>(s.x[0]));
  }
};
template <>
struct fused<43> {
  using type = cos;
};

/// tanh - hyperbolic tangent.
///
/// Math      y = tanh x, dy/dx = 1 - y^2
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct tanh : analytic<tanh, 1> {
  static constexpr char const* name = "tanh";
  static constexpr Code code = numbered(44);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::tanh(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (1.0 - s.y * s.y);
  }
};
template <>
struct fused<44> {
  using type = tanh;
};

/// sigmoid - logistic function.
///
/// Math      y = 1 / (1 + e^-x), dy/dx = y (1 - y)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct sigmoid : analytic<sigmoid, 1> {
  static constexpr char const* name = "sigmoid";
  static constexpr Code code = numbered(45);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::sigmoid(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (s.y * (1.0 - s.y));
  }
};
template <>
struct fused<45> {
  using type = sigmoid;
};

/// erf - error function.
///
/// Math      y = 2/sqrt(pi) int_0^x e^(-u^2) du, dy/dx = 2/sqrt(pi) e^(-x^2)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    elementary calculus
struct erf : analytic<erf, 1> {
  static constexpr char const* name = "erf";
  static constexpr Code code = numbered(46);
  static DFDX_INLINE constexpr auto eval(auto const& x) { return math::erf(x); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * (apply<exp>(-(s.x[0] * s.x[0])) * 1.1283791670955126);
  }
};
template <>
struct fused<46> {
  using type = erf;
};

/// relu - rectifier.
///
/// Math      y = max(x, 0), dy/dx = 1 where y > 0, else 0 (also at 0); NaN stays NaN and passes what comes to it
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool
/// Errors    "relu: numeric dtype required, got bool"
/// Source    Nair and Hinton, ICML 2010
struct relu : arithmetic<relu, 1> {
  static constexpr char const* name = "relu";
  static constexpr Code code = numbered(47);
  static DFDX_INLINE constexpr auto eval(auto const& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    return math::select(x < X(0), X(0), x);
  }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return apply<where>(s.y != 0.0, t, zeros_as(t));
  }
};
template <>
struct fused<47> {
  using type = relu;
};

}  // namespace dfdx::op
