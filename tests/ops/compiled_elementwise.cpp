// SPDX-License-Identifier: BSL-1.0
// Compiled elementwise ops with one another and with numbers (compiled_every_*.cpp have each in every dtype).
#include "ops/compiled.hpp"

namespace tests::ops_compiled_elementwise {

namespace {

using namespace compiled;

constexpr auto floats = [](auto const& x, auto const& p) {
  return std::tuple(-x, exp(x), expm1(x), log(p), log1p(p), sqrt(p), rsqrt(p), square(x), abs(x), sign(x),
                    sin(x), cos(x), tanh(x), sigmoid(x), erf(x), relu(x), x + p, x - p, x * p, x / p,
                    pow(p, x), maximum(x, p), minimum(x, p), where(x < p, x, p), x * 2.5 + 1.0, 1.0 / p);
};
constexpr auto integers = [](auto const& x, auto const& p) {
  return std::tuple(square(x), abs(x), sign(x), relu(x), x + p, x - p, x * p, x / p, maximum(x, p),
                    minimum(x, p), where(x < p, x, p), x == p, x != p, x <= p, x > p, x >= p, x * 2 + 1, -x,
                    pow(x, p), div(x, p, Rounding::trunc));
};
// What makes f32 of them.
constexpr auto fractions = [](auto const& x, auto const& p) {
  return std::tuple(exp(x), sqrt(p), sin(x), erf(x), sigmoid(x), x / 4, 1 / p, gelu(x), mish(x), softplus(x),
                    logaddexp(x, p), reciprocal(p), tanhshrink(x), logsumexp(x));
};
template <class T>
void check_floats() {
  auto const x = uniform<T, 37>(Key{1}, -2, 2), p = uniform<T, 37>(Key{2}, 0.5, 2);
  check(floats, x, p);
}
template <class T>
void check_integers() {
  int const low = std::is_unsigned_v<T> ? 0 : -9;
  auto const x = randint<T, 37>(Key{1}, low, 9), p = randint<T, 37>(Key{2}, 1, 5);
  check(integers, x, p);
  check(fractions, x, p);
}

}  // namespace

TEST_CASE("compiled elementwise ops in f32", "[ops]") { check_floats<float>(); }
TEST_CASE("compiled elementwise ops in i32", "[ops]") { check_integers<std::int32_t>(); }
TEST_CASE("compiled elementwise ops in u8", "[ops]") { check_integers<std::uint8_t>(); }

TEST_CASE("compiled fractions of truths", "[ops]") {
  check([](auto const& x) { return std::tuple(exp(x), x / x, softplus(x), log_sigmoid(x), softsign(x)); },
        Tensor<bool, 3>::from({true, false, true}));
}

TEST_CASE("compiled integer division by zero", "[ops]") {
  constexpr auto f = [](auto const& x, auto const& y) {
    return std::tuple(x / y, floor_divide(x, y), div(x, y, Rounding::trunc));
  };
  int const least = std::numeric_limits<std::int32_t>::min();
  check(f, Tensor<std::int32_t, 5>::from({7, 0, -7, least, 9}),
        Tensor<std::int32_t, 5>::from({0, 0, 2, -1, 4}));
}

TEST_CASE("compiled integers that no double holds", "[ops]") {
  static constexpr std::int64_t odd = 9007199254740993;
  constexpr auto f = [](auto const& x) {
    auto const large = full_like(x, 4294967297.0), zero = zeros_like(x);
    return std::tuple(x + odd, where(x > 0, x, -odd), large * large, floor_divide(large, zero),
                      pow(zero + 3, zero + 39));
  };
  auto const x = Tensor<std::int64_t, 3>::from({0, 1, -1});
  check(f, x);
  auto const [sum, chosen, square, by_zero, power] = compile(f)(x);
  CHECK(array_equal(sum, Tensor<std::int64_t, 3>::from({odd, odd + 1, odd - 1})));
  CHECK(chosen(0) == -odd);
  CHECK(square(0) == 8589934593);  // modulo 2^64
  CHECK(by_zero(0) == 0);
  CHECK(power(0) == 4052555153018976267);
}

TEST_CASE("compiled division of numbers by zero", "[ops]") {
  // Folded by the compiler.
  constexpr auto f = [](auto const& x) {
    return std::tuple(x + ones_like(x) / zeros_like(x), x * (zeros_like(x) / zeros_like(x)),
                      x - ones_like(x) / (zeros_like(x) * -1.0));
  };
  check(f, ones<float, 3>());
}

}  // namespace tests::ops_compiled_elementwise
