// SPDX-License-Identifier: BSL-1.0
// Training, evaluation, sampling: what happens to the model. The compiled programs are in train.cpp and text.cpp.
#pragma once

#include "../common/loop.hpp"
#include "data.hpp"

#include <functional>

namespace gpt {

/// nanoGPT's numbers for tiny Shakespeare on a processor but for the rate, twice theirs, with which 2,000 steps end at
/// 1.82 instead of 1.91. The rate climbs to lr in the first twentieth of the steps.
struct Settings {
  std::int64_t steps = 2000;
  float lr = 2e-3f, lr_end = 1e-4f;
  std::string checkpoint, resume;  // files, empty for none
  std::int64_t every = 200;        // steps between checkpoints
  dfdx::Device device{};           // where to train
};

/// Called after each step with the number of steps done and the mean loss of late.
using Report = std::function<void(std::int64_t, double)>;

/// Trains in place; where a run goes on that was stopped, it does so bit by bit. A step that would make the state NaN
/// is undone, and a checkpoint written of what was before if there is to be one.
///
/// Errors    "train_step: step 12: log: made NaN of numbers, in a result of shape [32]; the model is as it was after 11
///           steps; a smaller --lr may help", and where the last good state is; those of load_checkpoint and
///           save_checkpoint
common::Run train(Model& model, Text const& text, Settings const& settings, Key key, Report const& report);

/// Mean negative log-likelihood of the characters of a text, read in pieces of `context`; what is left over at its
/// end, less than a piece, is not read.
double evaluate(Model const& model, std::vector<std::int32_t> const& text);

/// How to go on from a beginning: `length` characters, drawn at a temperature.
std::string sample(Model const& model, Alphabet const& alphabet, std::string const& beginning,
                   std::int64_t length, double temperature, Key key);

}  // namespace gpt
