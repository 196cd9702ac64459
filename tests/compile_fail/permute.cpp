// SPDX-License-Identifier: BSL-1.0
// error: permute: axes must name each axis of \[4, 3\] once
// error[clang]: permute: axes must name each .*axis of \[4, 3\] once
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto turned(Tensor<float, 4, 3> const& x) { return permute<0, 0>(x); }
#else
auto turned(Tensor<float, 4, 3> const& x) { return permute<1, 0>(x); }
#endif
