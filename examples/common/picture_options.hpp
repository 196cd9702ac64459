// SPDX-License-Identifier: BSL-1.0
// The command line of the examples that learn from pictures.
#pragma once

#include <dfdx/core/shape.hpp>

#include <optional>
#include <string>

namespace common {

struct PictureOptions {
  std::string data = "/usr/share/datasets/fashion-mnist", output{};
  std::string load{};  // a model to use, instead of training one
  std::uint64_t seed = 42;
  dfdx::index_t limit = 0;  // examples to train with and to test on, at most; 0 for all
  std::int64_t epochs = 10;
  double lr = 1e-3;
};

/// The options, by default those given; nothing if --help was asked for and answered. Throws when something is wrong
/// with them.
std::optional<PictureOptions> parse_options(int argc, char** argv, char const* name, char const* what,
                                            PictureOptions defaults);

}  // namespace common
