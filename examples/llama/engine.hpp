// SPDX-License-Identifier: BSL-1.0
// The model of `llama`, behind an interface: it and the tokenizers are the two large parts of the program, and compile
// side by side.
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
  explicit Engine(Options const& o);
  ~Engine();

  std::string const& architecture() const;
  std::int64_t vocabulary() const;
  std::int32_t bos() const;
  std::vector<std::int32_t> const& eos() const;

  /// Tokens after the prompt, each handed to `take`.
  std::vector<std::int32_t> generate(std::vector<std::int32_t> const& prompt,
                                     std::vector<std::int32_t> const& stop,
                                     std::function<bool(std::int32_t)> const& take) const;
  struct Score {
    double loss, perplexity;
    std::int64_t tokens;
  };
  Score score(std::vector<std::int32_t> const& ids) const;

 private:
  struct Parts;
  std::unique_ptr<Parts const> parts_;
};

}  // namespace llama
