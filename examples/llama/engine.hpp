// SPDX-License-Identifier: BSL-1.0
// The model of `llama`, behind an interface: the models and the tokenizers are the large parts of the program, and
// compile side by side.
#pragma once

#include "options.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llama {

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string architecture() const = 0;
  virtual std::int64_t vocabulary() const = 0;
  virtual std::int32_t bos() const = 0;
  virtual std::vector<std::int32_t> const& eos() const = 0;
  /// Positions that there is room for.
  virtual std::int64_t capacity() const = 0;

  /// Tokens after the prompt, each handed to `take`. What the text before, or that of --session, began with alike is
  /// not computed again.
  virtual std::vector<std::int32_t> generate(std::vector<std::int32_t> const& prompt,
                                             std::vector<std::int32_t> const& stop,
                                             std::function<bool(std::int32_t)> const& take) = 0;
  /// Tokens after each of some prompts, computed together: each is what it is alone. `take` is told the prompt's place.
  virtual std::vector<std::vector<std::int32_t>> generate_all(
      std::vector<std::vector<std::int32_t>> const& prompts, std::vector<std::int32_t> const& stop,
      std::function<bool(std::size_t, std::int32_t)> const& take) const = 0;
  /// How many tokens of the last prompt were there already.
  virtual std::size_t reused() const = 0;
  struct Score {
    double loss, perplexity;
    std::int64_t tokens;
  };
  virtual Score score(std::vector<std::int32_t> const& ids) const = 0;
  /// Writes the file of --session, if it is given.
  virtual void save_session() const = 0;
};

/// The model of the command line: one of the Llama family, or GPT-2.
std::unique_ptr<Engine> load_engine(Options const& o);

}  // namespace llama
