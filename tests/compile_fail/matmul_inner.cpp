// SPDX-License-Identifier: BSL-1.0
// error: matmul: inner dimensions differ: \[32, 784\] x \[128, 10\]
// error[clang]: matmul: inner dimensions .*differ: \[32, 784\] x \[128, 10\]
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto y = matmul(Tensor<float, 32, 784>{}, Tensor<float, 128, 10>{});
#else
auto y = matmul(Tensor<float, 32, 784>{}, Tensor<float, 784, 10>{});
#endif
