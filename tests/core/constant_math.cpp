// SPDX-License-Identifier: BSL-1.0
// The elementary functions of constant expressions against the platform's.
#include <dfdx/core/special_math.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdio>

namespace tests::core_constant_math {

namespace {

namespace cm = dfdx::constant_math;

struct Pair {
  char const* name;
  double (*constant)(double);
  double (*platform)(double);
  double low, high;
};

#define PAIR(name, low, high) \
  {#name, [](double x) { return cm::name(x); }, [](double x) { return std::name(x); }, low, high}
Pair const pairs[] = {
    PAIR(exp, -700, 700), PAIR(expm1, -30, 30),   PAIR(exp2, -1000, 1000), PAIR(log, 0, 1e3),
    PAIR(log2, 0, 1e3),   PAIR(log10, 0, 1e3),    PAIR(log1p, -0.9, 50),   PAIR(cbrt, -1e9, 1e9),
    PAIR(sin, -3, 3),     PAIR(cos, -1.5, 1.5),   PAIR(tan, -1.5, 1.5),    PAIR(asin, -1, 1),
    PAIR(acos, -1, 1),    PAIR(atan, -9, 9),      PAIR(sinh, -700, 700),   PAIR(cosh, -700, 700),
    PAIR(tanh, -5, 5),    PAIR(asinh, -1e3, 1e3), PAIR(acosh, 1, 9),       PAIR(atanh, -1, 1),
    PAIR(erf, -4, 4),     PAIR(erfc, -4, 20),     PAIR(floor, -9, 9),      PAIR(ceil, -9, 9),
    PAIR(trunc, -9, 9)};

bool near(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= tolerance * std::fabs(want) + 1e-320;
}

double const inf = HUGE_VAL, not_a_number = std::nan("");

}  // namespace

TEST_CASE("functions of constant expressions are those of the platform", "[core]") {
  for (Pair const& p : pairs) {
    for (int i = 0; i <= 1000; ++i) {
      double const x = p.low + (p.high - p.low) * i / 1000, got = p.constant(x), want = p.platform(x);
      CAPTURE(p.name, x, got, want);
      REQUIRE(near(got, want, 1e-13));
    }
    for (double x : {0.0, -0.0, inf, -inf, not_a_number, 1.0, -1.0, 2.5, -2.5}) {
      bool const odd_at_infinity = std::isinf(x) && p.platform(x) != p.platform(x);
      double const got = p.constant(x), want = p.platform(x);
      CAPTURE(p.name, x, got, want);
      CHECK((near(got, want, 1e-13) || (odd_at_infinity && std::isnan(got))));
    }
  }
  for (double x : {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6, 1e300}) CHECK(cm::round(x) == std::nearbyint(x));
  for (double x : {-inf, -7.25, -1.0, -0.0, 0.0, 1e-300, 0.3, 2.0, 1e300, inf})
    for (double y : {-inf, -3.5, -1.0, -0.0, 0.0, 1e-300, 0.7, 2.0, 1e300, inf}) {
      CAPTURE(x, y);
      CHECK(near(cm::atan2(x, y), std::atan2(x, y), 1e-13));
      CHECK(near(cm::hypot(x, y), std::hypot(x, y), 1e-13));
      if (std::fabs(x) < 1e200 || std::fabs(y) > 1) CHECK(near(cm::fmod(x, y), std::fmod(x, y), 0));
    }
}

TEST_CASE("the gamma functions run in constant expressions", "[core]") {
  namespace m = dfdx::math;
  static_assert(m::exp2(3.0) == 8 && m::floor(-0.5) == -1 && m::round(2.5f) == 2 && m::remainder(-7, 3) == 2);
  constexpr double least = m::lgamma(1e-310);
  CHECK(std::abs(least - std::lgamma(1e-310)) < 1e-12);
  constexpr double l = m::lgamma(4.0), negative = m::lgamma(-0.5), d = m::digamma(1.0),
                   trigamma = m::polygamma(1.0, 1.0), reflected = m::polygamma(2.0, -0.5);
  double const pi = 3.14159265358979323846, euler = 0.57721566490153286061, zeta3 = 1.2020569031595942854;
  CHECK(near(l, std::log(6.0), 1e-15));
  CHECK(near(negative, std::log(2 * std::sqrt(pi)), 1e-15));
  CHECK(near(d, -euler, 1e-15));
  CHECK(near(trigamma, pi * pi / 6, 1e-15));
  // psi''(-1/2) = psi''(1/2) + 2 / (1/2)^3, and psi''(1/2) = -14 zeta(3)
  CHECK(near(reflected, 16 - 14 * zeta3, 1e-13));
  CHECK(near(m::polygamma(3.0, 0.5), std::pow(pi, 4), 1e-14));
  for (int n = 1; n <= 30; ++n)
    for (double x : {-3.75, -0.25, 0.125, 1.0, 7.5, 40.0}) {
      CAPTURE(n, x);  // psi_n(x + 1) = psi_n(x) + (-1)^n n! x^(-n-1)
      double const step = (n % 2 == 0 ? 1 : -1) * std::tgamma(n + 1.0) * std::pow(x, -n - 1);
      double const a = m::polygamma(double(n), x), b = m::polygamma(double(n), x + 1);
      CHECK(std::fabs(b - a - step) <= 1e-12 * (std::fabs(a) + std::fabs(b)));
    }
}

}  // namespace tests::core_constant_math
