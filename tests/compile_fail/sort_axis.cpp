// SPDX-License-Identifier: BSL-1.0
// One mistake is one message, though the function has two results and both are used.
// error: sort: axis 2 out of range for \[4, 3\]
// error[clang]: sort: axis 2 out of range for .*\[4, 3\]
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr int axis = 2;
#else
constexpr int axis = 1;
#endif

auto largest(Tensor<float, 4, 3> const& x) {
  auto const [values, index] = sort<axis, true>(x);
  return sum(values) + sum(cast<float>(index));
}
