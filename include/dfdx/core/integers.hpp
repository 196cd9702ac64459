// SPDX-License-Identifier: BSL-1.0
// Sums, differences and products of integers modulo their range, as processors compute them: C++ leaves the overflow of
// signed numbers undefined. Real numbers become integers by the same rule (core/convert.hpp).
#pragma once

#include <type_traits>

#include <dfdx/core/config.hpp>

namespace dfdx::math {

/// wraps - whether X is an integer whose overflow C++ leaves undefined; smaller ones are computed as int.
template <class X>
inline constexpr bool wraps = std::is_integral_v<X> && std::is_signed_v<X> && sizeof(X) >= sizeof(int);

/// unsigned_lanes - a vector of such integers as one of unsigned integers, and back; for backends that compute some of
/// them one by one, as C++ does.
template <class X>
struct unsigned_lanes;
template <class X>
concept has_unsigned_lanes = requires(X const& x) { unsigned_lanes<X>::back(unsigned_lanes<X>::of(x)); };

/// plus, minus, times - x + y, x - y, x y; of signed integers modulo 2^32 or 2^64.
template <class X>
DFDX_INLINE constexpr auto plus(X const& x, X const& y) {
  if constexpr (wraps<X>)
    return static_cast<X>(static_cast<std::make_unsigned_t<X>>(x) + static_cast<std::make_unsigned_t<X>>(y));
  else if constexpr (has_unsigned_lanes<X>)
    return unsigned_lanes<X>::back(unsigned_lanes<X>::of(x) + unsigned_lanes<X>::of(y));
  else return x + y;
}
template <class X>
DFDX_INLINE constexpr auto minus(X const& x, X const& y) {
  if constexpr (wraps<X>)
    return static_cast<X>(static_cast<std::make_unsigned_t<X>>(x) - static_cast<std::make_unsigned_t<X>>(y));
  else if constexpr (has_unsigned_lanes<X>)
    return unsigned_lanes<X>::back(unsigned_lanes<X>::of(x) - unsigned_lanes<X>::of(y));
  else return x - y;
}
template <class X>
DFDX_INLINE constexpr auto times(X const& x, X const& y) {
  if constexpr (wraps<X>)
    return static_cast<X>(static_cast<std::make_unsigned_t<X>>(x) * static_cast<std::make_unsigned_t<X>>(y));
  else if constexpr (has_unsigned_lanes<X>)
    return unsigned_lanes<X>::back(unsigned_lanes<X>::of(x) * unsigned_lanes<X>::of(y));
  else return x * y;
}
/// negated - -x, likewise. Of lanes of real numbers a product: what xsimd has for AVX-512 is 0 - x, and 0 has a sign.
template <class X>
DFDX_INLINE constexpr auto negated(X const& x) {
  if constexpr (wraps<X> || has_unsigned_lanes<X>) return minus(X(0), x);
  else if constexpr (requires { requires std::is_floating_point_v<typename X::value_type>; })
    return x * X(typename X::value_type(-1));
  else return -x;
}

}  // namespace dfdx::math
