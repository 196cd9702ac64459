// SPDX-License-Identifier: BSL-1.0
// The networks that the benchmarks of training compare with, in libtorch, behind a door that needs no header of it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace torch_trainer {

/// A parameter: its name, which libtorch's has too, and where its numbers are, row-major.
struct Weight {
  std::string name;
  float const* data;
};

/// Trains a network on one thread: "words", "fashion", "mlp" or "gpt". Memory of its tensors is kept for the next of
/// the same size, so that none of its time is spent on asking the system for pages.
class Trainer {
 public:
  Trainer(std::string const& network, std::vector<Weight> const& weights, double lr);
  ~Trainer();
  /// Inputs of the network's type (pictures are float, tokens int) and labels; how many, the network knows.
  void add_batch(void const* inputs, int const* labels);
  /// zero_grad, forward, backward, step of the optimizer; the loss before it.
  float step(std::size_t batch);
  /// The most that its tensors took at any time since it was made, with one batch of those that were added.
  std::size_t peak_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Such as "libtorch 1.13.1".
std::string version();

}  // namespace torch_trainer
