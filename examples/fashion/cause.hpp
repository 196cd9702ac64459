// SPDX-License-Identifier: BSL-1.0
// The loss, and what made it NaN. The loss on the tape is compiled in cause.cpp, beside its program in train.cpp.
#pragma once

#include "train.hpp"

#include <string>

namespace fashion {

/// Mean negative log-likelihood of the labels; the key is a number that differs from step to step.
constexpr auto loss = [](auto const& model, auto const& pictures, auto const& labels, auto const& key) {
  auto const scores = model.train(pictures, key);
  return cross_entropy(scores, labels);
};

/// What of the loss or its gradient is the first to be NaN, as dfdx::first_nan says it; empty if nothing is.
std::string cause(Model const& model, dfdx::Tensor<std::uint8_t, batch, side, side> const& pictures,
                  dfdx::Tensor<std::int32_t, batch> const& labels, dfdx::Tensor<std::int64_t> const& key);

}  // namespace fashion
