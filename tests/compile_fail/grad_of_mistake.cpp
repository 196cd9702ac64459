// SPDX-License-Identifier: BSL-1.0
// error: sub: shapes do not broadcast: \[8\] x \[4\]
// error[clang]: sub: shapes do not broadcast: .*\[8\] x \[4\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
using Target = Tensor<float, 4>;
#else
using Target = Tensor<float, 8>;
#endif

constexpr auto error_of = [](auto const& w, auto const& x, auto const& y) {
  return mean(square(matmul(x, w) - y));
};

float slope(Tensor<float, 3> const& w, Tensor<float, 8, 3> const& x, Target const& y) {
  auto [value, dw] = value_and_grad(error_of)(w, x, y);
  return value.item() + dw(0);
}
