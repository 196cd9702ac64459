// SPDX-License-Identifier: BSL-1.0
// The command line of `llama`.
#pragma once

#include <dfdx/core/device.hpp>
#include <dfdx/models/sampling.hpp>

#include <optional>
#include <string>
#include <vector>

namespace llama {

struct Options {
  std::string model, lora, tokenizer, file, perplexity, dtype = "f32", system, cache = "f32", session;
  std::vector<std::string> stop, prompts;
  bool chat = false, stats = false;
  long tokens = 256, context = 0, threads = 0, keep = 1;
  dfdx::Device device{};
  dfdx::models::SamplingOptions sampling{.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05};
};

/// Nothing if --help was asked for, or no argument given, and answered.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace llama
