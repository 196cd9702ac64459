// SPDX-License-Identifier: BSL-1.0
// The elementwise functions and operators of the vocabulary: each is apply<op::name>; see the op for its maths.
#pragma once

#include <dfdx/vocabulary/apply.hpp>

namespace dfdx {

/// math_operands - at least one operand, the rest operands or numbers.
template <class... X>
concept math_operands = (operand<X> || ...) && ((operand<X> || number<X>) && ...);

/// Guard - an option of functions whose gradient has a pole, log(x, {.eps = 1e-10}): with eps the gradient stays finite
/// there (see each op); values do not change.
struct Guard {
  double eps = 0;
  constexpr Attrs attrs() const { return Attrs{{}, {eps}}; }
};

template <operand X>
constexpr decltype(applied<op::exp, X>())::type exp(X const& x) {
  return apply<op::exp>(x);
}
template <operand X>
constexpr decltype(applied<op::expm1, X>())::type expm1(X const& x) {
  return apply<op::expm1>(x);
}
template <operand X>
constexpr decltype(applied<op::log, X>())::type log(X const& x, Guard guard = {}) {
  return apply_with<op::log>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::log1p, X>())::type log1p(X const& x, Guard guard = {}) {
  return apply_with<op::log1p>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::sqrt, X>())::type sqrt(X const& x, Guard guard = {}) {
  return apply_with<op::sqrt>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::rsqrt, X>())::type rsqrt(X const& x, Guard guard = {}) {
  return apply_with<op::rsqrt>(guard.attrs(), x);
}
template <operand X>
constexpr decltype(applied<op::square, X>())::type square(X const& x) {
  return apply<op::square>(x);
}
template <operand X>
constexpr decltype(applied<op::abs, X>())::type abs(X const& x) {
  return apply<op::abs>(x);
}
template <operand X>
constexpr decltype(applied<op::sign, X>())::type sign(X const& x) {
  return apply<op::sign>(x);
}
template <operand X>
constexpr decltype(applied<op::sin, X>())::type sin(X const& x) {
  return apply<op::sin>(x);
}
template <operand X>
constexpr decltype(applied<op::cos, X>())::type cos(X const& x) {
  return apply<op::cos>(x);
}
template <operand X>
constexpr decltype(applied<op::tanh, X>())::type tanh(X const& x) {
  return apply<op::tanh>(x);
}
template <operand X>
constexpr decltype(applied<op::sigmoid, X>())::type sigmoid(X const& x) {
  return apply<op::sigmoid>(x);
}
template <operand X>
constexpr decltype(applied<op::erf, X>())::type erf(X const& x) {
  return apply<op::erf>(x);
}
template <operand X>
constexpr decltype(applied<op::relu, X>())::type relu(X const& x) {
  return apply<op::relu>(x);
}
template <operand X>
constexpr decltype(applied<op::stop_gradient, X>())::type stop_gradient(X const& x) {
  return apply<op::stop_gradient>(x);
}
template <operand X>
constexpr decltype(applied<op::logical_not, X>())::type logical_not(X const& x) {
  return apply<op::logical_not>(x);
}

/// pow(x, y) - of integers an integer, as in PyTorch.
///
/// Math      x^y; the gradients are those of op::pow
/// Shapes    x, y: broadcast to [S...] -> [S...]
/// Dtypes    all but bool, promoted
/// Errors    "pow: integers to a negative power, -1", if the power is a plain number
/// Source    elementary calculus
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::pow, X, Y>())::type pow(X const& x, Y const& y, Guard guard = {}) {
  if constexpr (std::is_integral_v<Y> && !detail::plain<X> && !refused<X>)
    if (y < Y(0) && !is_floating(x.dtype()))
      raise("pow: integers to a negative power, ", Position{index_t{y}});
  return apply_with<op::pow>(guard.attrs(), x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::maximum, X, Y>())::type maximum(X const& x, Y const& y) {
  return apply<op::maximum>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::minimum, X, Y>())::type minimum(X const& x, Y const& y) {
  return apply<op::minimum>(x, y);
}
// Of two arrays max and min are these, as in PyTorch (of one they are reductions, vocabulary/reduce.hpp).
template <operand X, operand Y>
constexpr auto max(X const& x, Y const& y) {
  return maximum(x, y);
}
template <operand X, operand Y>
constexpr auto min(X const& x, Y const& y) {
  return minimum(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::logical_and, X, Y>())::type logical_and(X const& x, Y const& y) {
  return apply<op::logical_and>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::logical_or, X, Y>())::type logical_or(X const& x, Y const& y) {
  return apply<op::logical_or>(x, y);
}
template <operand C, class X, class Y>
  requires math_operands<C, X, Y>
constexpr decltype(applied<op::where, C, X, Y>())::type where(C const& c, X const& x, Y const& y) {
  return apply<op::where>(c, x, y);
}

template <operand X>
constexpr decltype(applied<op::neg, X>())::type operator-(X const& x) {
  return apply<op::neg>(x);
}
template <operand X>
constexpr X operator+(X const& x) {
  return x;
}
template <operand X>
  requires(!std::is_same_v<X, Sym>)  // a Sym is also a handle that may be null
constexpr decltype(applied<op::logical_not, X>())::type operator!(X const& x) {
  return apply<op::logical_not>(x);
}
// Both sides are computed, as by std::valarray and Eigen's arrays.
template <operand X, operand Y>
  requires(!std::is_same_v<X, Sym> && !std::is_same_v<Y, Sym> && math_operands<X, Y>)
constexpr decltype(applied<op::logical_and, X, Y>())::type operator&&(X const& x, Y const& y) {
  return apply<op::logical_and>(x, y);
}
template <operand X, operand Y>
  requires(!std::is_same_v<X, Sym> && !std::is_same_v<Y, Sym> && math_operands<X, Y>)
constexpr decltype(applied<op::logical_or, X, Y>())::type operator||(X const& x, Y const& y) {
  return apply<op::logical_or>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::add, X, Y>())::type operator+(X const& x, Y const& y) {
  return apply<op::add>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::sub, X, Y>())::type operator-(X const& x, Y const& y) {
  return apply<op::sub>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::mul, X, Y>())::type operator*(X const& x, Y const& y) {
  return apply<op::mul>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::div, X, Y>())::type operator/(X const& x, Y const& y) {
  return apply<op::div>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::equal, X, Y>())::type operator==(X const& x, Y const& y) {
  return apply<op::equal>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::not_equal, X, Y>())::type operator!=(X const& x, Y const& y) {
  return apply<op::not_equal>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::less, X, Y>())::type operator<(X const& x, Y const& y) {
  return apply<op::less>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::less_equal, X, Y>())::type operator<=(X const& x, Y const& y) {
  return apply<op::less_equal>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::greater, X, Y>())::type operator>(X const& x, Y const& y) {
  return apply<op::greater>(x, y);
}
template <class X, class Y>
  requires math_operands<X, Y>
constexpr decltype(applied<op::greater_equal, X, Y>())::type operator>=(X const& x, Y const& y) {
  return apply<op::greater_equal>(x, y);
}

/// cast<T> - the value with element type T, in every regime the same: an integer of b bits is x truncated towards zero,
/// modulo 2^b (300 as u8 is 44, -1 is 255), and 0 for NaN and infinities; a truth is whether x is not zero, as NaN is.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any to any
/// Source    elementary
template <element T, operand X>
constexpr auto cast(X const& x) {
  if constexpr (refused<X>) {
    return Refused{};
  } else if constexpr (typed<X>) {
    struct Rule {
      static constexpr Meta infer(Text*) { return Meta{dtype_v<T>, X::static_shape}; }
    };
    using R = tensor_for<detail::Inferred<Rule>>;
    if constexpr (std::is_same_v<typename X::value_type, T>) return x;
    else
      return detail::wrap<R>(
          bind<op::cast, T>(Attrs{{static_cast<index_t>(dtype_v<T>)}}, detail::untyped(x)));
  } else {
    return cast_to<std::remove_cvref_t<X>>(x, dtype_v<T>);
  }
}

/// full_as, zeros_as, ones_as - a constant of the operand's dtype and shape, for rules: in memory one number that all
/// elements are, which nobody may write to.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Source    elementary
template <operand X, class N>
  requires std::is_convertible_v<N, double>
constexpr auto full_as(X const& x, N value) {
  if constexpr (refused<X>) return Refused{};
  else if constexpr (typed<X>) return detail::wrap<X>(full_as(detail::untyped(x), value));
  else if constexpr (std::is_integral_v<N> && sizeof(N) == 8)  // a double does not hold all of these
    return detail::full_of(x, x.meta(), value, "full_like");
  else return full_as(x, x.meta(), static_cast<double>(value));
}
template <operand X>
constexpr auto zeros_as(X const& x) {
  return full_as(x, 0.0);
}
template <operand X>
constexpr auto ones_as(X const& x) {
  return full_as(x, 1.0);
}

/// full_like, zeros_like, ones_like - a constant of the operand's dtype and shape, in memory of its own, so that it can
/// be changed in place.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Source    elementary
template <operand X, class N>
  requires std::is_convertible_v<N, double>
constexpr auto full_like(X const& x, N value) {
  if constexpr (refused<X>) return Refused{};
  else if constexpr (typed<X>) return detail::wrap<X>(full_like(detail::untyped(x), value));
  else if constexpr (std::is_same_v<X, Array>) {
    Array const r = full_as(x, value);
    return r.recorded() ? r : detail::packed(r);
  } else return full_as(x, value);
}
template <operand X>
constexpr auto zeros_like(X const& x) {
  return full_like(x, 0.0);
}
template <operand X>
constexpr auto ones_like(X const& x) {
  return full_like(x, 1.0);
}

}  // namespace dfdx
