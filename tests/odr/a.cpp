// SPDX-License-Identifier: BSL-1.0
// Two translation units include the whole library and link: nothing in it is defined twice (see b.cpp).
#include <cassert>
#include <cmath>
#include <dfdx/dfdx.hpp>

double gradient_in_b(double x);

namespace {
constexpr auto f = [](dfdx::Tensor<double, 1> const& x) { return sum(x * exp(x)); };
}  // namespace

int main() {
  auto x = dfdx::Tensor<double, 1>::from({2.0});
  auto [y, dx] = dfdx::value_and_grad(f)(x);
  assert(std::abs(y.item() - 2.0 * std::exp(2.0)) < 1e-12);
  assert(std::abs(dx(0) - gradient_in_b(2.0)) < 1e-12);
}
