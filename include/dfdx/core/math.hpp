// SPDX-License-Identifier: BSL-1.0
// Elementary functions over lane values: numbers, and any vector type whose namespace overloads the same names
// (found by argument-dependent lookup, so this header knows no backend). Constant expressions use constant_math.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <dfdx/core/constant_math.hpp>
#include <dfdx/core/dtype.hpp>

namespace dfdx {

namespace detail::lookup {
// Calls by unqualified name from a namespace that declares none of these names.
template <class X>
DFDX_INLINE auto call_exp(X const& x) {
  return exp(x);
}
template <class X>
DFDX_INLINE auto call_expm1(X const& x) {
  return expm1(x);
}
template <class X>
DFDX_INLINE auto call_log(X const& x) {
  return log(x);
}
template <class X>
DFDX_INLINE auto call_log1p(X const& x) {
  return log1p(x);
}
template <class X>
DFDX_INLINE auto call_sqrt(X const& x) {
  return sqrt(x);
}
template <class X>
DFDX_INLINE auto call_sin(X const& x) {
  return sin(x);
}
template <class X>
DFDX_INLINE auto call_cos(X const& x) {
  return cos(x);
}
template <class X>
DFDX_INLINE auto call_tanh(X const& x) {
  return tanh(x);
}
template <class X>
DFDX_INLINE auto call_erf(X const& x) {
  return erf(x);
}
template <class X>
DFDX_INLINE auto call_abs(X const& x) {
  return abs(x);
}
/// pow of vectors, by the logarithm. Its special values are those of C99 (F.9.4.4), which xsimd's pow has not.
template <class X>
DFDX_INLINE X call_pow(X const& x, X const& y) {
  using E = typename X::value_type;
  using Limits = std::numeric_limits<E>;
  X const zero(E(0)), one(E(1)), half = y * X(E(0.5)), magnitude = abs(x);
  auto const integer = floor(y) == y;  // infinite y are even integers
  auto const odd = integer && floor(half) != half;
  // Where the product may be 0 * infinity: anything^0, 1^anything (NaN too), (-1)^infinity.
  auto const is_one = y == zero || x == one || (x == -one && y == y);
  X const power = exp(select(is_one, zero, y * log(magnitude)));
  auto const invalid = x < zero && !integer && magnitude != X(Limits::infinity());
  return select(invalid, X(Limits::quiet_NaN()), select(odd, copysign(power, x), power));
}
template <class C, class X>
DFDX_INLINE auto call_select(C const& c, X const& x, X const& y) {
  return select(c, x, y);
}
}  // namespace detail::lookup

namespace math {

template <class X>
inline constexpr bool is_number = std::is_arithmetic_v<X>;

template <class X>
DFDX_INLINE constexpr X exp(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_exp(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::exp(static_cast<double>(x)));
  else return static_cast<X>(std::exp(x));
}
template <class X>
DFDX_INLINE constexpr X expm1(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_expm1(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::expm1(static_cast<double>(x)));
  else return static_cast<X>(std::expm1(x));
}
template <class X>
DFDX_INLINE constexpr X log(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_log(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::log(static_cast<double>(x)));
  else return static_cast<X>(std::log(x));
}
template <class X>
DFDX_INLINE constexpr X log1p(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_log1p(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::log1p(static_cast<double>(x)));
  else return static_cast<X>(std::log1p(x));
}
template <class X>
DFDX_INLINE constexpr X sqrt(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_sqrt(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::sqrt(static_cast<double>(x)));
  else return static_cast<X>(std::sqrt(x));
}
template <class X>
DFDX_INLINE constexpr X sin(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_sin(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::sin(static_cast<double>(x)));
  else return static_cast<X>(std::sin(x));
}
template <class X>
DFDX_INLINE constexpr X cos(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_cos(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::cos(static_cast<double>(x)));
  else return static_cast<X>(std::cos(x));
}
template <class X>
DFDX_INLINE constexpr X tanh(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_tanh(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::tanh(static_cast<double>(x)));
  else return static_cast<X>(std::tanh(x));
}
template <class X>
DFDX_INLINE constexpr X erf(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_erf(x);
  else if (std::is_constant_evaluated()) return static_cast<X>(constant_math::erf(static_cast<double>(x)));
  else return static_cast<X>(std::erf(x));
}
template <class X>
DFDX_INLINE constexpr X abs(X const& x) {
  if constexpr (!is_number<X>) return detail::lookup::call_abs(x);
  else return x < X(0) ? static_cast<X>(-x) : x == X(0) ? X(0) : x;
}
template <class X>
DFDX_INLINE constexpr X pow(X const& x, X const& y) {
  if constexpr (!is_number<X>) return detail::lookup::call_pow(x, y);
  else if (std::is_constant_evaluated())
    return static_cast<X>(constant_math::pow(static_cast<double>(x), static_cast<double>(y)));
  else return static_cast<X>(std::pow(x, y));
}

/// select - c ? x : y, lane by lane.
template <class C, class X>
DFDX_INLINE constexpr X select(C const& c, X const& x, X const& y) {
  if constexpr (std::is_same_v<C, bool>) return c ? x : y;
  else return detail::lookup::call_select(c, x, y);
}

namespace detail {
template <class X>
struct element_of_lane {
  using type = X;
};
template <class X>
  requires requires { typename X::value_type; }
struct element_of_lane<X> {
  using type = typename X::value_type;
};
}  // namespace detail

/// divide - x / y. Floats follow IEEE, also in constant expressions; integers truncate, and by zero give zero, for
/// a processor would trap (also at the lanes of a vector that no element fills).
template <class X>
DFDX_INLINE constexpr X divide(X const& x, X const& y) {
  using E = typename detail::element_of_lane<X>::type;
  if constexpr (!std::is_integral_v<E>) {
    if constexpr (is_number<X>) {
      using L = std::numeric_limits<X>;
      if (std::is_constant_evaluated() && y == X(0)) {
        if (x == X(0) || x != x) return L::quiet_NaN();
        bool const negative = std::bit_cast<std::uint64_t>(static_cast<double>(y)) >> 63 != 0;
        return (x < X(0)) == negative ? L::infinity() : -L::infinity();
      }
    }
    return x / y;
  } else if constexpr (is_number<X>) {
    if (y == X(0)) return X(0);
    // The least number has no negative: its quotient by -1 wraps.
    if constexpr (std::is_signed_v<X>)
      if (y == X(-1))
        return static_cast<X>(std::make_unsigned_t<X>(0) - static_cast<std::make_unsigned_t<X>>(x));
    return static_cast<X>(x / y);
  } else {
    X const one(static_cast<E>(1)), zero(static_cast<E>(0));
    auto const by_zero = y == zero;
    if constexpr (std::is_signed_v<E>) {
      auto const by_minus_one = y == X(static_cast<E>(-1));
      X const quotient = x / select(by_zero || by_minus_one, one, y);
      return select(by_zero, zero, select(by_minus_one, zero - quotient, quotient));
    } else {
      return select(by_zero, zero, x / select(by_zero, one, y));
    }
  }
}

/// maximum, minimum - the larger, the smaller; NaN if either operand is NaN (as PyTorch, unlike fmax).
template <class X>
DFDX_INLINE constexpr X maximum(X const& x, X const& y) {
  return select((x >= y) || (x != x), x, y);
}
template <class X>
DFDX_INLINE constexpr X minimum(X const& x, X const& y) {
  return select((x <= y) || (x != x), x, y);
}

}  // namespace math

}  // namespace dfdx
