// SPDX-License-Identifier: BSL-1.0
// Training and evaluation. The compiled programs are in train.cpp.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "../common/loop.hpp"
#include "../common/picture_options.hpp"
#include "model.hpp"

namespace fashion {

using common::Examples, common::Pictures;

/// How a model does on examples.
struct Figures {
  double loss = 0;
  dfdx::metrics::Confusion confusion{static_cast<dfdx::index_t>(classes)};
};

/// What a training run leaves to draw and to log.
struct History : common::Run {
  std::vector<Figures> tests;  // after each epoch
};

/// Called after each step with the number of steps done, the mean loss of late, and the accuracy after the last epoch.
using Report = std::function<void(std::int64_t, double, std::optional<double>)>;
/// Called after each epoch with its number from 1 on, its mean loss and how the model does on the test examples.
using EpochReport = std::function<void(std::int64_t, double, Figures const&)>;

std::int64_t steps_of(common::PictureOptions const& options, Examples const& train);

/// Trains in place. The rate climbs to lr in the first twentieth of the steps and falls to 0 along half a cosine. The
/// model's `brightness` becomes that of the examples. When numbers become NaN or infinite, the model is what it was
/// before.
///
/// Errors    "train_step: step 13: conv2d: made NaN of numbers, in a result of shape [64, 32, 28, 28]; the model is as
///           it was after 12 steps; a smaller --lr may help"; "train: the loss is 20000 after 12 steps; a smaller --lr
///           may help"
History train(Model& model, Examples const& train, Examples const& test,
              common::PictureOptions const& options, Report const& report, EpochReport const& epoch_report);

Figures evaluate(Model const& model, Examples const& examples);

}  // namespace fashion
