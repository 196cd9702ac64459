// SPDX-License-Identifier: BSL-1.0
// What is drawn besides pictures: codes of two numbers.
#pragma once

#include "../common/pictures.hpp"

#include <string>
#include <vector>

namespace autoencoder {

/// The codes of pictures, [N, 2], as points of a plane: each is the first letter of the name of its class.
void draw_codes(std::string const& path, std::vector<float> const& codes, common::Labels const& labels,
                std::vector<std::string> const& classes);

}  // namespace autoencoder
