// SPDX-License-Identifier: BSL-1.0
// The command line.
#pragma once

#include "train.hpp"

#include <optional>
#include <string>

namespace gpt {

struct Options {
  std::string data = "/usr/share/common-licenses/GPL-3", output = "gpt-output", log;
  std::string load;  // a model to go on writing with, instead of training one
  std::string beginning = "\n";
  std::uint64_t seed = 1337;
  std::int64_t length = 500;
  double temperature = 0.8;
  Settings settings;
};

/// The options; nothing if --help was asked for and answered. Throws when something is wrong with them.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace gpt
