// SPDX-License-Identifier: BSL-1.0
// error: raise
// shows: scan: the number of iterations must be known when the program is compiled
// max-lines: 39
#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr auto products = [](auto const& first, auto const& x) {
  return scan([](auto const& y, auto const& row) { return y * row; }, first, x);
};

#if DFDX_FAIL
using Rows = Tensor<float, dyn, 3>;
#else
using Rows = Tensor<float, 8, 3>;
#endif
auto multiplied(Tensor<float, 3> const& first, Rows const& x) { return compile(products)(first, x); }
