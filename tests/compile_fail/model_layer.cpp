// SPDX-License-Identifier: BSL-1.0
// error: linear: inner dimensions differ: \[64, 30\] x \[20, 10\]
// error[clang]: linear: inner dimensions .*differ: \[64, 30\] x \[20, 10\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Net {
  nn::Linear<5, 30> fc1;
#if DFDX_FAIL
  nn::Linear<20, 10> fc2;
#else
  nn::Linear<30, 10> fc2;
#endif
  DFDX_FIELDS(fc1, fc2)

  constexpr auto operator()(auto const& x) const { return fc2(relu(fc1(x))); }
};

constexpr auto loss = [](auto const& net, auto const& x, auto const& labels) {
  return cross_entropy(net(x), labels);
};

float step(Net& net, Tensor<float, 64, 5> const& x, Tensor<std::int32_t, 64> const& labels) {
  auto train = train_step(loss, optim::SGD{.lr = 0.1f});
  return train(net, x, labels);
}
