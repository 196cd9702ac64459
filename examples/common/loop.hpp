// SPDX-License-Identifier: BSL-1.0
// What all training loops do besides training: watch the loss and the clock.
#pragma once

#include <dfdx/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace common {

/// What a training run leaves.
struct Run {
  std::vector<float> loss;       // of every step
  double seconds = 0, step = 0;  // all of it; the median step, of step() alone
};

/// Calls prepare(i), step(), a step of the optimizer that returns the loss, and after(i + 1, mean loss of the last
/// `window` steps or so) for each i below `steps`.
///
/// Errors    "train: the loss is nan after 12 steps; a smaller --lr may help"
template <class Prepare, class Step, class After>
Run train_loop(std::int64_t steps, std::int64_t window, Prepare const& prepare, Step const& step,
               After const& after) {
  using Clock = std::chrono::steady_clock;
  auto const seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  Run r;
  r.loss.reserve(static_cast<std::size_t>(steps));
  std::vector<double> times;
  double recent = 0;
  auto const start = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    prepare(i);
    auto const before = Clock::now();
    float const l = step();
    times.push_back(seconds_since(before));
    if (!(l < 1e4f))  // also when it is not a number
      throw dfdx::error("train: the loss is " + std::to_string(l) + " after " + std::to_string(i + 1) +
                        " steps; a smaller --lr may help");
    r.loss.push_back(l);
    recent += (static_cast<double>(l) - recent) / static_cast<double>(std::min(i + 1, window));
    after(i + 1, recent);
  }
  r.seconds = seconds_since(start);
  if (!times.empty()) {
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    r.step = *middle;
  }
  return r;
}

}  // namespace common
