// SPDX-License-Identifier: BSL-1.0
// Elementwise functions beyond the common ones of elementwise.hpp: to other bases, trigonometric, special, rounding;
// and those made of others. Each is apply<op::name>; see the op for its maths.
#pragma once

#include <algorithm>
#include <limits>

#include <dfdx/ops/exponential.hpp>
#include <dfdx/ops/rounding.hpp>
#include <dfdx/ops/special.hpp>
#include <dfdx/ops/trigonometric.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx {

template <operand X>
constexpr decltype(applied<op::exp2, X>())::type exp2(X const& x) {
  return apply<op::exp2>(x);
}
template <operand X>
constexpr decltype(applied<op::log2, X>())::type log2(X const& x, Guard guard = {}) {
  return apply_with<op::log2>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::log10, X>())::type log10(X const& x, Guard guard = {}) {
  return apply_with<op::log10>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::cbrt, X>())::type cbrt(X const& x, Guard guard = {}) {
  return apply_with<op::cbrt>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::tan, X>())::type tan(X const& x) {
  return apply<op::tan>(x);
}
template <operand X>
constexpr decltype(applied<op::asin, X>())::type asin(X const& x) {
  return apply<op::asin>(x);
}
template <operand X>
constexpr decltype(applied<op::acos, X>())::type acos(X const& x) {
  return apply<op::acos>(x);
}
template <operand X>
constexpr decltype(applied<op::atan, X>())::type atan(X const& x) {
  return apply<op::atan>(x);
}
template <operand X>
constexpr decltype(applied<op::sinh, X>())::type sinh(X const& x) {
  return apply<op::sinh>(x);
}
template <operand X>
constexpr decltype(applied<op::cosh, X>())::type cosh(X const& x) {
  return apply<op::cosh>(x);
}
template <operand X>
constexpr decltype(applied<op::asinh, X>())::type asinh(X const& x) {
  return apply<op::asinh>(x);
}
template <operand X>
constexpr decltype(applied<op::acosh, X>())::type acosh(X const& x) {
  return apply<op::acosh>(x);
}
template <operand X>
constexpr decltype(applied<op::atanh, X>())::type atanh(X const& x) {
  return apply<op::atanh>(x);
}
template <operand X>
constexpr decltype(applied<op::erfc, X>())::type erfc(X const& x) {
  return apply<op::erfc>(x);
}
template <operand X>
constexpr decltype(applied<op::lgamma, X>())::type lgamma(X const& x) {
  return apply<op::lgamma>(x);
}
template <operand X>
constexpr decltype(applied<op::digamma, X>())::type digamma(X const& x) {
  return apply<op::digamma>(x);
}
template <operand X>
constexpr decltype(applied<op::floor, X>())::type floor(X const& x) {
  return apply<op::floor>(x);
}
template <operand X>
constexpr decltype(applied<op::ceil, X>())::type ceil(X const& x) {
  return apply<op::ceil>(x);
}
template <operand X>
constexpr decltype(applied<op::round, X>())::type round(X const& x) {
  return apply<op::round>(x);
}
template <operand X>
constexpr decltype(applied<op::trunc, X>())::type trunc(X const& x) {
  return apply<op::trunc>(x);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::polygamma, X, Y>())::type polygamma(X const& x, Y const& y) {
  return apply<op::polygamma>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::atan2, X, Y>())::type atan2(X const& x, Y const& y) {
  return apply<op::atan2>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::hypot, X, Y>())::type hypot(X const& x, Y const& y) {
  return apply<op::hypot>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::fmod, X, Y>())::type fmod(X const& x, Y const& y) {
  return apply<op::fmod>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::remainder, X, Y>())::type remainder(X const& x, Y const& y) {
  return apply<op::remainder>(x, y);
}
/// x % y - remainder(x, y), as PyTorch and NumPy have it: the sign is that of y.
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::remainder, X, Y>())::type operator%(X const& x, Y const& y) {
  return apply<op::remainder>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::floor_divide, X, Y>())::type floor_divide(X const& x, Y const& y) {
  return apply<op::floor_divide>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::logaddexp, X, Y>())::type logaddexp(X const& x, Y const& y) {
  return apply<op::logaddexp>(x, y);
}

/// add, sub, mul, neg - the operators by their names.
///
/// Math      x + y, x - y, x y, -x
/// Shapes    x, y: broadcast to [S...] -> [S...]
/// Dtypes    all but bool, promoted
/// Source    elementary calculus
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::add, X, Y>())::type add(X const& x, Y const& y) {
  return x + y;
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::sub, X, Y>())::type sub(X const& x, Y const& y) {
  return x - y;
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::mul, X, Y>())::type mul(X const& x, Y const& y) {
  return x * y;
}
template <operand X>
constexpr decltype(applied<op::neg, X>())::type neg(X const& x) {
  return -x;
}
/// div(x, y, {.eps = e}) - x / y, with gradients that are finite at y = 0.
///
/// Math      z = x / y, dz/dx = y / (y^2 + eps), dz/dy = -x / (y^2 + eps)
/// Shapes    x, y: broadcast to [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16, promoted; integers and bool in f32
/// Source    elementary calculus
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::div, X, Y>())::type div(X const& x, Y const& y, Guard guard = {}) {
  return apply_with<op::div>(guard.attrs(), x, y);
}

/// Rounding - what div does with a quotient: nothing, or rounds it towards 0, or down.
enum class Rounding { none, trunc, floor };

/// div(x, y, Rounding::floor) - x / y, rounded; a rounded quotient has no gradient, and of integers it is one. That
/// towards 0 is not on the tape, where zeros through x / y would be NaN if y is 0.
///
/// Shapes    x, y: broadcast to [S...] -> [S...]
/// Dtypes    all but bool, promoted
/// Errors    "div: a quotient of integers that is not rounded is none: div(x, y)"
/// Source    PyTorch's div with rounding_mode
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::floor_divide, X, Y>())::type div(X const& x, Y const& y, Rounding how) {
  if (how == Rounding::floor) return floor_divide(x, y);
  auto const rounded = [how](auto const& u, auto const& v) {
    if (how == Rounding::trunc) return trunc(stop_gradient(div(u, v)));
    return div(u, v);
  };
  auto const whole = [how](auto const& u, auto const& v) {
    if (how == Rounding::none) raise("div: a quotient of integers that is not rounded is none: div(x, y)");
    return floor_divide(u - fmod(u, v), v);  // what is left is a multiple of v
  };
  using R = typename decltype(applied<op::floor_divide, X, Y>())::type;
  if constexpr (refused<R>) return {};
  else if constexpr (std::is_same_v<R, PlainNumber>) return rounded(x, y);
  else if constexpr (!typed<R>) {
    DType const beside = detail::dtype_of_first(x, y);
    bool const real = is_floating(detail::meta_beside(x, beside).dtype) ||
                      is_floating(detail::meta_beside(y, beside).dtype);
    if (real) return rounded(x, y);
    return whole(x, y);
  } else if constexpr (is_floating(R::static_meta.dtype)) return rounded(x, y);
  else return whole(x, y);
}

/// reciprocal(x) - 1 / x; of integers in f32.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    elementary calculus
template <operand X>
constexpr auto reciprocal(X const& x, Guard guard = {}) {
  return div(1.0, x, guard);
}

/// isnan, isinf, isfinite - of integers false, false, true.
///
/// Math      x != x, |x| = infinity, |x| < infinity
/// Shapes    x: [S...] -> [S...]
/// Dtypes    x: any, of isinf and isfinite all but bool; the result bool
/// Source    IEEE 754
template <operand X>
constexpr auto isnan(X const& x) {
  return x != x;
}
template <operand X>
constexpr auto isinf(X const& x) {
  return abs(x) == std::numeric_limits<double>::infinity();
}
template <operand X>
constexpr auto isfinite(X const& x) {
  return abs(x) < std::numeric_limits<double>::infinity();
}

/// nan_to_num(x, nan, posinf, neginf) - numbers in place of NaN and the infinities, which have no gradient: 0 and the
/// largest and least that the dtype has, or those given, as close to them as the dtype has finite ones. Integers stay.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Source    NumPy's nan_to_num
template <operand X>
constexpr auto nan_to_num(X const& x, double nan = 0, double posinf = std::numeric_limits<double>::infinity(),
                          double neginf = -std::numeric_limits<double>::infinity()) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  auto const replaced = [=](auto const& v, DType d) {
    double const most = largest_finite(d);
    auto const held = [most](double r) { return std::clamp(r, -most, most); };
    return where(v != v, held(nan), where(v == inf, held(posinf), where(v == -inf, held(neginf), v)));
  };
  if constexpr (refused<X>) return Refused{};
  else if constexpr (detail::plain<X>) return replaced(x, DType::f64);
  else if constexpr (!typed<X>) return is_floating(x.dtype()) ? X(replaced(x, x.dtype())) : x;
  else if constexpr (is_floating(X::static_meta.dtype)) return replaced(x, X::static_meta.dtype);
  else return x;
}

namespace detail {

// In a dtype in which differences of its numbers are near enough.
template <operand X>
constexpr auto comparable(X const& x) {
  if constexpr (refused<X> || plain<X>) return x;
  else if constexpr (!typed<X>) return is_floating(x.dtype()) ? in_f32(x) : cast_to(x, DType::f64);
  else if constexpr (is_floating(X::static_meta.dtype)) return in_f32(x);
  else return cast<double>(x);
}

}  // namespace detail

/// isclose(a, b, rtol, atol, equal_nan) - whether |a - b| <= atol + rtol |b|, which is not symmetric: b is the
/// reference. An infinity is close to itself, NaN to nothing, or to itself with equal_nan. 16 bits are compared in f32,
/// integers in f64, or as such where rtol and atol are 0.
///
/// Shapes    a, b: broadcast to [S...] -> [S...]
/// Dtypes    any; the result bool
/// Errors    "isclose: shapes do not broadcast: [2, 3] x [4]"
/// Source    NumPy's isclose
template <operand A, operand B>
constexpr auto isclose(A const& a, B const& b, double rtol = 1e-5, double atol = 1e-8,
                       bool equal_nan = false) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  auto const x = detail::comparable(detail::beside<"isclose">(a, b));
  auto const y = detail::comparable(b);
  auto const near = logical_and(abs(x - y) <= abs(y) * rtol + atol, abs(y) != inf);
  auto const close = detail::either(
      rtol == 0 && atol == 0, [&] { return a == b; }, [&] { return logical_or(a == b, near); });
  if (equal_nan) return logical_or(close, logical_and(x != x, y != y));
  return close;
}

/// masked_fill(x, mask, value) - value where the mask holds, else x.
///
/// Shapes    x, mask, value: broadcast to [S...] -> [S...]
/// Dtypes    mask: bool; x, value: any, promoted
/// Errors    "masked_fill: shapes do not broadcast: [2, 3] x [4]", "masked_fill: bool mask required, got f32"
/// Source    PyTorch's masked_fill
template <operand X, operand M, class Value>
  requires math_operands<X, Value>
constexpr auto masked_fill(X const& x, M const& mask, Value const& value) {
  return where(detail::masking<"masked_fill">(mask), value, detail::beside<"masked_fill">(x, mask));
}

/// lerp(a, b, w) - a + w (b - a), exactly b at w = 1; of integers in f32.
///
/// Shapes    a, b, w: broadcast to [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16, promoted; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's lerp
template <operand A, operand B, class W>
  requires math_operands<A, W>
constexpr auto lerp(A const& a, B const& b, W const& w) {
  // From the nearer end. That end and how far it is are chosen, not the sums: a difference that is infinite would make
  // NaN of what does not flow through the other.
  auto const between = [](auto const& from, auto const& to, auto const& t) {
    auto const d = to - detail::beside<"lerp">(from, to);
    if constexpr (number<std::remove_cvref_t<decltype(t)>>) {
      return t < 0.5 ? from + d * t : to - d * (1.0 - static_cast<double>(t));
    } else {
      auto const part = detail::beside<"lerp">(t, d);
      auto const first = abs(part) < 0.5;
      return where(first, from, to) + where(first, part, part - 1.0) * d;
    }
  };
  auto const x = detail::real(a);
  auto const y = detail::real(b);
  if constexpr (number<W>)
    return detail::computed_in_f32([&](auto const& u, auto const& v) { return between(u, v, w); }, x, y);
  else return detail::computed_in_f32(between, x, y, detail::real(w));
}

}  // namespace dfdx
