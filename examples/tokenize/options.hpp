// SPDX-License-Identifier: BSL-1.0
// The command line.
#pragma once

#include <optional>
#include <string>

namespace tokenize {

struct Options {
  std::string tokenizer, pre, file, cases;
  std::optional<std::string> text;
  std::optional<bool> bos, eos;
  bool special = false, decode = false, pieces = false;
  std::size_t count = 0;
};

/// The options; nothing if --help was asked for and answered. Throws when something is wrong with them.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace tokenize
