// SPDX-License-Identifier: BSL-1.0
// Elementary functions over lane values: numbers, and vectors of a backend, which specialises lane_functions (so this
// header knows no backend). Constant expressions use constant_math. Calls are qualified: names of vectors must not be
// found.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <dfdx/core/config.hpp>
#include <dfdx/core/constant_math.hpp>
#include <dfdx/core/dtype.hpp>
#include <dfdx/core/integers.hpp>

namespace dfdx {

namespace detail::lookup {
// Calls by unqualified name from a namespace that declares none of these names.
template <class X>
DFDX_INLINE constexpr auto call_abs(X const& x) {
  return abs(x);
}
template <class X>
DFDX_INLINE constexpr auto call_sqrt(X const& x) {
  return sqrt(x);
}
template <class C, class X>
DFDX_INLINE constexpr auto call_select(C const& c, X const& x, X const& y) {
  return select(c, x, y);
}
}  // namespace detail::lookup

namespace math {

template <class X>
inline constexpr bool is_number = std::is_arithmetic_v<X>;

namespace detail {
// By squaring; unsigned, so that what is too large wraps.
template <class X>
constexpr X integer_power(X x, X y) {
  if constexpr (std::is_signed_v<X>)
    if (y < 0) return x == X(1) || (x == X(-1) && y % 2 == 0) ? X(1) : x == X(-1) ? x : X(0);
  std::uint64_t power = 1, square = static_cast<std::uint64_t>(x);
  for (; y != 0; y = static_cast<X>(y / 2), square *= square)
    if (y % 2 != 0) power *= square;
  return static_cast<X>(power);
}
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

/// scalar_of - the number type of a lane value.
template <class X>
using scalar_of = typename detail::element_of_lane<X>::type;

/// lane_functions - the functions below for vectors of type X; a backend specialises it.
template <class X>
struct lane_functions;

template <class X>
DFDX_INLINE constexpr X sqrt(X const& x) {
  if constexpr (!is_number<X>) return dfdx::detail::lookup::call_sqrt(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::sqrt(static_cast<double>(x)));
  else return static_cast<X>(std::sqrt(x));
}
template <class X>
DFDX_INLINE constexpr X abs(X const& x) {
  if constexpr (!is_number<X>) return dfdx::detail::lookup::call_abs(x);
  else return x < X(0) ? static_cast<X>(negated(x)) : x == X(0) ? X(0) : x;
}
template <class X>
DFDX_INLINE constexpr X exp(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::exp(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::exp(static_cast<double>(x)));
  else return static_cast<X>(std::exp(x));
}
template <class X>
DFDX_INLINE constexpr X expm1(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::expm1(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::expm1(static_cast<double>(x)));
  else return static_cast<X>(std::expm1(x));
}
template <class X>
DFDX_INLINE constexpr X exp2(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::exp2(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::exp2(static_cast<double>(x)));
  else return static_cast<X>(std::exp2(x));
}
template <class X>
DFDX_INLINE constexpr X log(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::log(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::log(static_cast<double>(x)));
  else return static_cast<X>(std::log(x));
}
template <class X>
DFDX_INLINE constexpr X log1p(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::log1p(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::log1p(static_cast<double>(x)));
  else return static_cast<X>(std::log1p(x));
}
template <class X>
DFDX_INLINE constexpr X log2(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::log2(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::log2(static_cast<double>(x)));
  else return static_cast<X>(std::log2(x));
}
template <class X>
DFDX_INLINE constexpr X log10(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::log10(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::log10(static_cast<double>(x)));
  else return static_cast<X>(std::log10(x));
}
template <class X>
DFDX_INLINE constexpr X cbrt(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::cbrt(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::cbrt(static_cast<double>(x)));
  else return static_cast<X>(std::cbrt(x));
}
template <class X>
DFDX_INLINE constexpr X sin(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::sin(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::sin(static_cast<double>(x)));
  else return static_cast<X>(std::sin(x));
}
template <class X>
DFDX_INLINE constexpr X cos(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::cos(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::cos(static_cast<double>(x)));
  else return static_cast<X>(std::cos(x));
}
template <class X>
DFDX_INLINE constexpr X tan(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::tan(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::tan(static_cast<double>(x)));
  else return static_cast<X>(std::tan(x));
}
template <class X>
DFDX_INLINE constexpr X asin(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::asin(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::asin(static_cast<double>(x)));
  else return static_cast<X>(std::asin(x));
}
template <class X>
DFDX_INLINE constexpr X acos(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::acos(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::acos(static_cast<double>(x)));
  else return static_cast<X>(std::acos(x));
}
template <class X>
DFDX_INLINE constexpr X atan(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::atan(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::atan(static_cast<double>(x)));
  else return static_cast<X>(std::atan(x));
}
template <class X>
DFDX_INLINE constexpr X sinh(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::sinh(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::sinh(static_cast<double>(x)));
  else return static_cast<X>(std::sinh(x));
}
template <class X>
DFDX_INLINE constexpr X cosh(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::cosh(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::cosh(static_cast<double>(x)));
  else return static_cast<X>(std::cosh(x));
}
template <class X>
DFDX_INLINE constexpr X tanh(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::tanh(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::tanh(static_cast<double>(x)));
  else return static_cast<X>(std::tanh(x));
}
template <class X>
DFDX_INLINE constexpr X asinh(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::asinh(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::asinh(static_cast<double>(x)));
  else return static_cast<X>(std::asinh(x));
}
template <class X>
DFDX_INLINE constexpr X acosh(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::acosh(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::acosh(static_cast<double>(x)));
  else return static_cast<X>(std::acosh(x));
}
template <class X>
DFDX_INLINE constexpr X atanh(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::atanh(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::atanh(static_cast<double>(x)));
  else return static_cast<X>(std::atanh(x));
}
template <class X>
DFDX_INLINE constexpr X erf(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::erf(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::erf(static_cast<double>(x)));
  else return static_cast<X>(std::erf(x));
}
template <class X>
DFDX_INLINE constexpr X erfc(X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::erfc(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::erfc(static_cast<double>(x)));
  else return static_cast<X>(std::erfc(x));
}

// Of integers the next four are the integer.
template <class X>
DFDX_INLINE constexpr X floor(X const& x) {
  if constexpr (std::is_integral_v<scalar_of<X>>) return x;
  else if constexpr (!is_number<X>) return lane_functions<X>::floor(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::floor(static_cast<double>(x)));
  else return static_cast<X>(std::floor(x));
}
template <class X>
DFDX_INLINE constexpr X ceil(X const& x) {
  if constexpr (std::is_integral_v<scalar_of<X>>) return x;
  else if constexpr (!is_number<X>) return lane_functions<X>::ceil(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::ceil(static_cast<double>(x)));
  else return static_cast<X>(std::ceil(x));
}
template <class X>
DFDX_INLINE constexpr X trunc(X const& x) {
  if constexpr (std::is_integral_v<scalar_of<X>>) return x;
  else if constexpr (!is_number<X>) return lane_functions<X>::trunc(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::trunc(static_cast<double>(x)));
  else return static_cast<X>(std::trunc(x));
}
/// round - to the nearest integer, halves to the even one.
template <class X>
DFDX_INLINE constexpr X round(X const& x) {
  if constexpr (std::is_integral_v<scalar_of<X>>) return x;
  else if constexpr (!is_number<X>) return lane_functions<X>::round(x);
  else if (DFDX_IN_CONSTANT_EXPRESSION) return static_cast<X>(constant_math::round(static_cast<double>(x)));
  else return static_cast<X>(std::nearbyint(x));
}

/// pow - x^y. Of integers exactly, modulo the range of the type; negative powers truncate, and of 0 are 0.
template <class X>
DFDX_INLINE constexpr X pow(X const& x, X const& y) {
  if constexpr (!is_number<X>) return lane_functions<X>::pow(x, y);
  else if constexpr (std::is_integral_v<X>) return detail::integer_power(x, y);
  else if (DFDX_IN_CONSTANT_EXPRESSION)
    return static_cast<X>(constant_math::pow(static_cast<double>(x), static_cast<double>(y)));
  else return static_cast<X>(std::pow(x, y));
}
template <class X>
DFDX_INLINE constexpr X atan2(X const& x, X const& y) {
  if constexpr (!is_number<X>) return lane_functions<X>::atan2(x, y);
  else if (DFDX_IN_CONSTANT_EXPRESSION)
    return static_cast<X>(constant_math::atan2(static_cast<double>(x), static_cast<double>(y)));
  else return static_cast<X>(std::atan2(x, y));
}
template <class X>
DFDX_INLINE constexpr X hypot(X const& x, X const& y) {
  if constexpr (!is_number<X>) return lane_functions<X>::hypot(x, y);
  else if (DFDX_IN_CONSTANT_EXPRESSION)
    return static_cast<X>(constant_math::hypot(static_cast<double>(x), static_cast<double>(y)));
  else return static_cast<X>(std::hypot(x, y));
}

/// select - c ? x : y, lane by lane.
template <class C, class X>
DFDX_INLINE constexpr X select(C const& c, X const& x, X const& y) {
  if constexpr (std::is_same_v<C, bool>) return c ? x : y;
  else return dfdx::detail::lookup::call_select(c, x, y);
}

/// divide - x / y. Floats follow IEEE, also in constant expressions; integers truncate, and by zero give zero, for
/// a processor would trap (also at the lanes of a vector that no element fills).
template <class X>
DFDX_INLINE constexpr X divide(X const& x, X const& y) {
  using E = scalar_of<X>;
  if constexpr (!std::is_integral_v<E>) {
    if constexpr (is_number<X>) {
      using L = std::numeric_limits<X>;
      if (DFDX_IN_CONSTANT_EXPRESSION && y == X(0)) {
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
      if (y == X(-1)) return static_cast<X>(negated(x));
    return static_cast<X>(x / y);
  } else {
    X const one(static_cast<E>(1)), zero(static_cast<E>(0));
    auto const by_zero = y == zero;
    if constexpr (std::is_signed_v<E>) {
      auto const by_minus_one = y == X(static_cast<E>(-1));
      X const by = select(by_zero || by_minus_one, one, y);
      X quotient = one;
      if constexpr (requires { lane_functions<X>::quotient(x, by); })
        quotient = lane_functions<X>::quotient(x, by);
      else quotient = x / by;
      return select(by_zero, zero, select(by_minus_one, math::minus(zero, quotient), quotient));
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

/// sigmoid - 1 / (1 + e^-x), by the exponential that is at most 1.
template <class X>
DFDX_INLINE constexpr X sigmoid(X const& x) {
  if constexpr (!is_number<X>) {
    return lane_functions<X>::sigmoid(x);
  } else {
    X const e = math::exp(-math::abs(x));
    return (x < X(0) ? e : X(1)) / (X(1) + e);
  }
}

/// fmod - x - y trunc(x / y), exactly; of integers, 0 for y makes it x (as divide makes the quotient 0).
template <class X>
DFDX_INLINE constexpr X fmod(X const& x, X const& y) {
  using E = scalar_of<X>;
  if constexpr (!std::is_integral_v<E>) {
    if constexpr (!is_number<X>) return lane_functions<X>::fmod(x, y);
    else if (DFDX_IN_CONSTANT_EXPRESSION)
      return static_cast<X>(constant_math::fmod(static_cast<double>(x), static_cast<double>(y)));
    else return static_cast<X>(std::fmod(x, y));
  } else if constexpr (is_number<X>) {
    if constexpr (std::is_signed_v<X>)
      if (y == X(-1)) return X(0);
    return y == X(0) ? x : static_cast<X>(x % y);
  } else {
    return math::minus(x, static_cast<X>(math::times(math::divide(x, y), y)));
  }
}

/// remainder - as fmod, but of y's sign (Python's %).
template <class X>
DFDX_INLINE constexpr X remainder(X const& x, X const& y) {
  X const zero(static_cast<scalar_of<X>>(0)), r = math::fmod(x, y);
  return select(r != zero && (r < zero) != (y < zero), static_cast<X>(math::plus(r, y)), r);
}

/// floor_divide - x / y rounded down, by the exact remainder: 0.5 // 0.1 is 4, though the quotient rounds to 5.
template <class X>
DFDX_INLINE constexpr X floor_divide(X const& x, X const& y) {
  using E = scalar_of<X>;
  X const zero(static_cast<E>(0)), one(static_cast<E>(1));
  auto const is_below = [&](X const& r) { return r != zero && (r < zero) != (y < zero); };
  if constexpr (std::is_integral_v<E>) {
    X const q = math::divide(x, y), r = math::minus(x, static_cast<X>(math::times(q, y)));
    return select(is_below(r) && y != zero, static_cast<X>(math::minus(q, one)), q);
  } else {
    X const r = math::fmod(x, y);
    auto const below = is_below(r);
    X const quotient = math::divide(x, y), q = math::round(math::divide(static_cast<X>(x - r), y));
    return select(y == zero || (q == zero && !below), select(y == zero, quotient, quotient * zero),
                  select(below, q - one, q));
  }
}

/// logaddexp - ln(e^x + e^y).
template <class X>
DFDX_INLINE constexpr X logaddexp(X const& x, X const& y) {
  X const most = math::maximum(x, y), least = math::minimum(x, y);
  X const d = math::select(x == y, X(0), most - least);  // also of equal infinities
  // What the difference has lost to rounding counts where the larger operand is close to 0.
  X const t = d - most, lost = (most - (d - t)) - (least + t);
  X const low = math::select(lost == lost, -lost, X(0));
  if constexpr (!is_number<X>) {
    return most + lane_functions<X>::log1p_exp(-d, low);
  } else {
    X const e = math::exp(-d);
    return most + math::log1p(e + e * low);
  }
}

}  // namespace math

}  // namespace dfdx
