// SPDX-License-Identifier: BSL-1.0
// error: train_step: a model of Tensors, as many as its type says, required: others are trained by optim::Optimizer
// max-lines: 9
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
using Layers = std::vector<nn::Linear<5, 5>>;
#else
using Layers = std::array<nn::Linear<5, 5>, 3>;
#endif
struct Deep {
  Layers layers;
  DFDX_FIELDS(layers)
  constexpr auto operator()(Tensor<float, 8, 5> x) const {
    for (auto const& layer : layers) x = layer(x);
    return x;
  }
};

float step(Deep& model, Tensor<float, 8, 5> const& x) {
  auto train = train_step([](auto const& m, auto const& v) { return mean(square(m(v))); }, optim::SGD{});
  return train(model, x);
}
