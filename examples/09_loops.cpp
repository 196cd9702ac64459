// SPDX-License-Identifier: BSL-1.0
// Lesson 9: loops. A C++ loop inside a model is unrolled: each round of it is compiled. scan and nn::Repeat stay
// loops, forward and backward, so that a thousand rounds compile like one.
#include <cassert>
#include <cmath>
#include <cstdio>
#include <string>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

// --- scan: a recurrence over time. A one-pole filter, y[t] = y[t-1] + a (x[t] - y[t-1]), over 1000 samples. ---
using Samples = Tensor<float, 1000>;

constexpr auto filter = [](Tensor<float> const& a, Samples const& x) {
  auto const [last, all] = scan(
      [&](auto const& y, auto const& sample) {
        auto const next = y + a * (sample - y);
        return std::pair(next, next);  // what is carried on, and what is kept of every round
      },
      0.0f, x);
  return all;
};
// How far the filter is from one whose output we know.
constexpr auto distance = [](Tensor<float> const& a, Samples const& x, Samples const& wanted) {
  return mean(square(filter(a, x) - wanted));
};

// --- nn::Repeat: blocks with parameters of their own. ---
struct Block {
  nn::Linear<16, 16> inner;
  DFDX_FIELDS(inner)
  constexpr auto operator()(auto const& x) const { return x + 0.5f * tanh(inner(x)); }
};
struct Deep {
  nn::Linear<2, 16> first;
  nn::Repeat<Block, 100> blocks;
  nn::Linear<16, 2> last;
  DFDX_FIELDS(first, blocks, last)
  constexpr auto operator()(auto const& x) const { return last(blocks(first(x))); }
};
constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};

int main() {
  // Which coefficient made this output? Gradient descent through 1000 steps of time.
  Samples const x = randn<float, 1000>(Key{1});
  Samples const wanted = filter(Tensor<float>(0.3f), x);
  auto slope = value_and_grad(distance);
  float a = 0.9f;
  for (int i = 0; i < 100; ++i) {
    auto const [value, d] = slope(Tensor<float>(a), x, wanted);
    a -= 0.5f * d.item();
    if (i % 25 == 0)
      std::printf("a = %.4f, distance %.6f\n", static_cast<double>(a), static_cast<double>(value.item()));
  }
  std::printf("a = %.4f\n", static_cast<double>(a));
  assert(std::fabs(a - 0.3f) < 1e-3f);

  // A hundred blocks; the exclusive or of two signs.
  auto model = init<Deep>(/*seed*/ 42);
  auto const points = randn<float, 64, 2>(Key{2});
  auto labels = zeros<std::int32_t, 64>();
  for (int i = 0; i < 64; ++i) labels(i) = points(i, 0) * points(i, 1) > 0 ? 1 : 0;
  auto step = train_step(loss, optim::AdamW{.lr = 1e-3f});
  float first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    last = step(model, points, labels);
    if (i == 0) first = last;
  }
  std::printf("loss %.3f -> %.3f\n", static_cast<double>(first), static_cast<double>(last));
  assert(last < 0.3f * first);

  // The program has the kernels of one block, whatever their number; files have the names of all.
  using Program = decltype(step)::program_for<Deep, Tensor<float, 64, 2>, Tensor<std::int32_t, 64>>;
  static_assert(Program::kernels < 50);
  bool found = false;
  visit_state(model, [&](std::string const& name, auto const&) {
    found = found || name == "blocks.99.inner.weight";
  });
  assert(found);
  // Part 42 by itself, a view of the model's memory.
  Block const part = model.blocks[42];
  assert(part.inner.weight.shape() == make_shape(16, 16));
}
