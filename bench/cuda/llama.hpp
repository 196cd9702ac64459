// SPDX-License-Identifier: BSL-1.0
// A Llama of random numbers on the CPU and on a device: what of the benchmark nvcc need not read.
#pragma once

#include <dfdx/core/device.hpp>
#include <dfdx/core/shape.hpp>

#include <memory>

namespace bench {

class Llama {
 public:
  /// In the shape of Llama 3.2 1B, matrices in bf16; or a small one.
  Llama(bool small, dfdx::Device device);
  ~Llama();

  dfdx::index_t prompt() const;
  /// Bytes of its matrices, which each token reads.
  double matrix_bytes() const;
  /// Scores of a few tokens beside those of the CPU's decoder, and of a prompt beside those of its tokens one by one:
  /// the largest difference relative to the largest score.
  double error();
  double prompt_error();
  /// The next token after half of a prompt; a whole one.
  void next_token();
  void read_prompt();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
