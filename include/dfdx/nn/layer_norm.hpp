// SPDX-License-Identifier: BSL-1.0
// nn::LayerNorm, normalisation over the last axis.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/norm.hpp>

namespace dfdx::nn {

/// LayerNorm - each row brought to mean 0 and variance 1, then scaled and shifted. State: weight [D], bias [D].
/// Programs take eps from the type; a model that runs eagerly or on the tape may set the member.
///
/// Math      y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, var over D, not D - 1
/// Shapes    x: [..., D] -> y: [..., D]
/// Dtypes    floating
/// Errors    "layer_norm: [6] are not the last axes of [4, 5]"
/// Source    Ba, Kiros and Hinton, "Layer normalization", 2016; torch.nn.LayerNorm, initially weight 1 and bias 0
template <std::size_t D, element T = float, double Eps = 1e-5>
struct LayerNorm {
  Tensor<T, D> weight;
  Tensor<T, D> bias;
  DFDX_FIELDS(weight, bias)
  double eps = Eps;

  constexpr auto operator()(operand auto const& x) const { return layer_norm(x, weight, bias, eps); }

  void reset(Key) {
    init::ones(weight);
    init::zeros(bias);
  }
};

}  // namespace dfdx::nn
