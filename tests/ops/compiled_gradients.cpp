// SPDX-License-Identifier: BSL-1.0
// Compiled gradients of elementwise ops, broadcasting, casts, special values.
#include "ops/compiled.hpp"

namespace tests::ops_compiled_gradients {

namespace {

using namespace compiled;

constexpr auto of_one = [](auto const& x, auto const& p) {
  return std::tuple(-x, exp(x), expm1(x), log(p), log1p(p), sqrt(p), rsqrt(p), square(x), abs(x), sign(x),
                    sin(x), cos(x), tanh(x), sigmoid(x), erf(x), relu(x));
};
constexpr auto of_two = [](auto const& x, auto const& p) {
  return std::tuple(x + p, x - p, x * p, x / p, pow(p, x), maximum(x, p), minimum(x, p), where(x < p, x, p),
                    x * 2.5 + 1.0, 1.0 / p);
};

}  // namespace

TEST_CASE("compiled gradients of elementwise ops", "[ops]") {
  auto const x = uniform<float, 19>(Key{3}, -2, 2), p = uniform<float, 19>(Key{4}, 0.5, 2);
  check_vjp(of_one, x, p);
  check_vjp(of_two, x, p);
  auto const u = uniform<double, 19>(Key{3}, -2, 2), v = uniform<double, 19>(Key{4}, 0.5, 2);
  check_vjp(of_one, u, v);
  check_vjp(of_two, u, v);
  check_vjp([](auto const& x, auto const& p) { return tanh(x * p) + sqrt(p); },
            uniform<float16, 19>(Key{3}, -2, 2), uniform<float16, 19>(Key{4}, 0.5, 2));
}

TEST_CASE("compiled broadcasting", "[ops]") {
  auto const x = uniform<float, 5, 19>(Key{1}, -1, 1);
  auto const row = uniform<float, 19>(Key{2}, -1, 1);
  auto const column = uniform<float, 19, 1>(Key{3}, -1, 1);
  auto const number = uniform<float>(Key{4});
  constexpr auto f = [](auto const& x, auto const& row, auto const& column, auto const& number) {
    return std::tuple(x + row, row * column, x - number, transpose(x) * column);
  };
  check(f, x, row, column, number);
  check_vjp(f, x, row, column, number);
}

TEST_CASE("compiled casts and truths", "[ops]") {
  constexpr auto f = [](auto const& x) {
    auto const truth = x > 0.0;
    return std::tuple(cast<double>(x), cast<float16>(x), cast<bfloat16>(x), cast<std::int32_t>(x * 9.0),
                      cast<std::int64_t>(x * 9.0), cast<std::uint8_t>(abs(x) * 9.0), cast<bool>(x),
                      cast<float>(truth), truth && x < 1.0, truth || x < -1.0, !truth,
                      where(truth, truth, x < -1.0), cast<std::int32_t>(truth) + 1);
  };
  check(f, uniform<float, 23>(Key{5}, -2, 2));
  check(f, uniform<double, 23>(Key{5}, -2, 2));
  constexpr auto through = [](auto const& x) {
    return sum(square(cast<double>(x)) * cast<double>(cast<float>(x)));
  };
  check_vjp(through, uniform<float, 11>(Key{6}, -2, 2));
}

TEST_CASE("compiled special values", "[ops]") {
  float const inf = HUGE_VALF, nan = std::nanf("");
  auto const x = Tensor<float, 20>::from(
      {0, -0.0f, inf, -inf, nan, 1, -1, 88, -104, 1e30f, 0, -0.0f, inf, -inf, nan, 1, -1, 89, -88, 3});
  constexpr auto f = [](auto const& x) {
    return std::tuple(exp(x), log(x), log1p(x), expm1(x), sqrt(x), rsqrt(x), tanh(x), sigmoid(x), erf(x),
                      relu(x), abs(x), maximum(x, zeros_like(x)), minimum(zeros_like(x), x), pow(x, 2.0),
                      pow(abs(x), 0.5), x == x, sin(x * 0.01), max(x), min(x), sign(x));
  };
  check(f, x);
}

}  // namespace tests::ops_compiled_gradients
