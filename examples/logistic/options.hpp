// SPDX-License-Identifier: BSL-1.0
// The command line.
#pragma once

#include "data.hpp"

#include <optional>
#include <string>

namespace logistic {

struct Options {
  std::string data = "breast_cancer", target;
  dfdx::data::CsvOptions how;
  double l2 = 1e-3, test = 0.25, tolerance = 1e-8;
  int max_steps = 100;
  bool by_products = false;
  std::uint64_t seed = 1;
};

/// The options; nothing if --help was asked for and answered. Throws when something is wrong with them.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace logistic
