// SPDX-License-Identifier: BSL-1.0
// Angles on vectors of f32, within 2 units in the last place, without going through f64: tan of moderate arguments,
// asin, atan, atan2. Polynomials are weighted least-squares fits whose largest error was made small (Lawson 1961).
#pragma once

#include <dfdx/kernels/exponential.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

inline constexpr float half_pi = 1.57079637050628662109f, half_pi_low = -4.37113900018624283e-8f;

/// short_arc - atan of numbers from 0 to 1.
template <class X>
DFDX_INLINE constexpr X short_arc(X const& t) {
  X const z = t * t;
  X const p =
      paired_polynomial(z, z * z, X(-0.001793622965417486f), 0.010914611470085343, -0.031177856710375332,
                        0.0579576046849478, -0.08403450990656172, 0.10952186005949234, -0.1426424172487787,
                        0.19998548288483337, -0.3333329908926227);
  return vectors::fma(t * z, p, t);
}

}  // namespace detail

template <class X>
DFDX_INLINE constexpr X single_atan(X const& x) {
  X const a = vectors::abs(x), one(1.0f);
  auto const large = a > one;
  X const r = detail::short_arc(select(large, one / a, a));
  X const turned = X(detail::half_pi) - (r - X(detail::half_pi_low));
  return vectors::copysign(select(large, turned, r), x);
}

template <class X>
DFDX_INLINE constexpr X single_atan2(X const& y, X const& x) {
  X const a = vectors::abs(y), b = vectors::abs(x), zero(0.0f), one(1.0f);
  auto const steep = a > b;
  // Equal ones, infinite ones among them, have the quotient 1; of zeros it is 0.
  X const q = select(a == b, one, select(steep, b, a) / select(steep, a, b));
  X const r = detail::short_arc(select(a == zero && b == zero, zero, q));
  X const pi_half(detail::half_pi), low(detail::half_pi_low);
  X const upper = select(steep, pi_half - (r - low), r);
  // In the left half it is pi less that: of what is steep pi/2 and the arc.
  X const left = select(steep, pi_half + (r + low), (pi_half + pi_half) - (r - (low + low)));
  X const turned = select(vectors::copysign(one, x) < zero, left, upper);
  return select(x == x && y == y, vectors::copysign(turned, y), x + y);
}

template <class X>
DFDX_INLINE constexpr X single_asin(X const& x) {
  X const a = vectors::abs(x), half(0.5f), one(1.0f);
  auto const large = a > half;
  // asin a = pi/2 - 2 asin sqrt((1 - a) / 2)
  X const z = select(large, (one - a) * half, a * a), t = select(large, vectors::sqrt(z), a);
  X const p = detail::polynomial(z, 0.04216630776051473, 0.024179515163568706, 0.0454703758404642,
                                 0.07495297644253571, 0.16666752481977487);
  X const rest = t * z * p;
  X const pi_half(detail::half_pi), low(detail::half_pi_low);
  X const less = pi_half - (t + t), lost = (pi_half - less) - (t + t);
  X const turned = less + ((lost + low) - (rest + rest));
  return vectors::copysign(select(large, turned, t + rest), x);
}

/// single_tan - for |x| up to 40 and somewhat more.
template <class X>
DFDX_INLINE constexpr X single_tan(X const& x) {
  X const n = detail::nearest_integer(x, 0.63661977236758134308);
  // pi/2 in three parts: products with the first two are exact, and what their difference loses goes into `low`.
  X const a = vectors::fnma(n, X(1.5703125f), x), second(4.837512969970703125e-4f);
  X const r = vectors::fnma(n, second, a);
  X const low = vectors::fnma(n, X(7.54978995489188216e-8f), vectors::fnma(n, second, a - r));
  X const z = r * r;
  X const p = detail::paired_polynomial(z, z * z, X(0.004387079449334962f), 6.819755910695031e-05,
                                        0.010852184365663313, 0.02127605603111585, 0.054061066775432744,
                                        0.13332653526778257, 0.3333335002972771);
  X const one(1.0f), cube = r * z, near = vectors::fma(cube, p, r);
  X const t = r + vectors::fma(cube, p, low * vectors::fma(near, near, one));
  X const half = n * X(0.5f);
  auto const swap = vectors::floor(half) != half;  // tan(r + pi/2) = -1 / tan r
  return select(x == X(0.0f), x, select(swap, -one / t, t));
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
