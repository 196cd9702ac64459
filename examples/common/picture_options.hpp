// SPDX-License-Identifier: BSL-1.0
// The command line of the examples that learn from pictures.
#pragma once

#include <dfdx/core/device.hpp>
#include <dfdx/core/shape.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "precision.hpp"

namespace common {

struct PictureOptions {
  std::string data = "/usr/share/datasets/fashion-mnist", output{};
  std::string load{};  // a model to use, instead of training one
  std::uint64_t seed = 42;
  dfdx::index_t limit = 0;   // examples to train with and to test on, at most; 0 for all
  std::int64_t epochs = 10;  // 0 for as many as make about usual_steps
  double lr = 1e-3;
  std::optional<Precision> precision{};  // an option where it has a value
  std::optional<dfdx::Device> device{};  // likewise
  std::string other_data{};              // what --data may be besides, for --help

  static constexpr std::int64_t usual_steps = 5000;
  std::int64_t epochs_of(std::int64_t steps_of_one) const {
    return epochs > 0 ? epochs : std::max<std::int64_t>((usual_steps + steps_of_one / 2) / steps_of_one, 1);
  }
};

/// The options, by default those given; nothing if --help was asked for and answered. Throws when something is wrong
/// with them.
std::optional<PictureOptions> parse_options(int argc, char** argv, char const* name, char const* what,
                                            PictureOptions defaults);

}  // namespace common
