// SPDX-License-Identifier: BSL-1.0
// error: unfold: axis 0 of \[dyn\] has no fixed extent
// error[clang]: unfold: axis 0 of .*\[dyn\] has no .*fixed extent
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto windows(Tensor<float, dyn> const& x) { return unfold<0, 4, 2>(x); }
#else
auto windows(Tensor<float, 16> const& x) { return unfold<0, 4, 2>(x); }
#endif
