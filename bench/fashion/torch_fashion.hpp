// SPDX-License-Identifier: BSL-1.0
// The training step that bench_fashion compares with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace torch_fashion {

/// Trains the network in libtorch, with Adam, on one thread.
class Trainer {
 public:
  /// Weights and biases of the four layers in turn.
  Trainer(std::vector<float const*> const& weights, double lr);
  ~Trainer();
  /// 64 pictures of 28 x 28, and their labels.
  void add_batch(float const* pictures, int const* labels);
  /// Forward, backward, update; the loss before it.
  float step(std::size_t batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string version();

}  // namespace torch_fashion
