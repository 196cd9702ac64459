// SPDX-License-Identifier: BSL-1.0
// The second translation unit of a.cpp's program: the same function, differentiated again.
#include <dfdx/dfdx.hpp>

namespace {
constexpr auto f = [](dfdx::Tensor<double, 1> const& x) { return sum(x * exp(x)); };
}  // namespace

double gradient_in_b(double x) {
  auto [y, dx] = dfdx::value_and_grad(f)(dfdx::Tensor<double, 1>::from({x}));
  return dx(0);
}
