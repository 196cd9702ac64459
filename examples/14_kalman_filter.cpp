// SPDX-License-Identifier: BSL-1.0
// Lesson 14: estimation. A Kalman filter follows something that moves in a plane by measurements of its place; how much
// both are disturbed it learns from the measurements alone, by gradients through the filter. Then it runs measurement
// by measurement. Matrices whose size the compiler knows cost what fixed-size libraries need for them.
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr double dt = 0.1;
constexpr std::size_t steps = 500;
using Places = Tensor<double, steps, 2>;

/// What is known of position and velocity, (x, y, vx, vy).
struct Belief {
  Tensor<double, 4> mean;
  Tensor<double, 4, 4> covariance;
  DFDX_FIELDS(mean, covariance)
};
struct Tracker {
  Tensor<double> log_acceleration = 0.0,
                 log_error = 0.0;  // logarithms of standard deviations, which are learnt
  DFDX_FIELDS(log_acceleration, log_error)
  // What DFDX_FIELDS does not name are constants of the program:
  Tensor<double, 4, 4> motion{{1, 0, dt, 0}, {0, 1, 0, dt}, {0, 0, 1, 0}, {0, 0, 0, 1}};  // of a step
  Tensor<double, 2, 4> seen{{1, 0, 0, 0}, {0, 1, 0, 0}};  // of position and velocity the position
};

// --- The filter: predict, compare with the measurement, correct. The second result is the surprise, -log p(z). ---
constexpr auto update = [](Belief const& was, Tracker const& t, Tensor<double, 2> const& z) {
  // What a random acceleration adds to the covariance.
  constexpr double a = dt * dt * dt / 3, b = dt * dt / 2, c = dt;
  Tensor<double, 4, 4> const shaken{{a, 0, b, 0}, {0, a, 0, b}, {b, 0, c, 0}, {0, b, 0, c}};
  auto const mean = matmul(t.motion, was.mean);
  auto const covariance =
      matmul(matmul(t.motion, was.covariance), transpose(t.motion)) + exp(2.0 * t.log_acceleration) * shaken;
  auto const seen = matmul(t.seen, covariance);
  auto const spread = matmul(seen, transpose(t.seen)) + exp(2.0 * t.log_error) * eye<double, 2>();
  auto const off = z - matmul(t.seen, mean);
  auto const gain = transpose(solve(spread, seen));
  auto const surprise = 0.5 * (logdet(spread) + sum(off * solve(spread, off)));
  return std::pair(surprise, Belief{mean + matmul(gain, off), covariance - matmul(gain, seen)});
};

// --- Its noise is what makes the measurements likely. ---
constexpr auto surprise = [](Tracker const& t, Belief const& before, Places const& z) {
  auto const [last, all] = scan(
      [&](auto const& belief, auto const& measured) {
        auto const [surprise, now] = update(belief, t, measured);
        return std::pair(now, surprise);
      },
      before, z);
  return mean(all);
};

int main() {
  Tracker tracker;
  Belief const nothing_known{zeros<double, 4>(), eye<double, 4, 4>() * 100.0};

  // The truth: accelerations of 0.8, errors of 0.3.
  auto const pushes = randn<double, steps, 2>(Key{1}), errors = randn<double, steps, 2>(Key{2});
  auto truth = zeros<double, steps, 2>(), measured = zeros<double, steps, 2>();
  double v[2] = {1, 0}, at[2] = {0, 0};
  for (int k = 0; k < static_cast<int>(steps); ++k)
    for (int i = 0; i < 2; ++i) {
      double const push = 0.8 * pushes(k, i) / std::sqrt(dt);
      at[i] += dt * v[i] + dt * dt / 2 * push;
      v[i] += dt * push;
      truth(k, i) = at[i];
      measured(k, i) = at[i] + 0.3 * errors(k, i);
    }

  auto step = train_step(surprise, optim::Adam{.lr = 0.05});
  double first = 0, last = 0;
  for (int i = 0; i < 150; ++i) {
    last = step(tracker, nothing_known, measured);
    if (i == 0) first = last;
  }
  double const acceleration = std::exp(tracker.log_acceleration.item()),
               error = std::exp(tracker.log_error.item());
  std::printf("surprise %.3f -> %.3f; accelerations of %.2f, errors of %.2f\n", first, last, acceleration,
              error);
  assert(last < first);
  assert(std::fabs(acceleration - 0.8) < 0.15 && std::fabs(error - 0.3) < 0.03);

  // Measurement by measurement, with what was learnt.
  Belief belief = nothing_known;
  auto z = zeros<double, 2>();
  auto next = stateful(update).bind(belief, fixed(tracker), z);  // reads z, changes belief: no allocation
  double raw = 0, filtered = 0;
  auto const start = std::chrono::steady_clock::now();
  for (int k = 0; k < static_cast<int>(steps); ++k) {
    z(0) = measured(k, 0), z(1) = measured(k, 1);
    next();
    for (int i = 0; i < 2; ++i) {
      raw += std::pow(measured(k, i) - truth(k, i), 2);
      filtered += std::pow(belief.mean(i) - truth(k, i), 2);
    }
  }
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
  std::printf("off by %.3f measured, %.3f filtered; %.0f ns for a measurement\n", std::sqrt(raw / steps),
              std::sqrt(filtered / steps), took.count() * 1e9 / steps);
  assert(filtered < 0.5 * raw);
}
