// SPDX-License-Identifier: BSL-1.0
// pow on vectors: of doubles by a logarithm of twice the digits, of floats by one of doubles.
#pragma once

#include <dfdx/kernels/exponential.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// Split - x = m 2^e with m between sqrt(1/2) and sqrt(2), of positive normal x.
template <class X>
struct Split {
  X m, e;
  explicit DFDX_INLINE constexpr Split(X const& x) : m(x), e(x) {
    static_assert(!is_single<X>);
    auto const bits = vectors::bitwise_cast<std::int64_t>(x);
    using I = std::remove_const_t<decltype(bits)>;
    auto const exponent = (bits - I(0x3fe6a09e667f3bcdll)) & I(-(1ll << 52));
    m = vectors::bitwise_cast<double>(bits - exponent);
    e = vectors::batch_cast<double>(exponent >> 52);
  }
};

/// short_logarithm, short_exp - ln x of positive normal x, and e^x of |x| up to 150, to 11 places, for results in f32.
template <class X>
DFDX_INLINE constexpr X short_logarithm(X const& x) {
  Split<X> const part(x);
  X const s = (part.m - X(1.0)) / (part.m + X(1.0)), z = s * s;
  X const p = polynomial(z, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3);
  return vectors::fma(part.e, X(0.69314718055994530942), vectors::fma(s * z, p, s + s));
}
template <class X>
DFDX_INLINE constexpr X short_exp(X const& x) {
  X const n = nearest_integer(x, by_ln_2);
  X const r = vectors::fnma(n, X(0.69314718055994530942), x);
  return power_of_two(n) *
         polynomial(r, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
}

/// logarithm - ln x as a pair, for positive normal x scaled by 2^-shift: 2 artanh((m - 1) / (m + 1)) + e ln 2, whose
/// first two terms are carried with twice the digits.
template <class X>
DFDX_INLINE constexpr Pair<X> logarithm(X const& x, X const& shift) {
  Split<X> const part(x);
  X const &m = part.m, one(1.0), e = part.e + shift;
  X const f = m - one, g = m + one, g_low = m - (g - one), s = f / g;
  Pair<X> const back = exact_product(s, g);
  X const s_low = ((f - back.high) - back.low - s * g_low) / g;
  Pair<X> z = exact_product(s, s);
  z.low += X(2.0) * s * s_low;
  X const p = polynomial(z.high, 0.12925663575110274472, 0.13284977969619905186, 0.15385604411768514301,
                         0.18181807839015792279, 0.22222222273617622395, 0.28571428571332932483,
                         0.40000000000000029023);
  Pair<X> q = exact_sum(X(2.0 / 3), z.high * p);
  q.low += X(3.7007434154171884681e-17) + z.low * p;
  Pair<X> t = exact_product(z.high, q.high);
  t.low += z.high * q.low + z.low * q.high;
  Pair<X> u = exact_product(s, t.high);
  u.low += s * t.low + s_low * t.high;
  // e ln 2 (its upper part is exact) + 2 s + u
  Pair<X> const a = exact_sum(e * X(0x1.62e42fefa3800p-1), X(2.0) * s), b = exact_sum(a.high, u.high);
  X const low = ((a.low + b.low) + (u.low + X(2.0) * s_low)) + e * X(5.4979230187083711747e-14);
  X const high = b.high + low;
  return {high, (b.high - high) + low};
}

}  // namespace detail

/// pow - special values are those of C99 (F.9.4.4). `few`: of floats, for a result that is rounded to one.
template <bool few = false, class X>
DFDX_INLINE constexpr X lane_pow(X const& x, X const& y) {
  static_assert(!detail::is_single<X>);
  using Limits = std::numeric_limits<double>;
  X const zero(0.0), one(1.0), half = y * X(0.5), magnitude = vectors::abs(x), infinity(Limits::infinity());
  auto const integer = vectors::floor(y) == y;  // infinite y are even integers
  auto const odd = integer && vectors::floor(half) != half;
  auto const limit = magnitude == zero || magnitude == infinity;
  auto const times_y = [&](X const& log) DFDX_INLINE_LAMBDA {
    return select(magnitude == zero, -infinity, select(limit, infinity, log)) * y;
  };
  X power = one;
  if constexpr (few) {
    power = detail::short_exp(detail::bounded(times_y(detail::short_logarithm(magnitude)), -150, 150));
  } else {
    auto const subnormal = magnitude < X(Limits::min());
    X const in = select(subnormal, magnitude * X(0x1p54), magnitude);
    auto const log = detail::logarithm(in, select(subnormal, X(-54.0), zero));
    X const rough = times_y(log.high);
    auto const product = detail::exact_product(log.high, y);
    // Far outside of the range the tail does not matter, and may be no number.
    auto const within = vectors::abs(rough) < X(800.0);
    X const tail = select(within, product.low + log.low * y, zero);
    auto const p = detail::natural_power(detail::bounded(rough, -746, 711), tail);
    power = detail::scaled(p.rest + one, p.n);
  }
  // Where the product may be 0 * infinity: anything^0, 1^anything (NaN too), (-1)^infinity; (-1)^n is 1 but
  // for its sign.
  auto const is_one = y == zero || x == one || (magnitude == one && y == y);
  power = select(is_one, one, select(x == x && y == y, power, x + y));
  auto const invalid = x < zero && !integer && magnitude != infinity;
  return select(invalid, X(Limits::quiet_NaN()), select(odd, vectors::copysign(power, x), power));
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
