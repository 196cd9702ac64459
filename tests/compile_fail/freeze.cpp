// SPDX-License-Identifier: BSL-1.0
// error: freeze: no parameter is called layers.0.\*
// error[clang]: layers.0.\*
// max-lines: 10
#include <dfdx/dfdx.hpp>

using namespace dfdx;

using Net = nn::Sequential<nn::Linear<4, 6>, nn::Tanh, nn::Linear<6, 1>>;

#if DFDX_FAIL
constexpr auto rule = optim::freeze<"layers.0.*">(optim::SGD{.lr = 0.1f});
#else
constexpr auto rule = optim::freeze<"0.*">(optim::SGD{.lr = 0.1f});
#endif

void fit(Net& net, Tensor<float, 8, 4> const& x) {
  auto step = train_step([](auto const& m, auto const& v) { return mean(square(m(v))); }, rule);
  step(net, x);
}
