// SPDX-License-Identifier: BSL-1.0
// error: softmax: axis 3 out of range for \[4, 3\]
// error[clang]: softmax: axis 3 out of range .*for \[4, 3\]
// max-lines: 16
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto probabilities(Tensor<float, 4, 3> const& x) { return softmax<3>(x); }
#else
auto probabilities(Tensor<float, 4, 3> const& x) { return softmax<1>(x); }
#endif
