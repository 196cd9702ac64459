// SPDX-License-Identifier: BSL-1.0
// error: train_step: the loss changes norm.running_mean of a model that it does not return: return std::pair
// error[clang]: norm.running_mean
// max-lines: 10
#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Net {
  nn::Linear<4, 6> in;
  nn::BatchNorm1d<6> norm;
  DFDX_FIELDS(in, norm)
  constexpr auto train(auto const& x) { return norm.train(in(x)); }
};

#if DFDX_FAIL
constexpr auto loss = [](Net net, auto const& x) { return mean(square(net.train(x))); };
#else
constexpr auto loss = [](Net net, auto const& x) {
  auto const y = mean(square(net.train(x)));
  return std::pair(y, net);
};
#endif

void fit(Net& net, Tensor<float, 8, 4> const& x) {
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  step(net, x);
}
