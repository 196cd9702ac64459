// SPDX-License-Identifier: BSL-1.0
// error: grad: a lambda or function object without captures required; pass values as arguments
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

auto slope(Tensor<double, 3> const& x, Tensor<double, 3> const& w) {
#if DFDX_FAIL
  auto const f = [&w](Tensor<double, 3> const& x) { return sum(x * w); };
  return grad(f)(x);
#else
  auto const f = [](Tensor<double, 3> const& x, Tensor<double, 3> const& w) { return sum(x * w); };
  return grad(f)(x, w);
#endif
}
