// SPDX-License-Identifier: BSL-1.0
// error: square: numeric dtype required, got bool
// error[clang]: square: numeric dtype .*required, got bool
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto grow(Tensor<bool, 3> const& x) { return square(x); }
#else
auto grow(Tensor<float, 3> const& x) { return square(x); }
#endif
