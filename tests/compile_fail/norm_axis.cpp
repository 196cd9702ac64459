// SPDX-License-Identifier: BSL-1.0
// error: norm: axis 2 out of range for \[4, 3\]
// error[clang]: norm: axis 2 out of range for .*\[4, 3\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto length(Tensor<float, 4, 3> const& x) { return norm<2>(x); }
#else
auto length(Tensor<float, 4, 3> const& x) { return norm<1>(x); }
#endif
