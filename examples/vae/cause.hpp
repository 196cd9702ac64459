// SPDX-License-Identifier: BSL-1.0
// The loss, and what made it NaN. That on the tape is compiled in cause.cpp, beside its program in main.cpp.
#pragma once

#include "../common/pictures.hpp"
#include "model.hpp"

#include <string>

namespace vae {

/// The negative evidence lower bound of a picture: what its points cost given a code drawn from the encoder's
/// distribution, and how far that is from N(0, 1).
constexpr auto loss = [](auto const& model, auto const& pictures, auto const& key) {
  auto const x = dfdx::flatten<1>(common::brightness(pictures));
  auto const [mean, log_variance] = model.encode(x);
  auto const z = mean + exp(log_variance * 0.5) * dfdx::randn_like(mean, key);
  auto const points = sum(dfdx::bce_with_logits<dfdx::Reduction::none>(model.decode(z), x));
  auto const divergence = sum(exp(log_variance) + square(mean) - 1.0 - log_variance) * 0.5;
  return (points + divergence) / static_cast<double>(common::batch);
};

/// What of the loss or its gradient is the first to be NaN, as dfdx::first_nan says it; empty if nothing is.
std::string cause(Model const& model, dfdx::Tensor<std::uint8_t, common::batch, 28, 28> const& pictures,
                  dfdx::Tensor<std::int64_t> const& key);

}  // namespace vae
