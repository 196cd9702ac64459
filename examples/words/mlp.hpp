// SPDX-License-Identifier: BSL-1.0
// The neural probabilistic language model of Bengio, Ducharme, Vincent and Jauvin, JMLR 3 (2003), on letters.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/linear.hpp>

#include "data.hpp"

namespace words {

struct Mlp {
  static constexpr std::size_t context = 3, width = 10, hidden = 200;

  dfdx::nn::Embedding<vocabulary, width> embedding;
  dfdx::nn::Linear<context * width, hidden, false> fc1;
  dfdx::nn::Linear<hidden, hidden, false> fc2;
  dfdx::nn::Linear<hidden, vocabulary> out;
  DFDX_FIELDS(embedding, fc1, fc2, out)

  /// Outputs of the tanh layers.
  constexpr auto layers(auto const& contexts) const {
    auto const h = tanh(fc1(dfdx::reshape<-1, context * width>(embedding(contexts))));
    return std::tuple(h, tanh(fc2(h)));
  }

  /// [B, 3] letters -> [B, 27] scores of the next one.
  constexpr auto operator()(auto const& contexts) const { return out(std::get<1>(layers(contexts))); }

  /// Nothing is different in training.
  constexpr auto train_layers(auto const& contexts) const { return layers(contexts); }
  constexpr auto train(auto const& contexts) const { return (*this)(contexts); }

  /// dfdx::init calls this: Kaiming's rule for tanh keeps the activations alive; small output weights make the
  /// first guesses near uniform, so that training does not begin by unlearning.
  void reset(Key key) {
    namespace init = dfdx::nn::init;
    double const gain = init::calculate_gain(init::Nonlinearity::tanh);
    init::kaiming_normal(fc1.weight, dfdx::fold_in(key, 1), gain);
    init::kaiming_normal(fc2.weight, dfdx::fold_in(key, 2), gain);
    init::kaiming_normal(out.weight, dfdx::fold_in(key, 3), 0.1);
    init::zeros(out.bias);
  }
};

}  // namespace words
