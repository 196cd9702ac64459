// SPDX-License-Identifier: BSL-1.0
// Exponentials on vectors: exp, exp2, expm1, erf, erfc, right to the last places over all that the type can
// hold, subnormal results included. Polynomials are Chebyshev fits; arguments are reduced in two parts (Cody and
// Waite, Software Manual for the Elementary Functions, 1980).
#pragma once

#include <limits>

#include <dfdx/kernels/simd/erf_table.hpp>
#include <dfdx/kernels/simd/exp_table.hpp>
#include <dfdx/kernels/vectors.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

template <class X>
inline constexpr bool is_single = sizeof(typename X::value_type) == 4;

/// polynomial - by Horner's rule; the coefficient of the highest power comes first.
template <class X, class... C>
DFDX_INLINE constexpr X polynomial(X const& x, double first, C... rest) {
  X r(static_cast<typename X::value_type>(first));
  ((r = vectors::fma(r, x, X(static_cast<typename X::value_type>(rest)))), ...);
  return r;
}

/// paired_polynomial - the same, by pairs of coefficients (Estrin 1960), z being x^2: half as long to wait for. Of an
/// odd number of coefficients the highest is given as a vector.
template <class X, class... C>
DFDX_INLINE constexpr X paired_polynomial(X const& x, X const& z, X const& high, double first, double second,
                                          C... rest) {
  X const sum = vectors::fma(high, z, polynomial(x, first, second));
  if constexpr (sizeof...(C) == 0) return sum;
  else return paired_polynomial(x, z, sum, rest...);
}
template <class X, class... C>
DFDX_INLINE constexpr X paired_polynomial(X const& x, X const& z, double first, double second, C... rest) {
  return paired_polynomial(x, z, polynomial(x, first, second), rest...);
}

/// Pair - a number as the sum of two, of which the second is below the rounding of the first.
template <class X>
struct Pair {
  X high, low;
};

template <class X>
DFDX_INLINE constexpr Pair<X> exact_sum(X const& a, X const& b) {
  X const s = a + b, of_b = s - a;
  return {s, (a - (s - of_b)) + (b - of_b)};
}
/// exact_product - a b without rounding (Dekker 1971 where there is no fused multiply-add).
template <class X>
DFDX_INLINE constexpr Pair<X> exact_product(X const& a, X const& b) {
  X const p = a * b;
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) || defined(DFDX_RVV)
  return {p, vectors::fms(a, b, p)};
#else
  X const splitter(static_cast<typename X::value_type>(is_single<X> ? 4097 : 134217729));
  X const ca = splitter * a, a1 = ca - (ca - a), a2 = a - a1;
  X const cb = splitter * b, b1 = cb - (cb - b), b2 = b - b1;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
#endif
}

/// nearest_integer - to x times a number, for results below 2^22 (of double: 2^51): beside a number whose last place is
/// one there is room for no fraction. Half as long to wait for as the instruction that rounds.
template <class X>
DFDX_INLINE constexpr X nearest_integer(X const& x, double times) {
  using E = typename X::value_type;
  X const shift(E(is_single<X> ? 12582912.0 : 6755399441055744.0));  // 1.5 * 2^23, 1.5 * 2^52
  return vectors::fma(x, X(E(times)), shift) - shift;
}

/// power_of_two - 2^n for integral n in the range of normal exponents.
template <class X>
DFDX_INLINE constexpr X power_of_two(X const& n) {
  if constexpr (is_single<X>) {
    auto const bits = vectors::bitwise_cast<std::int32_t>(n + X(12582912.0f + 127));  // 1.5 * 2^23
    return vectors::bitwise_cast<float>(bits << 23);
  } else {
    auto const bits = vectors::bitwise_cast<std::int64_t>(n + X(6755399441055744.0 + 1023));  // 1.5 * 2^52
    return vectors::bitwise_cast<double>(bits << 52);
  }
}

/// scaled - x 2^n, rounded once, for |n| up to twice the largest exponent.
template <class X>
DFDX_INLINE constexpr X scaled(X x, X n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(typename X::register_type) == 64) {
    if constexpr (is_single<X>) return X(_mm512_scalef_ps(x, n));
    else return X(_mm512_scalef_pd(x, n));
  }
#endif
  X const half = vectors::floor(n * X(typename X::value_type(0.5)));
  return x * power_of_two(half) * power_of_two(n - half);
}

/// bounded - x between two bounds; NaN stays NaN, for these return their second operand where one is.
template <class X>
DFDX_INLINE constexpr X bounded(X const& x, double low, double high) {
  X const l(static_cast<typename X::value_type>(low)), h(static_cast<typename X::value_type>(high));
  return vectors::max(l, vectors::min(h, x));
}

/// at_most, at_least - the same with one of them: all that is needed of a number whose sign is known.
template <class X>
DFDX_INLINE constexpr X at_most(X const& x, double high) {
  return vectors::min(X(static_cast<typename X::value_type>(high)), x);
}
template <class X>
DFDX_INLINE constexpr X at_least(X const& x, double low) {
  return vectors::max(X(static_cast<typename X::value_type>(low)), x);
}

/// Power - what exponentials are made of: (1 + rest) 2^n.
template <class X>
struct Power {
  X rest, n;
};

/// power_about - e^(x + low) for |x| up to the exponents' range, n being x / ln 2 rounded; `low` may be left out for
/// zero.
template <class X, class... Low>
DFDX_INLINE constexpr Power<X> power_about(X const& n, X const& x, Low const&... low) {
  if constexpr (is_single<X>) {
    X const r = (vectors::fnma(n, X(-2.12194440e-4f), vectors::fnma(n, X(0.693359375f), x)) + ... + low),
            z = r * r;
    X const p = paired_polynomial(r, z, X(0.00138637565227275f), 0.008367509129556916, 0.04166723877391903,
                                  0.16666533803490655, 0.5);
    return {vectors::fma(z, p, r), n};
  } else {
    X const exact = x - n * X(0x1.62e42fefa3800p-1);  // n times the upper bits of ln 2 is exact
    X const tail = ((n * X(5.4979230187083711747e-14)) - ... - low), r = exact - tail;
    X const lost = (exact - r) - tail, z = r * r;
    X const p =
        paired_polynomial(r, z, X(2.0915442297780115216e-9), 2.5106274733573294687e-8,
                          2.7557271810219799569e-7, 2.7557252833516909748e-6, 0.000024801587327007186731,
                          0.00019841269876864354929, 0.0013888888888883326674, 0.0083333333333255446996,
                          0.041666666666666670074, 0.16666666666666671438, 0.5);
    return {r + vectors::fma(z, p, lost), n};
  }
}

inline constexpr double by_ln_2 = 1.4426950408889634;

/// natural_power - e^(x + low).
template <class X, class... Low>
DFDX_INLINE constexpr Power<X> natural_power(X const& x, Low const&... low) {
  return power_about(nearest_integer(x, by_ln_2), x, low...);
}

/// Where exp is 0 and infinity for certain.
template <class X>
inline constexpr double least_exponent = is_single<X> ? -104 : -746;
template <class X>
inline constexpr double largest_exponent = is_single<X> ? 89 : 710;

}  // namespace detail

template <class X>
DFDX_INLINE constexpr X lane_exp(X const& x) {
  using E = typename X::value_type;
  X const in = detail::bounded(x, detail::least_exponent<X>, detail::largest_exponent<X>);
#if defined(__AVX512F__)
  if constexpr (detail::holds_table<X>) return detail::table_exp(in);
#endif
  auto const p = detail::natural_power(in);
  return detail::scaled(p.rest + X(E(1)), p.n);
}

/// e^x / 2, which is finite where sinh and cosh are.
template <class X>
DFDX_INLINE constexpr X lane_half_exp(X const& x) {
  using E = typename X::value_type;
  X const in = detail::bounded(x, detail::least_exponent<X>, detail::largest_exponent<X> + 1);
  auto const p = detail::natural_power(in);
  return detail::scaled(p.rest + X(E(1)), p.n - X(E(1)));
}

template <class X>
DFDX_INLINE constexpr X lane_cosh(X const& x) {
  X const h = lane_half_exp(vectors::abs(x));
  return h + X(typename X::value_type(0.25)) / h;
}
/// sinh - below 1 by its series.
template <class X>
DFDX_INLINE constexpr X lane_sinh(X const& x) {
  using E = typename X::value_type;
  X const a = vectors::abs(x), h = lane_half_exp(a), z = x * x;
  X const p =
      detail::polynomial(z, 1.0 / 121645100408832000, 1.0 / 355687428096000, 1.0 / 1307674368000,
                         1.0 / 6227020800, 1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6);
  return select(a < X(E(1)), vectors::fma(x * z, p, x), vectors::copysign(h - X(E(0.25)) / h, x));
}

template <class X>
DFDX_INLINE constexpr X lane_expm1(X const& x) {
  using E = typename X::value_type;
  X const in = detail::bounded(x, -50, detail::largest_exponent<X>);
  auto const p = detail::natural_power(in);
  // (1 + rest) 2^n - 1 = (rest + (1 - 2^-n)) 2^n
  X const one(E(1)), shift = one - detail::power_of_two(-vectors::min(p.n, X(E(64))));
  return select(x == X(E(0)), x, detail::scaled(p.rest + shift, p.n));
}

namespace detail {

/// tanh of numbers from 0 to 0.65, by its odd polynomial.
template <class X>
DFDX_INLINE constexpr X small_tanh(X const& x) {
  X const z = x * x;
  X p = z;
  if constexpr (is_single<X>)
    p = polynomial(z, 0.0022149027425040584333, -0.0082724567325896453956, 0.021746187089059183109,
                   -0.053956349396767485921, 0.13333290745796623432, -0.33333333084020226669);
  else
    p = polynomial(z, 6.0522770710890279976e-6, -0.000030275917479679180639, 0.000091718648325602920247,
                   -0.00023714752438838480417, 0.000589517928880101832, -0.0014557459487972809956,
                   0.0035921178555848596479, -0.0088632347831153094373, 0.021869488503715004426,
                   -0.053968253967523801938, 0.13333333333332688075, -0.33333333333333332387);
  return vectors::fma(x * z, p, x);
}
/// tanh of numbers from 0.65 on: 1 - 2 / (1 + e^(2 x)).
template <class X>
DFDX_INLINE constexpr X large_tanh(X const& x) {
  using E = typename X::value_type;
  X const one(E(1)), two(E(2)), in = at_most(x, 25);
  auto const power = power_about(nearest_integer(in, 2 * by_ln_2), in + in);
  return one - two / (one + (power.rest + one) * power_of_two(power.n));
}

}  // namespace detail

template <class X>
DFDX_INLINE constexpr X lane_tanh(X const& x) {
  X const a = vectors::abs(x);
  auto const small = a < X(static_cast<typename X::value_type>(0.65));
  return vectors::copysign(select(small, detail::small_tanh(a), detail::large_tanh(a)), x);
}

/// sigmoid by the exponential that is at most 1, with what its roundings lost put back.
template <class X>
DFDX_INLINE constexpr X lane_sigmoid(X const& x) {
  using E = typename X::value_type;
  X const one(E(1)), zero(E(0)), in = detail::at_least(-vectors::abs(x), detail::least_exponent<X>);
  auto const p = detail::natural_power(in);
  X const e1 = one + p.rest, e = detail::scaled(e1, p.n), e_low = detail::scaled(p.rest - (e1 - one), p.n);
  X const below = one + e, below_low = (e - (below - one)) + e_low;
  auto const left = x < zero;
  X const q = select(left, e, one) / below;
  return q + (select(left, e_low, zero) - q * below_low) * select(left, one - q, q);
}

template <class X>
DFDX_INLINE constexpr X lane_exp2(X const& x) {
  using E = typename X::value_type;
  constexpr double limit = detail::is_single<X> ? 152 : 1076;
  X const in = detail::bounded(x, -limit, limit), n = detail::nearest_integer(in, 1), r = in - n;
  X const one(E(1)), ln2(E(0.69314718055994530942));
  if constexpr (detail::is_single<X>) {
    X const p =
        detail::polynomial(r, 0.000015291717629198683425, 0.0001545416208791722114, 0.0013333520851226754851,
                           0.0096180806652697813272, 0.055504108717664897372, 0.24022650764548662216);
    return detail::scaled(vectors::fma(r, vectors::fma(r, p, ln2), one), n);
  } else {
    X const p =
        detail::polynomial(r, 2.5726018970817549722e-11, 4.455150180376138403e-10, 7.0548994824676859185e-9,
                           1.0178061488425538194e-7, 1.3215486803689255311e-6, 0.000015252733831422687823,
                           0.00015403530393375441157, 0.0013333558146415981399, 0.0096181291076284779486,
                           0.055504108664821595844, 0.24022650695910071233);
    return detail::scaled(vectors::fma(r, vectors::fma(r, p, ln2), one), n);
  }
}

template <class X>
DFDX_INLINE constexpr X lane_erfc(X const& x);

namespace detail {

/// Error function below 0.84, by its series.
template <class X>
DFDX_INLINE constexpr X small_erf(X const& x) {
  X const z = x * x;
  X const p = polynomial(z, 1.068768619146984616e-8, -1.5701227105190676279e-7, 1.6399720736388882054e-6,
                         -0.000014921969577624702136, 0.00012055192652208320313, -0.00085483235756379701303,
                         0.005223977572514906989, -0.026866170640384130049, 0.11283791670933264183,
                         -0.37612638903183359418, 0.1283791670955125622);
  return vectors::fma(x, p, x);
}

/// erfc of numbers from 0.6 on: e^(-x^2) (1 + 2 x)^-1 times a polynomial in (x - k) / (x + k) (Shepherd and
/// Laframboise, Mathematics of Computation 36, 1981).
template <class X>
DFDX_INLINE constexpr X tail_erfc(X const& from) {
  static_assert(!is_single<X>);
  X const x = bounded(from, 0.6, 28), k(3.75), one(1.0);
  X const t = (x - k) / (x + k);
  X const p = polynomial(t, 2.4331908415893478713e-8, 1.3820687793126533952e-8, -2.3977972818538184473e-7,
                         -4.5983364709336843152e-8, 1.737297678985971694e-6, -9.8124781602757991138e-7,
                         -0.000011437371975815833911, 0.000022387500339364585769, 0.000051647053871590246172,
                         -0.00029015495800737451806, 0.00029371405807162218315, 0.0017556260009839918146,
                         -0.0097465796042883407009, 0.028362277403966741981, -0.058693398586523574384,
                         0.092304321161207180108, -0.10880393014185299608, 0.082276738490124324801,
                         0.0035854154854657239059, -0.1402405985855468095, 1.2375126308378275771);
  Pair<X> const square = exact_product(x, x);
  auto const e = natural_power(-square.high, -square.low);
  return scaled((e.rest + one) * p / vectors::fma(X(2.0), x, one), e.n);
}

}  // namespace detail

template <class X>
DFDX_INLINE constexpr X lane_erfc(X const& x) {
  X const a = vectors::abs(x), one(1.0), tail = detail::tail_erfc(a);
  return select(a < X(0.75), one - detail::small_erf(x), select(x < X(0.0), X(2.0) - tail, tail));
}

template <class X>
DFDX_INLINE constexpr X lane_erf(X const& x) {
  using E = typename X::value_type;
#if defined(__AVX512F__)
  if constexpr (detail::holds_table<X>) return detail::table_erf(x);
#endif
  X const a = vectors::abs(x), one(E(1));
  if constexpr (detail::is_single<X>) {
    X const b = detail::bounded(a, 0, 4), z = b * b;
    X const p = detail::polynomial(z, 0.000078758750626854883411, -0.00080168642871658695293,
                                   0.0051890874234339739861, -0.026854212010626412443, 0.11283594715160217732,
                                   -0.37612626666720331023, 0.12837916584835094603);
    // Above 1 by ln erfc, a smooth function.
    X const l = detail::polynomial(b, 1.6371514145936435649e-6, -0.000046058042689189779247,
                                   0.00059680562566077970634, -0.0047595962932662646444,
                                   0.026421136005663896682, -0.1100800829488202466, -0.6318260515591630143,
                                   -1.1302334348419940295, 0.00032013804967769883665);
    auto const e = detail::natural_power(l);
    X const large = one - detail::scaled(e.rest + one, e.n);
    return select(a < one, vectors::fma(x, p, x), vectors::copysign(large, x));
  } else {
    X const small = detail::small_erf(x), large = one - detail::tail_erfc(a);
    return select(a < X(0.75), small, vectors::copysign(large, x));
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
