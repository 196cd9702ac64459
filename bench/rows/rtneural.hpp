// SPDX-License-Identifier: BSL-1.0
// Layers of RTNeural on one sample, behind a door that needs no header of it.
#pragma once

#include <memory>
#include <string>

namespace rtneural_layers {

/// Weights - of a layer, row-major as PyTorch has them: of inputs, of states, biases.
struct Weights {
  float const *input, *state = nullptr, *bias, *state_bias = nullptr;
};

/// Layer - "dense", "gru", "lstm" or "conv1d" of so many inputs and outputs: 16 or 64. Convolutions look at 15 and 63
/// samples.
class Layer {
 public:
  virtual ~Layer() = default;
  /// The layer's outputs for the next sample.
  virtual float const* step(float const* x) = 0;
};
std::unique_ptr<Layer> make(std::string const& name, int size, Weights const& weights);

}  // namespace rtneural_layers
