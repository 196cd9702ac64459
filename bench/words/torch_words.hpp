// SPDX-License-Identifier: BSL-1.0
// The same network and step in libtorch, behind a door that needs no header of it.
#pragma once

#include <memory>
#include <string>

namespace torch_words {

/// Row-major, with the shapes of words::Model.
struct Weights {
  float const *embedding, *fc1, *fc2, *out, *bias;
};

class Trainer {
 public:
  Trainer(Weights const& initial, float lr);
  ~Trainer();
  void add_batch(int const* contexts, int const* labels);
  /// zero_grad, forward, backward, SGD step on one of the batches; the loss before it.
  float step(std::size_t batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Such as "libtorch 1.13.1".
std::string version();

}  // namespace torch_words
