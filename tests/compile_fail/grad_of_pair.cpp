// SPDX-License-Identifier: BSL-1.0
// A loss with running statistics, as train_step takes it, is given to value_and_grad.
// error: grad: the function must return a scalar Tensor, and returned a pair
// shows: make a function that returns its first
#include <dfdx/dfdx.hpp>

using namespace dfdx;

using Weights = Tensor<float, 3>;

constexpr auto loss = [](Weights w, Tensor<float, 3> const& x) {
  auto const y = sum(square(w * x));
  w = 0.9f * w;
  return std::pair(y, w);
};
#if DFDX_FAIL
constexpr auto differentiated = loss;
#else
constexpr auto differentiated = [](Weights const& w, Tensor<float, 3> const& x) { return loss(w, x).first; };
#endif

Weights slope(Weights const& w, Tensor<float, 3> const& x) {
  return value_and_grad(differentiated)(w, x).second;
}
