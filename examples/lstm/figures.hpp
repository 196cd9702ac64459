// SPDX-License-Identifier: BSL-1.0
// Pictures of a run.
#pragma once

#include <dfdx/report/svg.hpp>

#include <span>

#include "options.hpp"

namespace lstm {

/// Losses over steps, those of the words to choose by as points.
void draw_loss(std::string const& path, std::vector<float> const& train,
               std::vector<dfdx::report::Point> const& dev, std::string const& subtitle);

/// How probable breaks are behind the letters of words, and where they are.
void draw_breaks(std::string const& path, std::span<Word const> words, std::vector<Probabilities> const& p);

}  // namespace lstm
