// SPDX-License-Identifier: BSL-1.0
// The loss, and what made it NaN. That on the tape is compiled in cause.cpp, beside the programs.
#pragma once

#include "model.hpp"
#include "options.hpp"

#include <string>

namespace lstm {

/// Mean negative log-likelihood of the labels of letters.
inline constexpr auto loss = [](auto const& model, auto const& letters, auto const& labels) {
  return cross_entropy(dfdx::reshape<-1, 2>(model(letters)), dfdx::reshape<-1>(dfdx::transpose(labels)));
};

using Batch = dfdx::Tensor<std::int32_t, batch, longest>;

/// What of the loss or its gradient is the first to be NaN, as dfdx::first_nan says it; empty if nothing is.
template <class Model>
std::string cause(Model const& model, Batch const& letters, Batch const& labels);

}  // namespace lstm
