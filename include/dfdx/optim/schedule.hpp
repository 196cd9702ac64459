// SPDX-License-Identifier: BSL-1.0
// Learning rates as functions of the step number, counted from 0. They hold no state: assign the value to an
// optimizer's lr before each step.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <dfdx/value/fields.hpp>

namespace dfdx::optim {

namespace detail {

// From a at t = 0 to b at t = 1.
inline double cosine_between(double a, double b, double t) {
  return b + (a - b) * 0.5 * (1 + std::cos(3.141592653589793 * t));
}
// How much of `whole` has passed, 1 at most.
constexpr double passed(std::int64_t step, std::int64_t whole) {
  return step >= whole ? 1 : static_cast<double>(step < 0 ? 0 : step) / static_cast<double>(whole);
}

}  // namespace detail

/// ConstantSchedule - the same rate throughout, but for a factor in the first steps.
///
/// Math      lr factor while step < steps, then lr
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.ConstantLR
struct ConstantSchedule {
  double lr = 1e-3, factor = 1;
  std::int64_t steps = 0;

  constexpr double operator()(std::int64_t step) const { return step < steps ? lr * factor : lr; }
};

/// StepSchedule - the rate is multiplied by gamma every `every` steps.
///
/// Math      lr gamma^floor(step / every)
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none; `every` below 1 counts as 1
/// Source    torch.optim.lr_scheduler.StepLR
struct StepSchedule {
  double lr = 1e-3;
  std::int64_t every = 1000;
  double gamma = 0.1;

  double operator()(std::int64_t step) const {
    return lr * std::pow(gamma, static_cast<double>(step / (every < 1 ? 1 : every)));
  }
};

/// CosineSchedule - half a cosine from lr down to lr_end, reached at `steps` and kept.
///
/// Math      lr_end + (lr - lr_end) (1 + cos(pi step / steps)) / 2
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none; with `steps` below 1 it is lr_end throughout
/// Source    Loshchilov and Hutter, "SGDR", ICLR 2017; torch.optim.lr_scheduler.CosineAnnealingLR
struct CosineSchedule {
  double lr = 1e-3;
  std::int64_t steps = 1000;
  double lr_end = 0;

  double operator()(std::int64_t step) const {
    return step >= steps ? lr_end : detail::cosine_between(lr, lr_end, detail::passed(step, steps));
  }
};

/// WarmupSchedule - a straight climb to the first rate of another schedule, which follows: WarmupSchedule{100,
/// cosine}.
///
/// Math      next(0) (step + 1) / (steps + 1) while step < steps, then next(step - steps)
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    Goyal et al., "Accurate, large minibatch SGD", 2017
template <class Next>
struct WarmupSchedule {
  std::int64_t steps = 0;
  Next next{};

  double operator()(std::int64_t step) const {
    if (step >= steps) return next(step - steps);
    return next(0) * static_cast<double>(step + 1) / static_cast<double>(steps + 1);
  }
};
template <class Next>
WarmupSchedule(std::int64_t, Next) -> WarmupSchedule<Next>;

/// MultiStepSchedule - the rate is multiplied by gamma at each milestone: MultiStepSchedule<2>{.lr = 0.1, .milestones =
/// {30, 80}}.
///
/// Math      lr gamma^n, n the milestones reached
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.MultiStepLR
template <std::size_t N>
struct MultiStepSchedule {
  double lr = 1e-3;
  std::array<std::int64_t, N> milestones{};
  double gamma = 0.1;

  constexpr double operator()(std::int64_t step) const {
    double r = lr;
    for (std::int64_t m : milestones)
      if (step >= m) r *= gamma;
    return r;
  }
};

/// ExponentialSchedule - the rate is multiplied by gamma in every step.
///
/// Math      lr gamma^step
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.ExponentialLR
struct ExponentialSchedule {
  double lr = 1e-3, gamma = 0.999;

  double operator()(std::int64_t step) const { return lr * std::pow(gamma, static_cast<double>(step)); }
};

/// CosineRestartsSchedule - half a cosine from lr to lr_end, again and again, each `growth` times as long as the one
/// before.
///
/// Math      lr_end + (lr - lr_end) (1 + cos(pi t / T)) / 2, t the steps since the last restart, T = period, period
///           growth, ...
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none; a period or growth below 1 counts as 1
/// Source    Loshchilov and Hutter, "SGDR", ICLR 2017; torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
struct CosineRestartsSchedule {
  double lr = 1e-3;
  std::int64_t period = 1000, growth = 1;
  double lr_end = 0;

  double operator()(std::int64_t step) const {
    std::int64_t whole = period < 1 ? 1 : period;
    if (growth <= 1) step %= whole;
    else
      for (; step >= whole; whole *= growth) step -= whole;
    return detail::cosine_between(lr, lr_end, detail::passed(step, whole));
  }
};

/// LinearSchedule - a straight line from lr start to lr end, reached at `steps` and kept.
///
/// Math      lr (start + (end - start) min(1, step / steps))
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.LinearLR
struct LinearSchedule {
  double lr = 1e-3;
  std::int64_t steps = 5;
  double start = 1.0 / 3, end = 1;

  constexpr double operator()(std::int64_t step) const {
    return lr * (start + (end - start) * detail::passed(step, steps));
  }
};

/// PolynomialSchedule - down to 0 at `steps` by a power of what is left.
///
/// Math      lr (1 - min(1, step / steps))^power
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.PolynomialLR
struct PolynomialSchedule {
  double lr = 1e-3;
  std::int64_t steps = 5;
  double power = 1;

  double operator()(std::int64_t step) const { return lr * std::pow(1 - detail::passed(step, steps), power); }
};

/// OneCycleSchedule - up from lr / divisor to lr over the first `rise` of the steps, then far down; kept at the end.
///
/// Math      half cosines (or lines) from lr / divisor at 0 to lr at rise steps - 1 to lr / divisor / last_divisor at
///           steps - 1; with .three_phases as long down to lr / divisor in between
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    Smith and Topin, "Super-convergence", 2018; torch.optim.lr_scheduler.OneCycleLR
struct OneCycleSchedule {
  double lr = 1e-3;
  std::int64_t steps = 1000;
  double rise = 0.3, divisor = 25, last_divisor = 1e4;
  bool linear = false, three_phases = false;

  double operator()(std::int64_t step) const {
    double const low = lr / divisor, last = static_cast<double>(steps - 1);
    double const top = rise * static_cast<double>(steps) - 1;
    auto const now = static_cast<double>(step);
    constexpr double least = 1e-9;  // where 0.1 * 10 - 1 is one operation, it is not 0
    if (now + least < top) return between(low, lr, now / top);  // of which there may be no step at all
    double const down = three_phases ? 2 * rise * static_cast<double>(steps) - 2 : top;
    if (three_phases && now + least < down) return between(lr, low, (now - top) / (down - top));
    double const t = now >= last ? 1 : (now - down) / (last - down);
    return between(three_phases ? low : lr, low / last_divisor, t);
  }

 private:
  double between(double a, double b, double t) const {
    return linear ? a + (b - a) * t : detail::cosine_between(a, b, t);
  }
};

/// SequentialSchedule - one schedule until a step, then another, which counts from there: SequentialSchedule{9, a, b}.
///
/// Math      first(step) while step < at, then next(step - at)
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.SequentialLR
template <class First, class Next>
struct SequentialSchedule {
  std::int64_t at = 0;
  First first{};
  Next next{};

  constexpr double operator()(std::int64_t step) const { return step < at ? first(step) : next(step - at); }
};
template <class First, class Next>
SequentialSchedule(std::int64_t, First, Next) -> SequentialSchedule<First, Next>;

/// ReduceOnPlateau - the rate falls by a factor when a measure, given now and then, has not improved more than
/// `patience` times in a row:
///
///   optim::ReduceOnPlateau plateau{.lr = 0.1};
///   step.optimizer().lr = plateau(validation_loss);
///
/// Unlike the others it remembers; its members below the options are what a run that goes on later must keep.
///
/// Math      lr = max(lr factor, lr_end) if that is lower by more than eps. Better is below best (1 - threshold), with
///           .absolute below best - threshold; with .largest above, and + for -. For `cooldown` times after a fall
///           nothing counts as bad
/// Shapes    none: a number for a number
/// Dtypes    double
/// Errors    none
/// Source    torch.optim.lr_scheduler.ReduceLROnPlateau
struct ReduceOnPlateau {
  double lr = 1e-3, factor = 0.1;
  int patience = 10;
  double threshold = 1e-4;
  int cooldown = 0;
  double lr_end = 0, eps = 1e-8;
  bool largest = false, absolute = false;

  bool seen = false;
  double best = 0;
  int bad = 0, cooling = 0;
  DFDX_STATE(lr, factor, patience, threshold, cooldown, lr_end, eps, largest, absolute, seen, best, bad,
             cooling)

  double operator()(double measure) {
    if (is_better(measure)) {
      best = measure;
      seen = true;
      bad = 0;
    } else {
      ++bad;
    }
    if (cooling > 0) {
      --cooling;
      bad = 0;
    }
    if (bad > patience) {
      double const next = lr * factor > lr_end ? lr * factor : lr_end;
      if (lr - next > eps) lr = next;
      cooling = cooldown;
      bad = 0;
    }
    return lr;
  }

 private:
  bool is_better(double measure) const {
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (!seen) return largest ? measure > -inf : measure < inf;
    double const margin = (largest ? 1 : -1) * threshold,
                 bar = absolute ? best + margin : best * (1 + margin);
    return largest ? measure > bar : measure < bar;
  }
};

}  // namespace dfdx::optim
