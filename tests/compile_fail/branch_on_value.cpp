// SPDX-License-Identifier: BSL-1.0
// error: call to non-.constexpr. function .void dfdx::raise
// error[clang]: must be initialized by a constant expression
// shows: item: no number while a function is compiled; use where, cond
// max-lines: 50
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr auto huber = [](Tensor<double> const& x) {
  if (x > 1.0) return x - 0.5;
  return x * x * 0.5;
};
#else
constexpr auto huber = [](Tensor<double> const& x) { return where(x > 1.0, x - 0.5, x * x * 0.5); };
#endif

double slope(Tensor<double> const& x) { return grad(huber)(x).item(); }
