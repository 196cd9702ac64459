// SPDX-License-Identifier: BSL-1.0
// The loss in training, and what made it NaN. That on the tape is compiled in cause.cpp, beside the programs.
#pragma once

#include <string>
#include <utility>

#include "data.hpp"
#include "train.hpp"

namespace words {

/// It may move running statistics of the model.
inline constexpr auto training_loss = [](auto model, auto const& contexts, auto const& labels) {
  auto const l = cross_entropy(model.train(contexts), labels);
  return std::pair(l, model);
};

template <class Model>
using ContextBatch = Tensor<std::int32_t, batch, Model::context>;

/// What of the loss or its gradient is the first to be NaN, as dfdx::first_nan says it; empty if nothing is.
template <class Model>
std::string cause(Model const& model, ContextBatch<Model> const& contexts,
                  Tensor<std::int32_t, batch> const& labels);

}  // namespace words
