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

/// What a training run leaves, and where it begins: `first` steps are done, with a mean loss of `recent`.
struct Run {
  std::vector<float> loss;       // of every step
  double seconds = 0, step = 0;  // all of it; the median step, of step() alone
  std::int64_t first = 0;
  double recent = 0;
};

/// Calls prepare(i), step(), a step of the optimizer that returns the loss, and after(i + 1, mean loss of the last
/// `window` steps or so) for each i from r.first to `steps`.
///
/// Errors    "train: the loss is 20000 after 12 steps; a smaller --lr may help"; those of step, with the same advice
template <class Prepare, class Step, class After>
void train_loop(Run& r, std::int64_t steps, std::int64_t window, Prepare const& prepare, Step const& step,
                After const& after) {
  using Clock = std::chrono::steady_clock;
  auto const seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  // Of a step that is watched (dfdx::watch), one sentence says which step it was, and which op made NaN.
  auto const advised = [&] {
    try {
      return static_cast<float>(step());
    } catch (dfdx::error const& e) {
      throw dfdx::error(std::string(e.what()) + "; a smaller --lr may help");
    }
  };
  std::vector<double> times;
  auto const start = Clock::now();
  for (std::int64_t i = r.first; i < steps; ++i) {
    prepare(i);
    auto const before = Clock::now();
    float const l = advised();
    times.push_back(seconds_since(before));
    if (!(l < 1e4f))  // also when it is not a number
      throw dfdx::error("train: the loss is " + std::to_string(l) + " after " + std::to_string(i + 1) +
                        " steps; a smaller --lr may help");
    r.loss.push_back(l);
    r.recent += (static_cast<double>(l) - r.recent) / static_cast<double>(std::min(i + 1, window));
    after(i + 1, r.recent);
  }
  r.seconds = seconds_since(start);
  if (times.empty()) return;
  auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  r.step = *middle;
}

}  // namespace common
