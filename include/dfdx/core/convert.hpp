// SPDX-License-Identifier: BSL-1.0
// What a number is in another type. C++ leaves it undefined which integer a real number becomes that is none of its
// type, and processors differ: so this is the one place that says it.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <dfdx/core/dtype.hpp>

namespace dfdx::math {

/// makes_integers - whether a cast from From to To is one of real numbers to integers.
template <class To, class From>
inline constexpr bool makes_integers =
    std::is_integral_v<To> && !std::is_same_v<To, bool> && std::is_floating_point_v<compute_t<From>>;

/// wide_t - the integer of 32 or 64 bits by way of which real numbers become integers of type T.
template <class T>
using wide_t = std::conditional_t<(sizeof(T) > 4), std::int64_t, std::int32_t>;

/// wide_end - the least power of two, as a real number of type F, that wide_t<T> does not hold.
template <class T, class F>
inline constexpr F wide_end = sizeof(wide_t<T>) == 8 ? F(0x1p63) : F(0x1p31);

/// integer_without_branch - as integer_of, from the parts of the number: its digits, moved to their place. A number
/// without a digit there is 0; so are infinities and NaN, whose exponents are the largest. Compilers vectorise it.
template <class T, class F>
DFDX_INLINE constexpr T integer_without_branch(F x) {
  auto const bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  std::uint64_t const exponent = bits >> 52 & 0x7ff, up = exponent - 1075, down = 1075 - exponent;
  std::uint64_t const digits = (bits & 0xfffffffffffff) | 0x10000000000000;
  std::uint64_t const large = up < 64 ? digits << (up & 63) : 0,
                      small = down < 64 ? digits >> (down & 63) : 0;
  std::uint64_t const size = exponent >= 1075 ? large : small, sign = 0 - (bits >> 63);
  return static_cast<T>((size ^ sign) - sign);
}

/// integer_of - a real number as an integer of type T, of b bits: without its fraction, modulo 2^b, as integers of more
/// bits become those of fewer, and as sums of integers are computed (core/integers.hpp). NaN and infinities give 0.
template <class T, class F>
DFDX_INLINE constexpr T integer_of(F x) {
  constexpr F end = wide_end<T, F>;
  // Nearly all numbers are here, for which there is an instruction.
  if (x > -end && x < end) [[likely]]
    return static_cast<T>(static_cast<wide_t<T>>(x));
  return integer_without_branch<T>(x);
}

/// computed_number - a number on its way to an element of type To, in the type that such are computed with: what is
/// stored of it is convert_number. For those of 16 bits that is a float, of a double the odd one: rounded once.
template <class To, class From>
DFDX_INLINE constexpr compute_t<To> computed_number(From const& x) {
  using X = compute_t<From>;
  if constexpr (std::is_same_v<To, bool>) return static_cast<X>(x) != X(0);
  else if constexpr (makes_integers<To, From>) return integer_of<To>(static_cast<X>(x));
  else if constexpr (std::is_same_v<To, compute_t<To>>) return static_cast<To>(static_cast<X>(x));
  else return dfdx::detail::to_wide_float(static_cast<X>(x));
}
/// convert_number - a number in another type: as an integer by the rule of integer_of, an integer among them modulo its
/// range; as a truth whether it is not zero, which NaN is not; as a real number rounded to the nearest.
template <class To, class From>
DFDX_INLINE constexpr To convert_number(From const& x) {
  return static_cast<To>(computed_number<To>(x));
}

/// held_by - the number that an element of dtype d is when x is written to it.
constexpr double held_by(DType d, double x) {
  return dispatch(d, [x](auto type) {
    using T = typename decltype(type)::type;
    return static_cast<double>(static_cast<compute_t<T>>(convert_number<T>(x)));
  });
}
/// computed_as - the same for a value that stays in a register: those of 16 bits are rounded when they are written, or
/// by a cast.
constexpr double computed_as(DType d, double x) { return is_half(d) ? x : held_by(d, x); }

}  // namespace dfdx::math
