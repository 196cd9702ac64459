// SPDX-License-Identifier: BSL-1.0
// error: call to non-.constexpr. function .void dfdx::raise
// error[clang]: must be initialized by a constant expression
// shows: a value that is no argument, nor in DFDX_FIELDS of one
// max-lines: 60
#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Net {
  Tensor<float, 3> weight;
#if DFDX_FAIL
  Tensor<float, 3> window;  // not in DFDX_FIELDS, and without numbers
#else
  Tensor<float, 3> window{1, 2, 1};
#endif
  DFDX_FIELDS(weight)
  constexpr auto operator()(auto const& x) const { return sum(weight * x * window); }
};

float apply(Net const& net, Tensor<float, 3> const& x) {
  return compile([](Net const& m, Tensor<float, 3> const& v) { return m(v); })(net, x).item();
}
