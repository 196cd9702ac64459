// SPDX-License-Identifier: BSL-1.0
// error: mul: shapes do not broadcast: \[4\] x \[5\]
// error[clang]: mul: shapes do not broadcast: .*\[4\] x \[5\]
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

void step(Tensor<float, 4>& state) {
#if DFDX_FAIL
  auto f = stateful([](auto const& s, auto const& x) { return std::pair(sum(s * x), s * 0.5f); });
#else
  auto f = stateful([](auto const& s, auto const& x) { return std::pair(sum(s) * sum(x), s * 0.5f); });
#endif
  f(state, ones<float, 5>());
}
