// SPDX-License-Identifier: BSL-1.0
// The first op that a file calls on its own.
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

int main() {
  auto const a = Tensor<float, 3>{1, 2, 3};
  auto const b = a + a;
  std::printf("%g\n", static_cast<double>(b(0)));
}
