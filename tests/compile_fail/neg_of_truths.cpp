// SPDX-License-Identifier: BSL-1.0
// error: neg: numeric dtype required, got bool
// error[clang]: neg: numeric dtype required, .*got bool
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto turn(Tensor<bool, 3> const& x) { return -x; }
#else
auto turn(Tensor<float, 3> const& x) { return -x; }
#endif
