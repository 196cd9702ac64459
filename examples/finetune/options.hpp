// SPDX-License-Identifier: BSL-1.0
// The command line of `finetune`.
#pragma once

#include "train.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace finetune {

struct Options {
  std::string model, data, tokenizer, output = "finetune-output", log;
  std::int64_t validation = 16384;  // tokens at most
  std::uint64_t seed = 42;
  Settings settings;
  dfdx::models::LoraConfig lora{.rank = 0};  // of rank 0: the whole model is trained
};

/// Nothing if --help was asked for and answered.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace finetune
