// SPDX-License-Identifier: BSL-1.0
// The smallest program with a gradient.
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr auto f = [](Tensor<double, 3> const& x) { return sum(x * exp(x)); };

int main() {
  auto const x = Tensor<double, 3>::from({0.0, 1.0, 2.0});
  auto const [y, dx] = value_and_grad(f)(x);
  std::printf("f(x) = %.4f, gradient %.4f %.4f %.4f\n", y.item(), dx(0), dx(1), dx(2));
}
