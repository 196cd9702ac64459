// SPDX-License-Identifier: BSL-1.0
// A network that joins neighbours two by two, then pairs of pairs, and so on, as the dilated convolutions of WaveNet
// (van den Oord et al. 2016) do for the last of their outputs.
#pragma once

#include "normed.hpp"

namespace words {

struct Wavenet {
  static constexpr std::size_t context = 8, width = 10, hidden = 68;

  dfdx::nn::Embedding<vocabulary, width> embedding;
  NormedLayer<2 * width, hidden> pairs;
  NormedLayer<2 * hidden, hidden> fours;
  NormedLayer<2 * hidden, hidden> eights;
  dfdx::nn::Linear<hidden, vocabulary> out;
  DFDX_FIELDS(embedding, pairs, fours, eights, out)

  /// Outputs of the tanh layers, [4 B, 68], [2 B, 68], [B, 68]: by the running statistics, and by those of the batch.
  constexpr auto layers(auto const& contexts) const { return hidden_of(*this, contexts, evaluated); }
  constexpr auto train_layers(auto const& contexts) { return hidden_of(*this, contexts, trained); }

  /// [B, 8] letters -> [B, 27] scores of the next one.
  constexpr auto operator()(auto const& contexts) const { return out(std::get<2>(layers(contexts))); }
  constexpr auto train(auto const& contexts) { return out(std::get<2>(train_layers(contexts))); }

  void reset(Key key) { reset_output(out, key); }

 private:
  // Neighbours lie side by side in memory: to join them is to read the same numbers as half as many rows. A layer
  // treats all places alike, and its normalization counts them as one batch.
  static constexpr auto hidden_of(auto& model, auto const& contexts, auto const& apply) {
    auto const two = apply(model.pairs, dfdx::reshape<-1, 2 * width>(model.embedding(contexts)));
    auto const four = apply(model.fours, dfdx::reshape<-1, 2 * hidden>(two));
    return std::tuple(two, four, apply(model.eights, dfdx::reshape<-1, 2 * hidden>(four)));
  }
};

}  // namespace words
