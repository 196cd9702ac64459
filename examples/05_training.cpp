// SPDX-License-Identifier: BSL-1.0
// Lesson 5: training. train_step compiles forward pass, backward pass and the optimizer's update into one program
// that writes the parameters in place and allocates nothing. The task: tell the arms of two spirals apart.
#include <cassert>
#include <cmath>
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Classifier {
  nn::Linear<2, 32> fc1;
  nn::Linear<32, 32> fc2;
  nn::Linear<32, 2> fc3;
  DFDX_FIELDS(fc1, fc2, fc3)

  constexpr auto operator()(auto const& x) const { return fc3(tanh(fc2(tanh(fc1(x))))); }
};

constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};
constexpr auto classify = [](auto const& model, auto const& x) { return argmax<1>(model(x)); };

constexpr std::size_t points = 512, batch = 64;

int main() {
  auto x = Tensor<float, points, 2>::uninitialized();
  auto labels = Tensor<std::int32_t, points>::uninitialized();
  auto noise = randn<float, points, 2>(Key{7});
  for (int i = 0; i < static_cast<int>(points); ++i) {
    int const arm = i % 2;
    float const t = 0.5f + 5.5f * static_cast<float>(i) / points,
                angle = t + 3.14159265f * static_cast<float>(arm);
    x(i, 0) = 0.3f * t * std::cos(angle) + 0.03f * noise(i, 0);
    x(i, 1) = 0.3f * t * std::sin(angle) + 0.03f * noise(i, 1);
    labels(i) = arm;
  }

  auto model = init<Classifier>(/*seed*/ 1);
  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f});

  // Facts of the program are constants.
  using Program =
      decltype(step)::program_for<Classifier, Tensor<float, batch, 2>, Tensor<std::int32_t, batch>>;
  static_assert(Program::arena_bytes < 128 << 10);
  std::printf("%d kernels, %ld flop and %ld bytes of memory for a step\n", Program::kernels,
              static_cast<long>(Program::flops()), static_cast<long>(Program::arena_bytes));

  data::Loader<batch, Tensor<float, points, 2>, Tensor<std::int32_t, points>> loader(Key{3}, x, labels);
  float average = 0;
  for (int epoch = 0; epoch < 120; ++epoch) {
    average = 0;
    for (auto const& [images, targets] : loader) average += step(model, images, targets) * batch / points;
    if (epoch % 20 == 19) std::printf("epoch %3d  loss %.4f\n", epoch + 1, static_cast<double>(average));
    if (epoch == 90) step.optimizer().lr = 1e-3f;
  }

  auto predicted = compile(classify)(model, x);
  int correct = 0;
  for (int i = 0; i < static_cast<int>(points); ++i) correct += predicted(i) == labels(i) ? 1 : 0;
  std::printf("%d of %d correct\n", correct, static_cast<int>(points));
  assert(average < 0.1f && correct > static_cast<int>(points) * 97 / 100);
}
