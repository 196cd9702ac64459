// SPDX-License-Identifier: BSL-1.0
// What makes normal numbers of uniform ones (Box and Muller 1958) on vectors of f64, faster than the elementary
// functions and less exact: kernels/random.hpp knows how far.
#pragma once

#include <type_traits>

#include <dfdx/core/constant_math.hpp>
#include <dfdx/kernels/exponential.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// minus_two_log - -2 ln u for normal u in (0, 1], within 1e-13: ln u = e ln 2 + 2 artanh((m - 1) / (m + 1))
/// with u = m 2^e and m between sqrt(1/2) and sqrt(2), by the first terms of the series.
template <class X>
DFDX_INLINE constexpr X minus_two_log(X const& u) {
  auto const bits = vectors::bitwise_cast<std::int64_t>(u);
  using I = std::remove_const_t<decltype(bits)>;
  I const root(0x3fe6a09e667f3bcdll), exponents(-(1ll << 52));
  I const exponent = (bits - root) & exponents;
  X const m = vectors::bitwise_cast<double>(bits - exponent);
  // As a whole number of 2^52, which the lowest places of a number near 2^52 + 2^51 show.
  I const magic(0x4338000000000000ll);
  X const e = vectors::bitwise_cast<double>((exponent >> 52) + magic) - X(0x1.8p52);
  X const s = (m - X(1.0)) / (m + X(1.0));
  X const p = polynomial(s * s, 4.0 / 15, 4.0 / 13, 4.0 / 11, 4.0 / 9, 4.0 / 7, 4.0 / 5, 4.0 / 3, 4.0);
  return vectors::fnma(e, X(2 * 0.693147180559945309), -(s * p));
}

// sin(2 pi t) for |t| <= 1/4, within 1e-13, by its series.
template <class X>
DFDX_INLINE constexpr X quarter_sine(X const& t) {
  X const x = t * X(2 * constant_math::pi);
  X const p = polynomial(x * x, 1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800,
                         -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0);
  return x * p;
}
/// turn_cosine, turn_sine - of 2 pi v for v in [0, 1), folded to a quarter turn.
template <class X>
DFDX_INLINE constexpr X turn_cosine(X const& v) {
  return quarter_sine(vectors::abs(v - X(0.5)) - X(0.25));
}
template <class X>
DFDX_INLINE constexpr X turn_sine(X const& v) {
  X const w = v - X(0.5), t = vectors::abs(w) - X(0.25);
  return -vectors::copysign(quarter_sine(X(0.25) - vectors::abs(t)), w);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
