// SPDX-License-Identifier: BSL-1.0
// The command line.
#pragma once

#include "words.hpp"

#include <cstdint>
#include <optional>

namespace lstm {

inline constexpr std::size_t batch = 64;

struct Settings {
  std::int64_t steps = 6000;
  double lr = 5e-3;
};

struct Options {
  std::string data;  // words with hyphens, instead of a list and patterns
  std::string list = "/usr/share/dict/words", patterns = "/usr/share/hyphen/hyph_en_US.dic";
  std::string model = "bidirectional", output = "lstm-output", log;
  std::string load;  // a model to use, instead of training one
  std::vector<std::string> words;
  std::uint64_t seed = 42;
  Settings settings;
};

/// The options; nothing if --help was asked for and answered. Throws when something is wrong with them.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace lstm
