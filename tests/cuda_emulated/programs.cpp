// SPDX-License-Identifier: BSL-1.0
// Whole programs on the emulated device: moves, loops of steps, ops with kernels of their own, training.
#include "emulated.hpp"

#include "../../bench/training/words_model.hpp"
#include "../cuda/models.hpp"

#include <dfdx/optim/adam.hpp>

namespace tests::cuda_emulated_programs {

using namespace emulated;
using namespace device_models;

namespace {

using Weights = Tensor<double, 3, 3>;
using Steps = Tensor<double, 5, 3>;
using State = Tensor<double, 3>;
// A loop of steps: products, and sums over its iterations.
constexpr auto recurrent = [](Weights const& w, Steps const& x, State const& h0) {
  auto const [h, all] = scan(
      [&](State const& last, State const& part) {
        auto const next = tanh(matmul(w, last) + part);
        return std::pair(next, next * part);
      },
      h0, x);
  return sum(square(h)) + sum(all);
};

struct Convolve {
  nn::Conv2d<2, 4, 3> conv;
  nn::Linear<4 * 6 * 6, 5> out;
  DFDX_FIELDS(conv, out)
  constexpr auto operator()(auto const& x) const { return out(reshape<3, 4 * 6 * 6>(relu(conv(x)))); }
};
struct Normed {
  nn::Linear<6, 10> a;
  nn::BatchNorm1d<10> norm;
  nn::Linear<10, 3> b;
  DFDX_FIELDS(a, norm, b)
};
template <class T>
T indices(index_t below) {
  T x = filled<T>(1);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<std::int32_t>(i * i * 7 % below);
  return x;
}

// The model and the losses of some steps of training.
template <class Loss, class Model, class Rule, class... A>
std::vector<double> trained(Device device, Loss const& loss, Model const& start, Rule const& rule,
                            A const&... args) {
  auto model = to(device, start);
  auto step = train_step(loss, rule);
  std::vector<double> losses;
  for (int k = 0; k < 4; ++k) losses.push_back(static_cast<double>(step(model, to(device, args)...)));
  REQUIRE(losses.back() < losses.front());
  auto all = numbers(model);
  all.insert(all.end(), losses.begin(), losses.end());
  return all;
}
template <class... A>
double training_apart(A const&... args) {
  auto const expected = trained(Device{}, args...), found = trained(cuda(), args...);
  for (auto const turns : {cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    if (difference(trained(cuda(), args...), found) != 0) return INFINITY;
  }
  return difference(found, expected);
}

}  // namespace

TEST_CASE("loops of steps", "[cuda]") {
  auto const w = filled<Weights>(1);
  auto const x = filled<Steps>(2);
  auto const h = filled<State>(3);
  REQUIRE(apart(recurrent, w, x, h) < 1e-12);
  REQUIRE(apart(grad(recurrent, wrt<0, 1, 2>), w, x, h) < 1e-12);
}
// Numbers of the function itself, which the device has a copy of.
struct Own {
  constexpr auto operator()(auto const& x) const {
    Tensor<double, 3, 3> const mix{{1, 2, 3}, {4, 5, 6}, {7, 8, 10}};
    return matmul(x * Tensor<double, 3>{1, 0.5, 0.25}, mix) + 2.0 * eye<double, 3>();
  }
};

TEST_CASE("literals", "[cuda]") {
  auto const x = filled<Weights>(1);
  CHECK(apart(Own{}, x) < 1e-12);
  auto run = compile(Own{});
  auto const there = to(cuda(), x);
  Array const first = to(Device{}, run(there));
  for (int k = 0; k < 3; ++k)  // as one graph, from the second on
    CHECK(array_equal(to(Device{}, run(there)), first));
}

TEST_CASE("repeated blocks are trained", "[cuda]") {
  REQUIRE(training_apart(entropy, init<Deep>(2), optim::AdamW{.lr = 1e-2f},
                         indices<Tensor<std::int32_t, 20>>(17),
                         indices<Tensor<std::int32_t, 20>>(13)) < 1e-3);
}
TEST_CASE("attention is trained", "[cuda]") {
  REQUIRE(training_apart(squares, init<Attend>(2), optim::SGD{.lr = 1e-1f},
                         filled<Tensor<float, 2, 9, 16>>(3)) < 1e-4);
}
TEST_CASE("a convolution is trained", "[cuda]") {
  REQUIRE(training_apart(entropy, init<Convolve>(2), optim::Adam{.lr = 1e-2f},
                         filled<Tensor<float, 3, 2, 8, 8>>(3), indices<Tensor<std::int32_t, 3>>(5)) < 1e-3);
}
TEST_CASE("running statistics move on the device", "[cuda]") {
  constexpr auto loss = [](Normed model, auto const& x, auto const& labels) {
    auto const y = model.b(relu(model.norm.train(model.a(x))));
    return std::pair(cross_entropy(y, labels), model);
  };
  REQUIRE(training_apart(loss, init<Normed>(2), optim::SGD{.lr = 1e-1f}, filled<Tensor<float, 30, 6>>(3),
                         indices<Tensor<std::int32_t, 30>>(3)) < 1e-4);
}
TEST_CASE("a network is trained on the device as on the CPU", "[cuda]") {
  auto const train = [](Device device) {
    auto model = to(device, init<words::Model>(1));
    auto step = train_step(words::loss, optim::AdamW{.lr = 1e-2f});
    auto x = Tensor<std::int32_t, words::batch, words::context>(Array(words::Contexts::static_meta));
    auto y = Tensor<std::int32_t, words::batch>(Array(words::Labels::static_meta));
    std::vector<double> losses;
    for (int k = 0; k < 6; ++k) {
      for (index_t i = 0; i < x.size(); ++i)
        x.data()[i] = static_cast<std::int32_t>((i * 7) % words::letters);
      for (index_t i = 0; i < y.size(); ++i)
        y.data()[i] = static_cast<std::int32_t>((i * 5) % words::letters);
      losses.push_back(static_cast<double>(step(model, to(device, x), to(device, y))));
    }
    auto all = numbers(model);
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  };
  auto const expected = train(Device{});
  auto const found = train(cuda());
  REQUIRE(expected.back() < expected[expected.size() - 6]);
  REQUIRE(difference(found, expected) < 2e-4);
  for (auto const turns : {cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    REQUIRE(difference(train(cuda()), found) == 0);
  }
}

}  // namespace tests::cuda_emulated_programs
