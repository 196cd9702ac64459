// SPDX-License-Identifier: BSL-1.0
// pow at its special values against the platform's (C99, F.9.4.4): in compiled programs, and in constant expressions.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <limits>

namespace tests::kernels_pow {

namespace {

constexpr std::size_t count = 41;  // no multiple of any lane

template <class T>
constexpr std::array<T, count> values() {
  using L = std::numeric_limits<T>;
  constexpr T infinity = L::infinity(), nan = L::quiet_NaN(), zero = 0, above = T(1) + L::epsilon(),
              odd = sizeof(T) == 4 ? T(16777215) : T(9007199254740991);  // the largest there is
  return {zero,    -zero,  1,       -1,       infinity, -infinity, nan,     2,         -2,
          3,       -3,     4,       -4,       T(0.5),   T(-0.5),   T(1.5),  T(-1.5),   T(2.5),
          T(-2.5), T(0.1), T(-0.1), T(7.3),   T(-7.3),  above,     -above,  2 - above, above - 2,
          odd,     -odd,   odd - 1, 1 - odd,  2 * odd,  -2 * odd,  T(1e-3), T(-1e-3),  1000,
          1001,    -1000,  -1001,   L::min(), -L::min()};
}

// Zeros, infinities, NaNs and ones to the bit; the rest roughly, for large results amplify an error of the logarithm.
template <class T>
bool agrees(T got, T want) {
  if (std::isnan(want)) return std::isnan(got);
  if (want == 0 || std::isinf(want) || std::abs(want) == 1)
    return got == want && std::signbit(got) == std::signbit(want);
  T const least = std::numeric_limits<T>::min();  // what is smaller, exp may flush to zero
  if (std::abs(want) <= least) return std::abs(got) <= least && std::signbit(got) == std::signbit(want);
  return std::abs(got - want) <= std::abs(want) * std::sqrt(std::numeric_limits<T>::epsilon());
}

template <class T, class Power>
int failures(Power const& power) {
  int wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      T const x = values<T>()[i], y = values<T>()[j], got = power(i, j), want = std::pow(x, y);
      if (agrees(got, want)) continue;
      ++wrong;
      UNSCOPED_INFO(x << "^" << y << " is " << got << ", not " << want);
    }
  }
  return wrong;
}

template <class T>
int failures_compiled() {
  using namespace dfdx;
  auto const power = compile([](auto const& x, auto const& y) { return pow(x, y); });
  auto x = Tensor<T, count, 1>::uninitialized();
  auto y = Tensor<T, count>::uninitialized();
  for (std::size_t i = 0; i < count; ++i) x.data()[i] = y.data()[i] = values<T>()[i];
  auto const z = power(x, y);
  return failures<T>([&](std::size_t i, std::size_t j) { return z.data()[i * count + j]; });
}

constexpr auto constant_powers = [] {
  std::array<std::array<double, count>, count> r{};
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j)
      r[i][j] = dfdx::math::pow(values<double>()[i], values<double>()[j]);
  return r;
}();

}  // namespace

TEST_CASE("compiled pow has the special values of C99", "[kernels]") {
  CHECK(failures_compiled<float>() == 0);
  CHECK(failures_compiled<double>() == 0);
}

TEST_CASE("pow in constant expressions has the special values of C99", "[kernels]") {
  CHECK(failures<double>([](std::size_t i, std::size_t j) { return constant_powers[i][j]; }) == 0);
}

}  // namespace tests::kernels_pow
