// SPDX-License-Identifier: BSL-1.0
// error: batch_norm: more than one value for each channel required to train, got \[1, 4\]
// error[clang]: batch_norm: more than one .*value for each channel .*required to train, got \[1, 4\]
// max-lines: 10
#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Net {
  nn::Linear<4, 4> linear;
  nn::BatchNorm1d<4> norm;
  DFDX_FIELDS(linear, norm)
  constexpr auto train(auto const& x) { return norm.train(linear(x)); }
};

constexpr auto loss = [](auto net, auto const& x) {
  auto const y = net.train(x);
  return std::pair(mean(square(y)), net);
};

#if DFDX_FAIL
using Batch = Tensor<float, 1, 4>;
#else
using Batch = Tensor<float, 2, 4>;
#endif
auto step(Net& net, Batch const& x) { return train_step(loss, optim::SGD{})(net, x); }
