// SPDX-License-Identifier: BSL-1.0
// error: call to non-.constexpr. function .void dfdx::raise
// error[clang]: must be initialized by a constant expression
// shows: a value that is no argument, nor in DFDX_FIELDS of one
// max-lines: 60
#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Net {
  nn::Linear<4, 8> in;
  nn::Linear<8, 3> out;
#if DFDX_FAIL
  DFDX_FIELDS(in)
#else
  DFDX_FIELDS(in, out)
#endif
  constexpr auto operator()(auto const& x) const { return out(in(x)); }
};

void fit(Net& net, Tensor<float, 8, 4> const& x) {
  auto step =
      train_step([](auto const& m, auto const& v) { return mean(square(m(v))); }, optim::SGD{.lr = 0.1f});
  step(net, x);
}
