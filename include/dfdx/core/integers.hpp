// SPDX-License-Identifier: BSL-1.0
// Sums, differences and products of integers modulo their range, as vectors of them are computed: C++ leaves the
// overflow of signed numbers undefined.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <dfdx/core/config.hpp>

namespace dfdx::math {

/// wraps - whether X is an integer whose overflow C++ leaves undefined; smaller ones are computed as int.
template <class X>
inline constexpr bool wraps = std::is_integral_v<X> && std::is_signed_v<X> && sizeof(X) >= sizeof(int);

/// plus, minus, times - x + y, x - y, x y; of signed integers modulo 2^32 or 2^64.
template <class X>
DFDX_INLINE constexpr auto plus(X const& x, X const& y) {
  if constexpr (wraps<X>)
    return static_cast<X>(static_cast<std::make_unsigned_t<X>>(x) + static_cast<std::make_unsigned_t<X>>(y));
  else return x + y;
}
template <class X>
DFDX_INLINE constexpr auto minus(X const& x, X const& y) {
  if constexpr (wraps<X>)
    return static_cast<X>(static_cast<std::make_unsigned_t<X>>(x) - static_cast<std::make_unsigned_t<X>>(y));
  else return x - y;
}
template <class X>
DFDX_INLINE constexpr auto times(X const& x, X const& y) {
  if constexpr (wraps<X>)
    return static_cast<X>(static_cast<std::make_unsigned_t<X>>(x) * static_cast<std::make_unsigned_t<X>>(y));
  else return x * y;
}
/// negated - -x, likewise.
template <class X>
DFDX_INLINE constexpr auto negated(X const& x) {
  if constexpr (wraps<X>) return minus(X(0), x);
  else return -x;
}

/// integer_of - a number as an integer of type T: without its fraction, modulo the range of T. What 64 bits do not hold
/// becomes the least or the greatest of them first, NaN 0.
template <class T>
constexpr T integer_of(double x) {
  constexpr double limit = 0x1p63;
  if (!(x == x)) return T(0);
  if (x >= limit) return static_cast<T>(std::numeric_limits<std::int64_t>::max());
  if (x < -limit) return static_cast<T>(std::numeric_limits<std::int64_t>::min());
  return static_cast<T>(static_cast<std::int64_t>(x));
}

}  // namespace dfdx::math
