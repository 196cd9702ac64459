// SPDX-License-Identifier: BSL-1.0
// Training on the tape: random pieces of a text, AdamW, a rate that climbs and falls.
#pragma once

#include "../common/loop.hpp"

#include <dfdx/models/llama.hpp>
#include <dfdx/models/lora.hpp>

#include <functional>
#include <span>

namespace finetune {

using Ids = std::span<std::int32_t const>;

struct Settings {
  std::int64_t steps = 200, batch = 8, length = 0;
  double lr = 5e-4, warmup = 0.05, weight_decay = 0.01, clip = 1;
};

/// Called after each step with the number of steps done, the mean loss of late, and the tokens read per second.
using Report = std::function<void(std::int64_t, double, double)>;

/// Trains the leaves that require gradients, in place, on pieces of text.length() >= settings.length + 1 tokens.
///
/// Errors    "train: step 13: matmul: made NaN of numbers, in a result of shape [8, 64, 64]; the model is as it was
///           after 12 steps; a smaller --lr may help"; those of common::train_loop
common::Run train(dfdx::models::Llama& model, Ids text, Settings const& settings, dfdx::Key key,
                  Report const& report);

/// The mean of -log p of the tokens of a text, in pieces of `length`.
double evaluate(dfdx::models::Llama const& model, Ids text, std::int64_t length);

}  // namespace finetune
