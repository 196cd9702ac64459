// SPDX-License-Identifier: BSL-1.0
// Compiled elementwise functions beyond the common ones: values, and gradients.
#include "ops/compiled.hpp"

namespace tests::ops_compiled_mathematics {

namespace {

using namespace compiled;

constexpr auto one = [](auto const& x, auto const& p) {
  return std::tuple(exp2(x), log2(p), log10(p), cbrt(x), tan(x), asin(x * 0.4), acos(x * 0.4), atan(x),
                    sinh(x), cosh(x), asinh(x), acosh(p + 0.75), atanh(x * 0.4), erfc(x), lgamma(p),
                    digamma(p));
};
constexpr auto rounded = [](auto const& x, auto const& p) {
  return std::tuple(floor(x), ceil(x), round(x), trunc(x), fmod(x, p), remainder(x, p), floor_divide(x, p));
};
constexpr auto two = [](auto const& x, auto const& p) {
  return std::tuple(atan2(x, p), hypot(x, p), logaddexp(x, p), polygamma(1.0, p), reciprocal(p),
                    lerp(x, p, 0.25), lerp(x, p, x), masked_fill(x, x > 1.0, -1.0), add(x, p), sub(x, p),
                    mul(x, p), div(x, p), neg(x), logit(sigmoid(x)), logit(x, 0.25), nan_to_num(x));
};
constexpr auto tests = [](auto const& x) {
  return std::tuple(isnan(x), isinf(x), isfinite(x), nan_to_num(x), nan_to_num(x, 3, 4, -5), isclose(x, x),
                    isclose(x, x * 2, 0.25, 1.5), isclose(x, -x, 0, 0, true));
};
constexpr auto guarded = [](auto const& x, auto const& p) {
  Guard const g{.eps = 0.5};
  return std::tuple(log(p, g), log2(p, g), log10(p, g), log1p(p, g), sqrt(p, g), rsqrt(p, g), cbrt(p, g),
                    reciprocal(p, g), div(x, p, g), pow(p, x, g));
};

template <class T>
auto both() {
  return std::pair(uniform<T, 37>(Key{1}, -2, 2), uniform<T, 37>(Key{2}, 0.5, 3));
}
template <class T>
void check_floats() {
  auto const [x, p] = both<T>();
  check(one, x, p);
  check(two, x, p);
  check(rounded, x, p);
}
template <class T>
void check_integers() {
  int const low = std::is_unsigned_v<T> ? 0 : -9;
  // Zeros among the divisors.
  check(rounded, randint<T, 37>(Key{1}, low, 9), randint<T, 37>(Key{2}, low / 3, 4));
}

}  // namespace

TEST_CASE("compiled mathematics in f32", "[ops]") { check_floats<float>(); }
TEST_CASE("compiled rounding of integers, also divided by zero", "[ops]") {
  check_integers<std::int32_t>();
  check_integers<std::int64_t>();
  check_integers<std::uint8_t>();
}

TEST_CASE("compiled tests of numbers", "[ops]") {
  float const inf = HUGE_VALF;
  check(tests, Tensor<float, 5>::from({1, inf, -inf, std::nanf(""), -0.0f}));
  check(tests, Tensor<std::int32_t, 3>::from({1, 0, -5}));
}

TEST_CASE("compiled gradients of mathematics", "[ops]") {
  auto const [x, p] = both<float>();
  check_vjp(one, x, p);
  check_vjp(two, x, p);
  check_vjp(rounded, x, p);
}

TEST_CASE("compiled gradients with a guard", "[ops]") {
  auto const [x, p] = both<double>();
  check_vjp(guarded, x, p);
}

}  // namespace tests::ops_compiled_mathematics
