// SPDX-License-Identifier: BSL-1.0
// error: program: the function returned an Array: give axes and shapes as template arguments, sum<0>\(x\)
// max-lines: 40
#include <dfdx/dfdx.hpp>

using namespace dfdx;

auto sums(Tensor<float, 2, 3> const& x) {
#if DFDX_FAIL
  return compile([](auto const& v) { return sum(v, 0); })(x);
#else
  return compile([](auto const& v) { return sum<0>(v); })(x);
#endif
}
