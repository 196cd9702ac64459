// SPDX-License-Identifier: BSL-1.0
// error: the directions come after all arguments, each of the type of the one that it belongs to
// max-lines: 16
#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr auto loss = [](Tensor<float, 3> const& w, Tensor<float, 8, 3> const& x) {
  return sum(square(matmul(x, w)));
};

auto run(Tensor<float, 3> const& w, Tensor<float, 3> const& v, Tensor<float, 8, 3> const& x) {
#if DFDX_FAIL
  return hvp(loss)(w, v, x);
#else
  return hvp(loss)(w, x, v);
#endif
}
