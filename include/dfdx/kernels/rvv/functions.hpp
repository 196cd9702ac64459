// SPDX-License-Identifier: BSL-1.0
// The elementary functions on symbols of formulas (math::lane_functions): those of kernels/exponential.hpp,
// power.hpp and trigonometric.hpp, logarithms of their own, and for what is rare the platform's functions, one by one.
#pragma once

#include <cmath>

#include <dfdx/core/special_math.hpp>
#include <dfdx/kernels/power.hpp>
#include <dfdx/kernels/rounded.hpp>
#include <dfdx/kernels/trigonometric.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// log_of_positive - y with the values of a logarithm where x is not positive, or infinite.
template <class T>
constexpr Symbol<T> log_of_positive(Symbol<T> const& x, Symbol<T> const& y) {
  using L = std::numeric_limits<T>;
  using X = Symbol<T>;
  X const zero(T(0)), infinity(L::infinity());
  X const outside = select(x == zero, X(-L::infinity()), X(L::quiet_NaN()));
  return select(x > zero, select(x == infinity, x, y), outside);
}

/// log_single - ln x of floats: x = 2^e (1 + f), and with s = f / (2 + f) ln(1 + f) = 2 artanh(s), rearranged so that
/// f, which is exact, is added last.
constexpr Symbol<float> log_single(Symbol<float> const& x) {
  using X = Symbol<float>;
  using I = Symbol<std::int32_t>;
  auto const subnormal = x < X(std::numeric_limits<float>::min());
  I const bits = bitwise_cast<std::int32_t>(select(subnormal, x * X(0x1p23f), x));
  I const offset = bits - I(0x3f3504f3);  // so that 1 + f lies between sqrt(1/2) and sqrt(2)
  X const f = bitwise_cast<float>(bits - (offset & I(-(1 << 23)))) - X(1.0f);
  X const e = batch_cast<float>(offset >> 23) - select(subnormal, X(23.0f), X(0.0f));
  X const s = f / (f + X(2.0f)), z = s * s, half_square = X(0.5f) * f * f;
  X const series = z * kernels::detail::polynomial(z, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3);
  X const low = fma(s, half_square + series, e * X(1.42860677e-6f));
  return log_of_positive(x, fma(e, X(0x1.62e4p-1f), f - (half_square - low)));
}

/// log_pair - ln x of doubles with twice the digits, of x > 0.
constexpr kernels::detail::Pair<Symbol<double>> log_pair(Symbol<double> const& x) {
  using X = Symbol<double>;
  auto const subnormal = x < X(std::numeric_limits<double>::min());
  return kernels::detail::logarithm(select(subnormal, x * X(0x1p54), x), select(subnormal, X(-54.0), X(0.0)));
}
/// log_times - ln x times a factor that is given as the sum of two numbers.
constexpr Symbol<double> log_times(Symbol<double> const& x, double high, double low) {
  using X = Symbol<double>;
  auto const log = log_pair(x), product = kernels::detail::exact_product(log.high, X(high));
  X const rest = product.low + fma(log.low, X(high), log.high * X(low));
  return log_of_positive(x, product.high + rest);
}
constexpr Symbol<double> log1p_double(Symbol<double> const& x) {
  using X = Symbol<double>;
  auto const sum = kernels::detail::exact_sum(X(1.0), x);
  auto const log = kernels::detail::logarithm(sum.high, X(0.0));
  X const y = log_of_positive(sum.high, log.high + (log.low + sum.low / sum.high));
  return select(x == X(0.0), x, y);
}

/// Functions of doubles by those that are at hand.
constexpr Symbol<double> arcsine(Symbol<double> const& x) {
  using X = Symbol<double>;
  return kernels::lane_atan2(x, sqrt((X(1.0) - x) * (X(1.0) + x)));
}
constexpr Symbol<double> arccosine(Symbol<double> const& x) {
  using X = Symbol<double>;
  return kernels::lane_atan2(sqrt((X(1.0) - x) * (X(1.0) + x)), x);
}
/// Beyond the limit 1 + x^2 is x^2, and the function ln 2x.
inline constexpr double large_square = 0x1p28;
constexpr Symbol<double> area_sine(Symbol<double> const& x) {
  using X = Symbol<double>;
  X const a = abs(x), square = a * a;
  auto const large = a > X(large_square);
  X const in = select(large, a, a + square / (X(1.0) + sqrt(square + X(1.0))));
  return copysign(log1p_double(in) + select(large, X(0.69314718055994530942), X(0.0)), x);
}
constexpr Symbol<double> area_cosine(Symbol<double> const& x) {
  using X = Symbol<double>;
  X const more = x - X(1.0);
  auto const large = x > X(large_square);
  X const in = select(large, x, more + sqrt(fma(more, more, more + more)));
  X const y = log1p_double(in) + select(large, X(0.69314718055994530942), X(0.0));
  return select(x < X(1.0), X(std::numeric_limits<double>::quiet_NaN()), y);
}
constexpr Symbol<double> area_tangent(Symbol<double> const& x) {
  using X = Symbol<double>;
  X const a = abs(x);
  return copysign(X(0.5) * log1p_double((a + a) / (X(1.0) - a)), x);
}
/// The exponential is near enough for one step of Newton's to end at the root; of small numbers the step would vanish.
constexpr Symbol<double> cube_root(Symbol<double> const& x) {
  using X = Symbol<double>;
  auto const small = abs(x) < X(0x1p-900);
  X const a = abs(x) * select(small, X(0x1p162), X(1.0));
  X const y = kernels::lane_exp(log_pair(a).high * X(1.0 / 3)), square = y * y;
  X const root = fma(fnma(square, y, a), X(1.0) / (X(3.0) * square), y) * select(small, X(0x1p-54), X(1.0));
  return select(a > X(0.0) && a < X(std::numeric_limits<double>::infinity()), copysign(root, x), x);
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

namespace dfdx::math {

template <class T>
struct lane_functions<kernels::rvv::Symbol<T>> {
  using X = kernels::rvv::Symbol<T>;
  static constexpr bool single = sizeof(T) == 4;

  template <class H>
  static constexpr X rounded_to(X const& x) {
    return kernels::lane_rounded<H>(x);
  }
  static constexpr X exp(X const& x) { return kernels::lane_exp(x); }
  static constexpr X expm1(X const& x) { return kernels::lane_expm1(x); }
  static constexpr X exp2(X const& x) { return kernels::lane_exp2(x); }
  static constexpr X sigmoid(X const& x) { return kernels::lane_sigmoid(x); }
  static constexpr X log(X const& x) {
    if constexpr (single) return kernels::rvv::log_single(x);
    else return kernels::rvv::log_of_positive(x, kernels::rvv::log_pair(x).high);
  }
  static constexpr X log2(X const& x) {
    return wide(
        [](auto const& v) { return kernels::rvv::log_times(v, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56); },
        x);
  }
  static constexpr X log10(X const& x) {
    return wide(
        [](auto const& v) { return kernels::rvv::log_times(v, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57); },
        x);
  }
  static constexpr X log1p(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::log1p_double(v); }, x);
  }
  /// ln(1 + e^(x + low)) for x <= 0; what rounding takes from the exponential is put back.
  static constexpr X log1p_exp(X const& x, X const& low) {
    X const one(T(1)), in = kernels::detail::bounded(x, kernels::detail::least_exponent<X>, 0);
    auto const p = kernels::detail::natural_power(in, kernels::detail::bounded(low, -1, 1));
    X const e1 = one + p.rest, e = kernels::detail::scaled(e1, p.n);
    return log1p(e) + kernels::detail::scaled(p.rest - (e1 - one), p.n) / (one + e);
  }
  static constexpr X sin(X const& x) {
    return turned(x, 0, [](double v) { return std::sin(v); });
  }
  static constexpr X cos(X const& x) {
    return turned(x, 1, [](double v) { return std::cos(v); });
  }
  static constexpr X tan(X const& x) {
    using D = kernels::rvv::Symbol<double>;
    return wide(
        [](D const& v) {
          using kernels::detail::turned_sine;
          D const near = select(v == D(0.0), v, turned_sine(v, 0) / turned_sine(v, 1));
          return called_where(
              +[](double w) { return std::tan(w); }, v, near, abs(v) > D(kernels::detail::largest_angle));
        },
        x);
  }
  static constexpr X cbrt(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::cube_root(v); }, x);
  }
  static constexpr X asin(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::arcsine(v); }, x);
  }
  static constexpr X acos(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::arccosine(v); }, x);
  }
  static constexpr X atan(X const& x) {
    return wide([](auto const& v) { return kernels::lane_atan(v); }, x);
  }
  static constexpr X sinh(X const& x) { return kernels::lane_sinh(x); }
  static constexpr X cosh(X const& x) { return kernels::lane_cosh(x); }
  static constexpr X tanh(X const& x) { return kernels::lane_tanh(x); }
  static constexpr X asinh(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::area_sine(v); }, x);
  }
  static constexpr X acosh(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::area_cosine(v); }, x);
  }
  static constexpr X atanh(X const& x) {
    return wide([](auto const& v) { return kernels::rvv::area_tangent(v); }, x);
  }
  static constexpr X erf(X const& x) { return kernels::lane_erf(x); }
  static constexpr X erfc(X const& x) {
    return wide([](auto const& v) { return kernels::lane_erfc(v); }, x);
  }
  static constexpr X floor(X const& x) { return copysign(kernels::rvv::floor(x), x); }
  static constexpr X ceil(X const& x) { return copysign(kernels::rvv::ceil(x), x); }
  static constexpr X trunc(X const& x) { return kernels::rvv::trunc(x); }
  static constexpr X round(X const& x) { return kernels::rvv::nearbyint(x); }

  static constexpr X pow(X const& x, X const& y) {
    if constexpr (std::is_integral_v<T>) return called(+[](T v, T w) { return math::pow(v, w); }, x, y);
    else return wide([](auto const& v, auto const& w) { return kernels::lane_pow(v, w); }, x, y);
  }
  static constexpr X atan2(X const& y, X const& x) {
    return wide([](auto const& v, auto const& w) { return kernels::lane_atan2(v, w); }, y, x);
  }
  static constexpr X hypot(X const& x, X const& y) {
    if constexpr (single)  // squares of floats have room in double
      return wide(
          [](auto const& v, auto const& w) {
            using D = kernels::rvv::Symbol<double>;
            D const infinity(std::numeric_limits<double>::infinity());
            return select(abs(v) == infinity || abs(w) == infinity, infinity, sqrt(fma(v, v, w * w)));
          },
          x, y);
    else return called(+[](T v, T w) { return static_cast<T>(std::hypot(v, w)); }, x, y);
  }
  static constexpr X fmod(X const& x, X const& y) {
    return called(+[](T v, T w) { return static_cast<T>(std::fmod(v, w)); }, x, y);
  }
  static constexpr X polygamma(X const& n, X const& x) {
    return called(+[](T v, T w) { return math::polygamma(v, w); }, n, x);
  }

  /// f(x) where c holds, y elsewhere.
  static constexpr X replaced(T (*f)(T), X const& x, X const& y, kernels::rvv::Truth const& c) {
    return called_where(f, x, y, c);
  }

  /// f of doubles, whatever x is of.
  template <class F, class... Y>
  static constexpr X wide(F const& f, X const& x, Y const&... y) {
    using kernels::rvv::batch_cast;
    return batch_cast<T>(f(batch_cast<double>(x), batch_cast<double>(y)...));
  }

 private:
  // sin(x + turns pi / 2); the few angles that are beyond what is reduced here go through the platform's function.
  static constexpr X turned(X const& x, double turns, double (*f)(double)) {
    using D = kernels::rvv::Symbol<double>;
    return wide(
        [&](D const& v) {
          D const near = kernels::detail::turned_sine(v, turns);
          D const y = turns == 0 ? select(v == D(0.0), v, near) : near;
          return called_where(f, v, y, abs(v) > D(kernels::detail::largest_angle));
        },
        x);
  }
};

}  // namespace dfdx::math

#endif  // DFDX_RVV
