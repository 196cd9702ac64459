// SPDX-License-Identifier: BSL-1.0
// The network of mlp.hpp with batch normalization (Ioffe and Szegedy, ICML 2015) before each tanh.
#pragma once

#include "normed.hpp"

namespace words {

struct NormedMlp {
  static constexpr std::size_t context = 3, width = 10, hidden = 200;

  dfdx::nn::Embedding<vocabulary, width> embedding;
  NormedLayer<context * width, hidden> fc1;
  NormedLayer<hidden, hidden> fc2;
  dfdx::nn::Linear<hidden, vocabulary> out;
  DFDX_FIELDS(embedding, fc1, fc2, out)

  /// Outputs of the tanh layers, by the running statistics, and by those of the batch.
  constexpr auto layers(auto const& contexts) const { return hidden_of(*this, contexts, evaluated); }
  constexpr auto train_layers(auto const& contexts) { return hidden_of(*this, contexts, trained); }

  /// [B, 3] letters -> [B, 27] scores of the next one.
  constexpr auto operator()(auto const& contexts) const { return out(std::get<1>(layers(contexts))); }
  constexpr auto train(auto const& contexts) { return out(std::get<1>(train_layers(contexts))); }

  void reset(Key key) { reset_output(out, key); }

 private:
  static constexpr auto hidden_of(auto& model, auto const& contexts, auto const& apply) {
    auto const h = apply(model.fc1, dfdx::reshape<-1, context * width>(model.embedding(contexts)));
    return std::tuple(h, apply(model.fc2, h));
  }
};

}  // namespace words
