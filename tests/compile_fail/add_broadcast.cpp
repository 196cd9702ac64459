// SPDX-License-Identifier: BSL-1.0
// error: add: shapes do not broadcast: \[4, 3\] x \[4\]
// error[clang]: add: shapes do not broadcast: .*\[4, 3\] x \[4\]
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto add(Tensor<float, 4, 3> const& x, Tensor<float, 4> const& b) { return x + b; }
#else
auto add(Tensor<float, 4, 3> const& x, Tensor<float, 3> const& b) { return x + b; }
#endif
