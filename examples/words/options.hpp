// SPDX-License-Identifier: BSL-1.0
// The command line.
#pragma once

#include "train.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace words {

struct Options {
  std::string data = "/usr/share/dict/words", output = "words-output", model = "mlp", log;
  std::string load;  // a model to use, instead of training one
  std::uint64_t seed = 42;
  Settings settings;
  bool own_data = false;  // --data was given
};

/// The options; nothing if --help was asked for and answered. Throws when something is wrong with them.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace words
