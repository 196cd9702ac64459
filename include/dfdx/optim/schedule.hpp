// SPDX-License-Identifier: BSL-1.0
// Learning rates as functions of the step number, counted from 0. They hold no state: assign the value to an
// optimizer's lr before each step.
#pragma once

#include <cmath>
#include <cstdint>

namespace dfdx::optim {

/// ConstantSchedule - the same rate throughout.
///
/// Math      lr
/// Shapes    none: a number for a number
/// Dtypes    float
/// Errors    none
/// Source    torch.optim.lr_scheduler.ConstantLR, with factor 1
struct ConstantSchedule {
  float lr = 1e-3f;

  constexpr float operator()(std::int64_t) const { return lr; }
};

/// StepSchedule - the rate is multiplied by gamma every `every` steps.
///
/// Math      lr gamma^floor(step / every)
/// Shapes    none: a number for a number
/// Dtypes    float
/// Errors    none; `every` below 1 counts as 1
/// Source    torch.optim.lr_scheduler.StepLR
struct StepSchedule {
  float lr = 1e-3f;
  std::int64_t every = 1000;
  float gamma = 0.1f;

  float operator()(std::int64_t step) const {
    return lr * std::pow(gamma, static_cast<float>(step / (every < 1 ? 1 : every)));
  }
};

/// CosineSchedule - half a cosine from lr down to lr_end, reached at `steps` and kept.
///
/// Math      lr_end + (lr - lr_end) (1 + cos(pi step / steps)) / 2
/// Shapes    none: a number for a number
/// Dtypes    float
/// Errors    none; with `steps` below 1 it is lr_end throughout
/// Source    Loshchilov and Hutter, "SGDR", ICLR 2017; torch.optim.lr_scheduler.CosineAnnealingLR
struct CosineSchedule {
  float lr = 1e-3f;
  std::int64_t steps = 1000;
  float lr_end = 0;

  float operator()(std::int64_t step) const {
    if (step >= steps) return lr_end;
    double const t = static_cast<double>(step < 0 ? 0 : step) / static_cast<double>(steps);
    return static_cast<float>(lr_end + (lr - lr_end) * 0.5 * (1 + std::cos(3.141592653589793 * t)));
  }
};

/// WarmupSchedule - a straight climb to the first rate of another schedule, which follows: WarmupSchedule{100,
/// cosine}.
///
/// Math      next(0) (step + 1) / (steps + 1) while step < steps, then next(step - steps)
/// Shapes    none: a number for a number
/// Dtypes    float
/// Errors    none
/// Source    Goyal et al., "Accurate, large minibatch SGD", 2017
template <class Next>
struct WarmupSchedule {
  std::int64_t steps = 0;
  Next next{};

  float operator()(std::int64_t step) const {
    if (step >= steps) return next(step - steps);
    return next(0) * static_cast<float>(step + 1) / static_cast<float>(steps + 1);
  }
};
template <class Next>
WarmupSchedule(std::int64_t, Next) -> WarmupSchedule<Next>;

}  // namespace dfdx::optim
