// SPDX-License-Identifier: BSL-1.0
// Training, evaluation, sampling: what happens to the model. The compiled programs are in train.cpp.
#pragma once

#include "../common/loop.hpp"
#include "model.hpp"

#include <functional>

namespace words {

inline constexpr std::size_t batch = 32;

struct Settings {
  std::int64_t steps = 200000;
  float lr = 0.1f, lr_end = 0.01f;
};

/// What a training run leaves to draw.
struct History : common::Run {
  std::vector<std::pair<std::int64_t, double>> dev;  // after so many steps, on part of the dev examples
};

/// The learning rate of a step: constant for the first half, then straight down to lr_end.
float rate_at(Settings const& settings, std::int64_t step);

/// Called now and then with the number of steps done and the mean loss of late.
using Report = std::function<void(std::int64_t, double)>;

/// Trains in place.
///
/// Errors    "train: the loss is nan after 12 steps; a smaller --lr may help"
History train(Model& model, Split const& data, Settings const& settings, Key key, Report const& report);

/// Mean negative log-likelihood of the examples, or of the first `limit`.
double evaluate(Model const& model, Examples const& examples, dfdx::index_t limit = -1);

/// A word drawn from the model, at most 30 letters long.
std::string sample(Model const& model, Key key);

/// Outputs of the two tanh layers on some examples.
struct Activations {
  std::array<std::vector<float>, 2> layers;
};
Activations activations(Model const& model, Examples const& examples);

}  // namespace words
