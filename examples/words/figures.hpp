// SPDX-License-Identifier: BSL-1.0
// The pictures of a training run, as SVG.
#pragma once

#include <string>

#include "train.hpp"

namespace words {

struct Baselines {
  double uniform, bigram;  // losses of guessing, and of the bigram model on the dev words
};

/// The loss over the steps, with the baselines.
void draw_loss(std::string const& path, History const& history, Settings const& settings,
               Baselines const& baselines, std::string const& subtitle);

/// Histograms of the outputs of the tanh layers, before and after training, and their shares of saturated units.
void draw_activations(std::string const& path, Activations const& before, Activations const& after);

}  // namespace words
