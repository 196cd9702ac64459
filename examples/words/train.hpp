// SPDX-License-Identifier: BSL-1.0
// What goes into training, and what comes out, whatever the model.
#pragma once

#include "../common/loop.hpp"
#include "../common/precision.hpp"

#include <dfdx/core/device.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace words {

inline constexpr std::size_t batch = 32;

struct Settings {
  std::int64_t steps = 200000;
  float lr = 0.1f, lr_end = 0.01f;
  common::Precision precision = common::Precision::f32;
  dfdx::Device device{};  // where to train
};

/// What a training run leaves to draw.
struct History : common::Run {
  std::vector<std::pair<std::int64_t, double>> dev{};  // after so many steps, on part of the dev examples
};

/// Called now and then with the number of steps done and the mean loss of late.
using Report = std::function<void(std::int64_t, double)>;

/// Outputs of each tanh layer on some examples.
struct Activations {
  std::vector<std::vector<float>> layers;
};

}  // namespace words
