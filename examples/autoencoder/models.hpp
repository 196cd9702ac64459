// SPDX-License-Identifier: BSL-1.0
// The models there are. Each has a .cpp of its own, in which its programs are compiled.
#pragma once

#include "../common/picture_options.hpp"
#include "../common/pictures.hpp"

#include <string>
#include <vector>

namespace autoencoder {

template <std::size_t Side>
struct Data {
  common::ExamplesOf<Side> training, test;
  std::vector<std::string> classes;  // names
};

/// 8 x 8 points as 2 numbers, and 28 x 28 points as 32.
void run_on(common::PictureOptions const& options, Data<8> const& data);
void run_on(common::PictureOptions const& options, Data<28> const& data);

}  // namespace autoencoder
