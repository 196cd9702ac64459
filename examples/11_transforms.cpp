// SPDX-License-Identifier: BSL-1.0
// Lesson 11: transforms. Second derivatives, gradients of each example, differential equations, gradients in a loss,
// and less memory: each is a function of a function, and they compose.
#include <cassert>
#include <cmath>
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

// --- Newton's method: the joints of 23 shuttle flights before the Challenger's last, and the temperature at launch
// (Dalal, Fowlkes and Hoadley, Risk analysis of the space shuttle, JASA 84, 1989). Did a joint show distress? ---
constexpr std::size_t flights = 23;
Tensor<double, flights> fahrenheit() {
  return Tensor<double, flights>::from(
      {66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58});
}
Tensor<double, flights> distress() {
  return Tensor<double, flights>::from({0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1});
}

// One flight: w = (intercept, slope), temperature from the mean.
constexpr auto flight_loss = [](Tensor<double, 2> const& w, Tensor<double> const& t,
                                Tensor<double> const& y) {
  return bce_with_logits(select<0, 0>(w) + select<0, 1>(w) * (t - 69.5), y);
};
// All of them: the same function, mapped.
constexpr auto loss = [](Tensor<double, 2> const& w, Tensor<double, flights> const& t,
                         Tensor<double, flights> const& y) {
  return sum(vmap(flight_loss, in_axes<unmapped, 0, 0>)(w, t, y));
};

// --- A differential equation whose right side is learnt: dx/dt = tanh(W x), by scan. ---
struct Field {
  Tensor<double, 2, 2> w;
  DFDX_FIELDS(w)
  constexpr auto operator()(auto const& x) const { return tanh(matmul(w, x)); }
};
constexpr std::size_t steps = 100;
constexpr auto orbit = [](Field const& field, Tensor<double, 2> const& start) {
  constexpr double h = 0.1;
  auto const midpoint = [&](auto const& x) {
    auto const next = x + h * field(x + 0.5 * h * field(x));
    return std::pair(next, next);
  };
  return scan<steps>(midpoint, start).second;
};
constexpr auto miss = [](Field const& field, Tensor<double, 2> const& start,
                         Tensor<double, steps, 2> const& wanted) {
  return mean(square(orbit(field, start) - wanted));
};

// --- A gradient in a loss: how steep a critic is, and how its parameters should change to make it less so. ---
struct Critic {
  nn::Linear<2, 8> first;
  nn::Linear<8, 1> last;
  DFDX_FIELDS(first, last)
  constexpr auto operator()(auto const& x) const { return last(tanh(first(x))); }
};
constexpr auto score = [](Tensor<float, 2> const& x, Critic const& critic) { return sum(critic(x)); };
constexpr auto penalty = [](Critic const& critic, Tensor<float, 16, 2> const& x) {
  auto const slopes = vmap(grad(score), in_axes<0, unmapped>)(x, critic);  // of each example by its input
  return mean(square(norm<-1>(slopes) - 1.0f));
};

int main() {
  // Newton: w -= H^-1 g. The Hessian is a Tensor<double, 2, 2>.
  auto const t = fahrenheit(), y = distress();
  auto gradient = value_and_grad(loss);
  auto curvature = hessian(loss);
  Tensor<double, 2> w{0.0, 0.0};
  for (int i = 0; i < 10; ++i) {
    auto const [value, g] = gradient(w, t, y);
    std::printf("%d: loss %.6f, gradient %.1e\n", i, value.item(), std::hypot(g(0), g(1)));
    w = w - solve(curvature(w, t, y), g);
  }
  double const slope = w(1), intercept = w(0) - 69.5 * w(1);
  std::printf("log odds of distress: %.4f %+.4f t; at 31 F: %.4f\n", intercept, slope,
              1 / (1 + std::exp(-(intercept + 31 * slope))));
  assert(std::fabs(intercept - 15.0429) < 1e-4 && std::fabs(slope + 0.2322) < 1e-4);

  // The gradient of each flight by itself: which ones pull the most?
  auto const each = vmap(grad(flight_loss), in_axes<unmapped, 0, 0>)(w, t, y);  // Tensor<double, 23, 2>
  auto const pull = argmax<0>(abs(select<1, 1>(each)));
  std::printf("flight %d, at %.0f F, weighs most\n", static_cast<int>(pull.item()),
              t(static_cast<index_t>(pull.item())));

  // The orbit of a known field, found again from its points; backward through 100 steps of time, compiled as one.
  Field const truth{{{0.0, -1.0}, {1.0, 0.0}}};
  Tensor<double, 2> const start{1.0, 0.5};
  auto const wanted = orbit(truth, start);
  Field field{{{0.2, -0.5}, {0.6, -0.2}}};
  auto fit = train_step(miss, optim::Adam{.lr = 0.02f});
  double error = 0;
  for (int i = 0; i < 600; ++i) error = fit(field, start, wanted);
  std::printf("orbit: error %.2e, field [[%.3f, %.3f], [%.3f, %.3f]]\n", error, field.w(0, 0), field.w(0, 1),
              field.w(1, 0), field.w(1, 1));
  assert(error < 1e-5);

  // A training step on a function of gradients.
  auto critic = init<Critic>(1);
  auto const points = randn<float, 16, 2>(Key{2});
  auto flatten = train_step(penalty, optim::Adam{.lr = 0.02f});
  float const before = flatten(critic, points);
  float after = before;
  for (int i = 0; i < 200; ++i) after = flatten(critic, points);
  std::printf("gradient penalty: %.4f, then %.4f\n", static_cast<double>(before), static_cast<double>(after));
  assert(after < 0.1f * before);
  return 0;
}
