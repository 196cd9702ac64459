// SPDX-License-Identifier: BSL-1.0
// error: mse_loss: shapes do not broadcast: \[4, 3\] x \[2\]
// error[clang]: mse_loss: shapes do not .*broadcast: \[4, 3\] x \[2\]
// absent: sub: shapes
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto loss(Tensor<float, 4, 3> const& x, Tensor<float, 2> const& y) { return mse_loss(x, y); }
#else
auto loss(Tensor<float, 4, 3> const& x, Tensor<float, 3> const& y) { return mse_loss(x, y); }
#endif
