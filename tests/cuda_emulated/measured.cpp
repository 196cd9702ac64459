// SPDX-License-Identifier: BSL-1.0
// What is measured of programs on the emulated device: their steps' times, and the ranges that profilers show.
#include "emulated.hpp"
#include "support.hpp"

#include <dfdx/explain.hpp>
#include <dfdx/optim/sgd.hpp>
#include <dfdx/transforms/watch.hpp>

#include <algorithm>

namespace tests::cuda_emulated_measured {

using namespace emulated;

namespace {

constexpr auto f = [](auto const& x, auto const& w) { return softmax(matmul(x, w)); };
struct Model {
  nn::Linear<8, 5> out;
  DFDX_FIELDS(out)
};
constexpr auto loss = [](auto const& model, auto const& x) { return mean(square(model.out(x))); };

}  // namespace

TEST_CASE("the steps of a program are timed by the device's clock", "[cuda]") {
  auto const x = to(cuda(), filled<Tensor<float, 20, 30>>(1));
  auto const w = to(cuda(), filled<Tensor<float, 30, 7>>(2));
  auto program = compile(f);
  int const replays = machine().replays, launches = machine().launches;
  Profile const p = profile(program, x, w);
  REQUIRE(p.kernels.size() == 2);
  REQUIRE(p.runs >= 5);
  REQUIRE(p.seconds > 0);
  REQUIRE(p.kernels[0].seconds > 0);
  REQUIRE(machine().launches >= launches + 2 * p.runs);
  REQUIRE(machine().replays == replays);
  // What is measured is the same as without.
  REQUIRE(apart(f, to(Device{}, x), to(Device{}, w)) < 1e-5);

  auto model = to(cuda(), init<Model>(1));
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  auto const before = numbers(model);
  REQUIRE(profile(step, model, to(cuda(), filled<Tensor<float, 6, 8>>(1))).runs >= 5);
  REQUIRE(numbers(model) == before);
}
TEST_CASE("steps have ranges named after ops", "[cuda]") {
  auto const x = to(cuda(), filled<Tensor<float, 20, 30>>(1));
  auto const w = to(cuda(), filled<Tensor<float, 30, 7>>(2));
  auto program = compile(f);
  auto& ranges = cuda_fake::ranges;
  ranges.names.clear();
  cuda_options.capture = false;
  int const captures = machine().captures;
  for (int k = 0; k < 3; ++k) static_cast<void>(numbers(program(x, w)));
  cuda_options = {};
  REQUIRE(machine().captures == captures);
  REQUIRE(std::count(ranges.names.begin(), ranges.names.end(), "matmul") == 3);
  REQUIRE(ranges.names.size() == 6);
  REQUIRE(ranges.open == 0);
  static_cast<void>(numbers(program(x, w)));
  REQUIRE(std::count(ranges.names.begin(), ranges.names.end(), "captured program") == 1);
  REQUIRE(ranges.open == 0);
}
TEST_CASE("a step that spoils a model on the device is undone", "[cuda]") {
  auto model = to(cuda(), init<Model>(1));
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  auto watched = watch(step, model);
  auto x = filled<Tensor<float, 6, 8>>(1);
  float const first = watched(to(cuda(), x)), second = watched(to(cuda(), x));
  REQUIRE(second < first);
  auto const before = numbers(model);
  x(2, 3) = 3e30f;
  REQUIRE(tests::error_of([&] {
            static_cast<void>(watched(to(cuda(), x)));
          }).starts_with("train_step: step 3: "));
  REQUIRE(numbers(model) == before);
  REQUIRE(step.steps() == 2);
}
TEST_CASE("a step with a label out of range is undone", "[cuda]") {
  auto model = to(cuda(), init<Model>(1));
  auto step =
      train_step([](auto const& m, auto const& v, auto const& y) { return cross_entropy(m.out(v), y); },
                 optim::SGD{.lr = 0.1f});
  auto watched = watch(step, model);
  auto const x = to(cuda(), filled<Tensor<float, 6, 8>>(1));
  auto labels = Tensor<std::int32_t, 6>::from({0, 1, 2, 3, 4, 0});
  static_cast<void>(watched(x, to(cuda(), labels)));
  auto const before = numbers(model);
  labels(2) = 10;
  REQUIRE(tests::error_of([&] {
            static_cast<void>(watched(x, to(cuda(), labels)));
          }).starts_with("cross_entropy: label 10 out of range for 5 classes on cuda:0"));
  REQUIRE(numbers(model) == before);
  REQUIRE(step.steps() == 1);
}
TEST_CASE("what requires a gradient is looked at and copied as without devices", "[cuda]") {
  auto x = filled<Tensor<float, 3>>(1);
  x.requires_grad(true);
  REQUIRE(all_finite(x));
  REQUIRE(all_finite(x * x));
}
TEST_CASE("a single element is read from a device", "[cuda]") {
  Tensor<float> const x = to(cuda(), Tensor<float>(2.5f));
  REQUIRE(x.item() == 2.5f);
  Array const y = to(cuda(), Array(Tensor<float16>(static_cast<float16>(0.5f))));
  REQUIRE(y.item() == 0.5);
}

}  // namespace tests::cuda_emulated_measured
