// SPDX-License-Identifier: BSL-1.0
// error: reshape: cannot view \[4, 3\] as \[5, -1\]
// error[clang]: reshape: cannot view \[4, 3\] as .*\[5, -1\]
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto flat(Tensor<float, 4, 3> const& x) { return reshape<5, -1>(x); }
#else
auto flat(Tensor<float, 4, 3> const& x) { return reshape<6, -1>(x); }
#endif
