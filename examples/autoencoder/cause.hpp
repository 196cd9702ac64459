// SPDX-License-Identifier: BSL-1.0
// The loss, and what made it NaN. That on the tape is compiled in cause.cpp, beside the programs.
#pragma once

#include "../common/pictures.hpp"
#include "model.hpp"

#include <string>

namespace autoencoder {

/// Mean squared error of a point. Nothing is random here.
inline constexpr auto loss = [](auto const& model, auto const& pictures, auto const&) {
  auto const x = common::brightness(pictures);
  return mse_loss(model(x), x);
};

/// What of the loss or its gradient is the first to be NaN, as dfdx::first_nan says it; empty if nothing is.
template <std::size_t Side, std::size_t Code>
std::string cause(Model<Side, Code> const& model,
                  dfdx::Tensor<std::uint8_t, common::batch, Side, Side> const& pictures,
                  dfdx::Tensor<std::int64_t> const& key);

}  // namespace autoencoder
