// SPDX-License-Identifier: BSL-1.0
// What the models with batch normalization have in common.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/norm.hpp>

#include "data.hpp"

namespace words {

/// tanh of a normalized linear map, which needs no bias: the normalization has one. As in nn, a call uses the running
/// statistics, and `train` those of the batch.
template <std::size_t In, std::size_t Out>
struct NormedLayer {
  dfdx::nn::Linear<In, Out, false> linear;
  dfdx::nn::BatchNorm<Out> norm;
  DFDX_FIELDS(linear, norm)

  constexpr auto operator()(auto const& x) const { return tanh(norm(linear(x))); }
  constexpr auto train(auto const& x) { return tanh(norm.train(linear(x))); }

  /// Kaiming's rule for tanh, so that a step changes as large a share of each layer's weights.
  void reset(Key key) {
    namespace init = dfdx::nn::init;
    init::kaiming_normal(linear.weight, key, init::calculate_gain(init::Nonlinearity::tanh));
  }
};

inline constexpr auto evaluated = [](auto const& layer, auto const& x) { return layer(x); };
inline constexpr auto trained = [](auto& layer, auto const& x) { return layer.train(x); };

/// Small weights and no bias, so that the first guesses are near uniform.
template <std::size_t Hidden>
void reset_output(dfdx::nn::Linear<Hidden, vocabulary>& out, Key key) {
  dfdx::nn::init::kaiming_normal(out.weight, key, 0.1);
  dfdx::nn::init::zeros(out.bias);
}

}  // namespace words
