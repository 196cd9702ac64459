// SPDX-License-Identifier: BSL-1.0
// error: program: the function returned
// shows: permute of \[2, 3\]
// max-lines: 40
#include <dfdx/dfdx.hpp>

using namespace dfdx;

auto sums(Tensor<float, 2, 3> const& x) {
#if DFDX_FAIL
  return compile([](auto const& v) { return sum<0>(tanh(transpose(v, 0, 1))); })(x);
#else
  return compile([](auto const& v) { return sum<0>(tanh(transpose<0, 1>(v))); })(x);
#endif
}
