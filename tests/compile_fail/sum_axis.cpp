// SPDX-License-Identifier: BSL-1.0
// error: sum: axis 2 out of range for \[4, 3\]
// error[clang]: sum: axis 2 out of range for .*\[4, 3\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto total(Tensor<float, 4, 3> const& x) { return sum<2>(x); }
#else
auto total(Tensor<float, 4, 3> const& x) { return sum<1>(x); }
#endif
