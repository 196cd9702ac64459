// SPDX-License-Identifier: BSL-1.0
// error: cross_entropy: labels \[16\] do not fit scores \[32, 10\]
// error[clang]: cross_entropy: labels \[16\] do .*not fit scores \[32, 10\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto loss(Tensor<float, 32, 10> const& logits, Tensor<std::int32_t, 16> const& labels) {
#else
auto loss(Tensor<float, 32, 10> const& logits, Tensor<std::int32_t, 32> const& labels) {
#endif
  return cross_entropy(logits, labels);
}
