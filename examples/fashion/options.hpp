// SPDX-License-Identifier: BSL-1.0
// The command line.
#pragma once

#include <optional>
#include <string>

#include "train.hpp"

namespace fashion {

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist", output = "fashion-output";
  std::string load;  // a model to test, instead of training one
  std::uint64_t seed = 42;
  dfdx::index_t limit = 0;  // examples to train with and to test on, at most; 0 for all
  Settings settings;
};

/// The options; nothing if --help was asked for and answered. Throws when something is wrong with them.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace fashion
