// SPDX-License-Identifier: BSL-1.0
// Training and evaluation. The compiled programs are in train.cpp.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "data.hpp"

namespace fashion {

/// The rate climbs to lr in the first twentieth of the steps and falls to 0 along half a cosine.
struct Settings {
  std::int64_t epochs = 10;
  double lr = 2e-3, weight_decay = 0.05;
};

/// How a model does on examples.
struct Figures {
  double loss = 0;
  dfdx::metrics::Confusion confusion{static_cast<dfdx::index_t>(classes)};
};

/// What a training run leaves to draw and to log.
struct History {
  std::vector<float> loss;       // of every step's batch
  std::vector<Figures> tests;    // after each epoch
  double seconds = 0, step = 0;  // all of it; the median step, of the optimizer's steps alone
};

/// Called after each step with the number of steps done, the mean loss of late, and the accuracy after the last epoch.
using Report = std::function<void(std::int64_t, double, std::optional<double>)>;
/// Called after each epoch with its number from 1 on, its mean loss and how the model does on the test examples.
using EpochReport = std::function<void(std::int64_t, double, Figures const&)>;

std::int64_t steps_of(Settings const& settings, Examples const& train);

/// Trains in place; the model's `brightness` becomes that of the examples.
///
/// Errors    "train: the loss is nan after 12 steps; a smaller --lr may help"
History train(Model& model, Examples const& train, Examples const& test, Settings const& settings,
              dfdx::Key key, Report const& report, EpochReport const& epoch_report);

Figures evaluate(Model const& model, Examples const& examples);

}  // namespace fashion
