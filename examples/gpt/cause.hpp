// SPDX-License-Identifier: BSL-1.0
// The loss, and what made it NaN. The loss on the tape is compiled in cause.cpp, beside its program in train.cpp: each
// is most of what the compiler has to do here.
#pragma once

#include "model.hpp"

#include <string>

namespace gpt {

/// Mean negative log-likelihood of the next characters.
constexpr auto loss = [](auto const& model, auto const& tokens, auto const& next) {
  return cross_entropy(dfdx::reshape<-1, vocabulary>(model(tokens)), dfdx::reshape<-1>(next));
};

/// What of the loss or its gradient is the first to be NaN, as dfdx::first_nan says it; empty if nothing is.
std::string cause(Model const& model, Tokens const& tokens, Tokens const& next);

}  // namespace gpt
