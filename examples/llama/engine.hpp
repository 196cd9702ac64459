// SPDX-License-Identifier: BSL-1.0
// The model of `llama`, apart from the tokenizers: both are large parts of the program, and compile side by side.
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
  /// With the model of the command line.
  explicit Engine(Options const& o);
  ~Engine();

  std::string const& architecture() const;
  std::int64_t vocabulary() const;
  std::int32_t bos() const;
  std::vector<std::int32_t> const& eos() const;
  /// Positions that there is room for.
  std::int64_t capacity() const;

  /// Tokens after the prompt, each handed to `take`. What the text before, or that of --session, began with alike is
  /// not computed again.
  std::vector<std::int32_t> generate(std::vector<std::int32_t> const& prompt,
                                     std::vector<std::int32_t> const& stop,
                                     std::function<bool(std::int32_t)> const& take);
  /// Tokens after each of some prompts, computed together: each is what it is alone. `take` is told the prompt's place.
  std::vector<std::vector<std::int32_t>> generate_all(
      std::vector<std::vector<std::int32_t>> const& prompts, std::vector<std::int32_t> const& stop,
      std::function<bool(std::size_t, std::int32_t)> const& take);
  /// How many tokens were computed of prompts and of what was scored: not those that were there already.
  std::int64_t read() const;
  struct Score {
    double loss, perplexity;
    std::int64_t tokens;
  };
  Score score(std::vector<std::int32_t> const& ids);
  /// Writes the file of --session, if it is given.
  void save_session() const;

 private:
  class Running;
  std::unique_ptr<Running> r_;
};

}  // namespace llama
