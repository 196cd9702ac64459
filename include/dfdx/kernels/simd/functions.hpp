// SPDX-License-Identifier: BSL-1.0
// The elementary functions on vectors (math::lane_functions): within 2 units in the last place, 4 for pow, erfc and the
// gamma functions, over all that the type can hold (tests/kernels/accuracy.cpp). Where xsimd's are that good they are
// taken. Rare ones in f32 are computed in f64.
#pragma once

#include <dfdx/core/special_math.hpp>
#include <dfdx/kernels/power.hpp>
#include <dfdx/kernels/rounded.hpp>
#include <dfdx/kernels/simd/in_double.hpp>
#include <dfdx/kernels/single_angles.hpp>
#include <dfdx/kernels/trigonometric.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// The logarithm `log` of xsimd, which takes subnormal doubles for zero; `unit` is log 2.
template <class Log, class X>
DFDX_INLINE X of_subnormals(Log const& log, X const& x, double unit) {
  if constexpr (is_single<X>) {
    return log(x);
  } else {
    // Rarely one of a lane is, and what is done for it took half as long as the logarithm. (Zero and negative numbers
    // come this way too, with the results they have.)
    auto const small = x < X(std::numeric_limits<double>::min());
    bool const any_small = xsimd::any(small);
    X scaled = x;
    if (any_small) [[unlikely]]
      scaled = select(small, x * X(0x1p54), x);
    X y = log(scaled);
    if (any_small) [[unlikely]]
      y = y - select(small, X(54 * unit), X(0.0));
    return y;
  }
}

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET

namespace dfdx::math {

template <class T, class A>
struct lane_functions<xsimd::batch<T, A>> {
  using X = xsimd::batch<T, A>;
  static constexpr bool single = sizeof(T) == 4;

  /// xsimd's sine and cosine of f32 lose places with more.
  static constexpr T few_turns = 40;

  template <class H>
  static DFDX_INLINE X rounded_to(X const& x) {
    return kernels::lane_rounded<H>(x);
  }
  static DFDX_INLINE X exp(X const& x) { return kernels::lane_exp(x); }
  static DFDX_INLINE X expm1(X const& x) { return kernels::lane_expm1(x); }
  static DFDX_INLINE X exp2(X const& x) { return kernels::lane_exp2(x); }
  static DFDX_INLINE X sigmoid(X const& x) { return kernels::lane_sigmoid(x); }
  static DFDX_INLINE X log(X const& x) {
    return kernels::detail::of_subnormals([](X const& v) { return xsimd::log(v); }, x, 0.69314718055994531);
  }
  static DFDX_INLINE X log2(X const& x) {
    return kernels::detail::of_subnormals([](X const& v) { return xsimd::log2(v); }, x, 1);
  }
  static DFDX_INLINE X log10(X const& x) {
    return kernels::detail::of_subnormals([](X const& v) { return xsimd::log10(v); }, x, 0.30102999566398120);
  }
  static DFDX_INLINE X log1p(X const& x) { return select(x == X(T(0)), x, xsimd::log1p(x)); }
  /// ln(1 + e^(x + low)) for x <= 0; what rounding takes from the exponential is put back.
  static DFDX_INLINE X log1p_exp(X const& x, X const& low) {
    X const one(T(1)), in = kernels::detail::bounded(x, kernels::detail::least_exponent<X>, 0);
    auto const p = kernels::detail::natural_power(in, kernels::detail::bounded(low, -1, 1));
    X const e1 = one + p.rest, e = kernels::detail::scaled(e1, p.n);
    return log1p(e) + kernels::detail::scaled(p.rest - (e1 - one), p.n) / (one + e);
  }
  static DFDX_INLINE X cbrt(X const& x) {
    if constexpr (single) {
      return xsimd::cbrt(x);
    } else {
      auto const subnormal = xsimd::abs(x) < X(std::numeric_limits<double>::min());
      X const y = xsimd::cbrt(select(subnormal, x * X(0x1p54), x));
      return select(subnormal, y * X(0x1p-18), y);
    }
  }
  static DFDX_INLINE X sin(X const& x) {
    if constexpr (single)
      if (xsimd::all(xsimd::abs(x) <= X(few_turns))) [[likely]]
        return xsimd::sin(x);
    return wide([](auto const& v) { return kernels::lane_sin(v); }, x);
  }
  static DFDX_INLINE X cos(X const& x) {
    if constexpr (single)
      if (xsimd::all(xsimd::abs(x) <= X(few_turns))) [[likely]]
        return xsimd::cos(x);
    return wide([](auto const& v) { return kernels::lane_cos(v); }, x);
  }
  static DFDX_INLINE X tan(X const& x) {
    if constexpr (single)
      if (xsimd::all(xsimd::abs(x) <= X(few_turns))) [[likely]]
        return kernels::single_tan(x);
    return wide([](auto const& v) { return kernels::lane_tan(v); }, x);
  }
  static DFDX_INLINE X asin(X const& x) {
    if constexpr (single) return kernels::single_asin(x);
    else return xsimd::asin(x);
  }
  static DFDX_INLINE X acos(X const& x) { return xsimd::acos(x); }
  static DFDX_INLINE X atan(X const& x) {
    if constexpr (single) return kernels::single_atan(x);
    else return kernels::lane_atan(x);
  }
  static DFDX_INLINE X sinh(X const& x) { return kernels::lane_sinh(x); }
  static DFDX_INLINE X cosh(X const& x) { return kernels::lane_cosh(x); }
  static DFDX_INLINE X tanh(X const& x) {
    X const a = xsimd::abs(x);
    if (xsimd::all(a < X(T(0.65)))) return xsimd::copysign(kernels::detail::small_tanh(a), x);
    return kernels::lane_tanh(x);
  }
  static DFDX_INLINE X asinh(X const& x) {
    return wide([](auto const& v) { return xsimd::asinh(v); }, x);
  }
  static DFDX_INLINE X acosh(X const& x) {
    return select(x < X(T(1)), X(std::numeric_limits<T>::quiet_NaN()), xsimd::acosh(x));
  }
  static DFDX_INLINE X atanh(X const& x) { return xsimd::atanh(x); }
  static DFDX_INLINE X erf(X const& x) { return kernels::lane_erf(x); }
  static DFDX_INLINE X erfc(X const& x) {
    return wide([](auto const& v) { return kernels::lane_erfc(v); }, x);
  }
  // The sign is lost where the processor has no instruction to round.
  static DFDX_INLINE X floor(X const& x) { return xsimd::copysign(xsimd::floor(x), x); }
  static DFDX_INLINE X ceil(X const& x) { return xsimd::copysign(xsimd::ceil(x), x); }
  static DFDX_INLINE X trunc(X const& x) { return xsimd::copysign(xsimd::trunc(x), x); }
  static DFDX_INLINE X round(X const& x) { return xsimd::copysign(xsimd::nearbyint(x), x); }

  static DFDX_INLINE X pow(X const& x, X const& y) {
    if constexpr (std::is_integral_v<T>)
      return kernels::detail::one_by_one([](T v, T w) { return math::pow(v, w); }, x, y);
    else return wide([](auto const& v, auto const& w) { return kernels::lane_pow<single>(v, w); }, x, y);
  }
  static DFDX_INLINE X atan2(X const& y, X const& x) {
    if constexpr (single) return kernels::single_atan2(y, x);
    else return kernels::lane_atan2(y, x);
  }
  static DFDX_INLINE X hypot(X const& x, X const& y) {
    X const a = xsimd::abs(x), b = xsimd::abs(y), infinity(std::numeric_limits<T>::infinity());
    // In the middle of the range squares neither overflow nor lose places that count.
    constexpr T low = single ? T(0x1p-45) : T(0x1p-400), high = single ? T(0x1p+60) : T(0x1p+500);
    X const large = xsimd::max(a, b);
    if (xsimd::all(large > X(low) && large < X(high))) [[likely]]
      return xsimd::sqrt(xsimd::fma(a, a, b * b));
    X size = a;
    if constexpr (single) {
      size = wide([](auto const& v, auto const& w) { return xsimd::sqrt(v * v + w * w); }, x, y);
    } else {
      // Squares in the middle of the range; what their sum loses is put back after the root.
      X const scale = select(large > X(high), X(0x1p-600), select(large < X(low), X(0x1p600), X(1.0)));
      X const u = a * scale, v = b * scale;
      auto const uu = kernels::detail::exact_product(u, u), vv = kernels::detail::exact_product(v, v);
      auto const square = kernels::detail::exact_sum(uu.high, vv.high);
      X const root = xsimd::sqrt(square.high);
      X const rest = (square.low + (uu.low + vv.low)) / (root + root);
      size = select(large == X(0.0), large, (root + rest) / scale);
    }
    return select(a == infinity || b == infinity, infinity, select(x == x && y == y, size, x + y));
  }
#if defined(__SSE2__)
  /// x / y of integers, y neither 0 nor -1. There is no instruction for it; quotients of doubles are exact, for what a
  /// fraction of integers below 2^52 is short of a whole number is more than they round.
  static DFDX_INLINE X quotient(X const& x, X const& y) {
    constexpr std::size_t n = X::size;
    if constexpr (sizeof(T) == 8) {
#if defined(__AVX512DQ__)
      X const low(-(T(1) << 52)), high(T(1) << 52);
      if (!xsimd::all(x > low && x < high && y > low && y < high)) [[unlikely]]
#endif
        return x / y;
    }
    alignas(64) T a[n], b[n];
    x.store_aligned(a), y.store_aligned(b);
    for (std::size_t i = 0; i < n; ++i)
      a[i] = static_cast<T>(static_cast<double>(a[i]) / static_cast<double>(b[i]));
    return X::load_aligned(a);
  }
#endif
  static DFDX_INLINE X fmod(X const& x, X const& y) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
    // Exact where the quotient is: one step at most too far.
    X const a = xsimd::abs(x), b = xsimd::abs(y), q = xsimd::trunc(a / b);
    if (xsimd::all(q < X(single ? T(8388608) : T(4503599627370496)) &&
                   b < X(std::numeric_limits<T>::infinity()))) [[likely]] {
      X const r = xsimd::fnma(q, b, a);
      return xsimd::copysign(select(r < X(T(0)), r + b, r), x);
    }
#endif
    return kernels::detail::one_by_one([](T v, T w) { return static_cast<T>(std::fmod(v, w)); }, x, y);
  }

  static X polygamma(X const& n, X const& x) {
    return kernels::detail::one_by_one([](T v, T w) { return math::polygamma(v, w); }, n, x);
  }

  /// f(x) where c holds, y elsewhere.
  template <class F>
  static DFDX_INLINE X replaced(F const& f, X const& x, X const& y, xsimd::batch_bool<T, A> const& c) {
    if (xsimd::none(c)) [[likely]]
      return y;
    X const where = select(c, X(T(1)), X(T(0)));
    return kernels::detail::one_by_one([&](T v, T w, T chosen) { return chosen != 0 ? f(v) : w; }, x, y,
                                       where);
  }

  /// f of doubles, whatever x is of.
  template <class F, class... Y>
  static DFDX_INLINE X wide(F const& f, X const& x, Y const&... y) {
    if constexpr (single) return kernels::detail::in_double(f, x, y...);
    else return f(x, y...);
  }
};

}  // namespace dfdx::math

#endif  // !__CUDACC__
