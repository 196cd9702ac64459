// SPDX-License-Identifier: BSL-1.0
// What a newcomer writes first; every consumer project here builds this file.
#include <cmath>
#include <cstdio>
#include <dfdx/dfdx.hpp>

using namespace dfdx;

int main() {
  constexpr auto f = [](Tensor<double, 3> const& x) { return sum(x * exp(x)); };
  auto x = Tensor<double, 3>::from({0.0, 1.0, 2.0});
  auto [y, dx] = value_and_grad(f)(x);
  std::printf("y = %g, dy/dx(1) = %g\n", static_cast<double>(y.item()), static_cast<double>(dx(1)));
  return std::abs(dx(1) - 2.0 * std::exp(1.0)) < 1e-12 ? 0 : 1;
}
