// SPDX-License-Identifier: BSL-1.0
// The network of examples/words (Bengio et al. 2003) and its loss, alone.
#pragma once

#include <dfdx/dfdx.hpp>

namespace words {

constexpr int batch = 32, context = 3, letters = 27, width = 10, hidden = 200;

struct Model {
  dfdx::nn::Embedding<letters, width> embedding;
  dfdx::nn::Linear<context * width, hidden, false> fc1;
  dfdx::nn::Linear<hidden, hidden, false> fc2;
  dfdx::nn::Linear<hidden, letters> out;
  DFDX_FIELDS(embedding, fc1, fc2, out)

  constexpr auto operator()(auto const& x) const {
    auto const e = dfdx::reshape<batch, context * width>(embedding(x));
    return out(tanh(fc2(tanh(fc1(e)))));
  }
};

using Contexts = dfdx::Tensor<std::int32_t, batch, context>;
using Labels = dfdx::Tensor<std::int32_t, batch>;

constexpr auto loss = [](Model const& m, Contexts const& x, Labels const& y) {
  return cross_entropy(m(x), y);
};

}  // namespace words
