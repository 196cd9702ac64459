// SPDX-License-Identifier: BSL-1.0
// Angles on vectors of f64: sin, cos, tan, atan, atan2, right to the last places. Arguments are reduced by pi/2 in four
// parts (Cody and Waite 1980); the few beyond 10^6 go through the platform's functions one by one.
#pragma once

#include <cmath>
#include <utility>

#include <dfdx/kernels/exponential.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// one_by_one - f of the numbers in vectors, each on its own.
template <class F, class X, class... Y>
inline X one_by_one(F const& f, X const& x, Y const&... y) {
  using E = typename X::value_type;
  constexpr std::size_t n = X::size;
  alignas(64) E operands[1 + sizeof...(Y)][n];
  alignas(64) E r[n];
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    x.store_aligned(operands[0]);
    (y.store_aligned(operands[I + 1]), ...);
    leave_vectors();
    for (std::size_t i = 0; i < n; ++i) r[i] = f(operands[0][i], operands[I + 1][i]...);
  }(std::index_sequence_for<Y...>{});
  return X::load_aligned(r);
}

/// Angle - x less `turns` quarter turns: between -pi/4 and pi/4, as a pair.
template <class X>
struct Angle {
  Pair<X> rest;
  X turns;
};

inline constexpr double largest_angle = 1e6;

template <class X>
DFDX_INLINE constexpr Angle<X> reduced_angle(X const& x) {
  X const n = nearest_integer(x, 0.63661977236758134308);
  // Products of n with the first three parts are exact. What a subtraction loses is what is left when its result is
  // taken away from x too: where the product is the larger one, both have so few places that nothing is lost.
  X const upper(0x1.921fb54400000p+0), middle(0x1.0b4611a600000p-34), lower(0x1.3198a2e000000p-69);
  X const a = vectors::fnma(n, upper, x), b = vectors::fnma(n, middle, a), c = vectors::fnma(n, lower, b);
  X const lost = vectors::fnma(n, middle, a - b) + vectors::fnma(n, lower, b - c);
  X const low = vectors::fnma(n, X(8.478427660368899644e-32), lost), high = c + low;
  return {{high, (c - high) + low}, n};
}

/// sine, cosine - of a reduced angle, as pairs. `divides`: the cosine is to be right to more places than a number has.
template <class X>
DFDX_INLINE constexpr Pair<X> sine(Pair<X> const& r) {
  X const z = r.high * r.high, cube = z * r.high;
  X const p = polynomial(z, -7.5854864852359381405e-13, 1.6058510875319194913e-10, -2.505210610025598923e-8,
                         2.7557319218954762264e-6, -0.00019841269841264565895, 0.0083333333333333312588,
                         -0.16666666666666666665);
  X const rest = vectors::fma(cube, p, r.low - X(0.5) * z * r.low), high = r.high + rest;
  return {high, (r.high - high) + rest};
}
template <bool divides, class X>
DFDX_INLINE constexpr Pair<X> cosine(Pair<X> const& r) {
  X const z = r.high * r.high, half = X(0.5) * z, one(1.0), w = one - half;
  X const p = polynomial(z, -1.1380868171449913386e-11, 2.0876121534608455566e-9, -2.7557317151858864553e-7,
                         0.000024801587298532259045, -0.0013888888888887241376, 0.041666666666666665227);
  X small = vectors::fnma(r.high, r.low, z * z * p);
  if constexpr (divides)
    small = vectors::fnma(X(0.5), exact_product(r.high, r.high).low, small);  // lost by z
  X const rest = ((one - w) - half) + small, high = w + rest;
  return {high, (w - high) + rest};
}

// sin(x + turns pi / 2)
template <class X>
DFDX_INLINE constexpr X turned_sine(X const& x, double turns) {
  auto const a = reduced_angle(x);
  // The last bit of the turns says whether it is the cosine, the one before it is the sign.
  auto const bits =
      vectors::bitwise_cast<std::int64_t>(a.turns + X(6755399441055744.0 + turns));  // 1.5 * 2^52
  auto const swap = vectors::bitwise_cast<double>(bits << 63 >> 1) != X(0.0);
  X const r = select(swap, cosine<false>(a.rest).high, sine(a.rest).high);
  return r * vectors::copysign(X(1.0), vectors::bitwise_cast<double>(bits >> 1 << 63));
}

}  // namespace detail

template <class X>
DFDX_INLINE constexpr X lane_sin(X const& x) {
  if (vectors::any(vectors::abs(x) > X(detail::largest_angle))) [[unlikely]]
    return detail::one_by_one([](double v) { return std::sin(v); }, x);
  return select(x == X(0.0), x, detail::turned_sine(x, 0));
}
template <class X>
DFDX_INLINE constexpr X lane_cos(X const& x) {
  if (vectors::any(vectors::abs(x) > X(detail::largest_angle))) [[unlikely]]
    return detail::one_by_one([](double v) { return std::cos(v); }, x);
  return detail::turned_sine(x, 1);
}
template <class X>
DFDX_INLINE constexpr X lane_tan(X const& x) {
  if (vectors::any(vectors::abs(x) > X(detail::largest_angle))) [[unlikely]]
    return detail::one_by_one([](double v) { return std::tan(v); }, x);
  auto const a = detail::reduced_angle(x);
  X const half = a.turns * X(0.5);
  auto const swap = vectors::floor(half) != half;  // tan(r + pi/2) = -cos r / sin r
  auto const s = detail::sine(a.rest), c = detail::cosine<true>(a.rest);
  X const top = select(swap, -c.high, s.high), top_low = select(swap, -c.low, s.low);
  X const below = select(swap, s.high, c.high), below_low = select(swap, s.low, c.low);
  X const q = top / below;
  auto const back = detail::exact_product(q, below);
  X const r = q + (((top - back.high) - back.low) + (top_low - q * below_low)) / below;
  return select(x == X(0.0), x, r);
}

namespace detail {

/// arc - atan of |x| for x >= 0, as base + rest: atan c + atan((x - c) / (1 + c x)) with c the nearest of 0, 1/2, 1,
/// 3/2 and infinity (as in Sun's fdlibm).
template <class X>
DFDX_INLINE constexpr Pair<X> arc(X const& x) {
  X const zero(0.0), one(1.0);
  auto const c0 = x < X(0.4375), c1 = x < X(0.6875), c2 = x < X(1.1875), c3 = x < X(2.4375);
  X const c = select(c1, X(0.5), select(c2, one, X(1.5)));
  X const top = select(c0, x, select(c3, x - c, -one));
  X const below = select(c0, one, select(c3, one + c * x, x)), t = top / below;
  X const base = select(
      c0, zero,
      select(c1, X(0.4636476090008061),
             select(c2, X(0.7853981633974483), select(c3, X(0.982793723247329), X(1.5707963267948966)))));
  X const base_low =
      select(c0, zero,
             select(c1, X(2.2698777452961686568e-17),
                    select(c2, X(3.0616169978683829431e-17),
                           select(c3, X(1.3903311031230997273e-17), X(6.1232339957367658861e-17)))));
  X const z = t * t;
  X const p = polynomial(z, 0.014766421553794669902, -0.033121323310643645288, 0.044919637149159995666,
                         -0.052166074167837079208, 0.058769354965303498671, -0.066662408593758074114,
                         0.076922854887649603413, -0.090909083530496683837, 0.11111111096587765245,
                         -0.14285714285566150161, 0.19999999999999406711, -0.33333333333333332939);
  X const rest = t * z * p + base_low, sum = base + t;
  X const low = (base - sum) + t + rest;  // |base| >= |t|, or base is 0
  X const high = sum + low;
  return {high, (sum - high) + low};
}

}  // namespace detail

template <class X>
DFDX_INLINE constexpr X lane_atan(X const& x) {
  return vectors::copysign(detail::arc(vectors::abs(x)).high, x);
}

template <class X>
DFDX_INLINE constexpr X lane_atan2(X const& y, X const& x) {
  X const a = vectors::abs(y), b = vectors::abs(x), zero(0.0), one(1.0);
  // Equal ones, infinite ones among them, have the quotient 1; of zeros it is 0.
  X const q = select(a == zero && b == zero, zero, select(a == b, one, a / b));
  auto const r = detail::arc(q);
  auto const left = vectors::copysign(one, x) < zero;
  X const turned = X(3.1415926535897931) - (r.high - (X(1.2246467991473531772e-16) - r.low));
  return select(x == x && y == y, vectors::copysign(select(left, turned, r.high), y), x + y);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
