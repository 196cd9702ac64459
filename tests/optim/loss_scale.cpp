// SPDX-License-Identifier: BSL-1.0
// Training in 16 bits with f32 parameters: small gradients survive, steps that overflow are skipped and counted.
#include "worse.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>

namespace tests::optim_loss_scale {

using namespace dfdx;

namespace {

template <class T>
struct Net {
  nn::Linear<3, 4, true, T> fc;
  nn::BatchNorm<4, 2, max_rank, T> norm;
  nn::Linear<4, 2, true, T> out;
  DFDX_FIELDS(fc, norm, out)
};
constexpr auto loss = [](auto net, auto const& x, auto const& y, auto const& factor) {
  auto const z = net.out(tanh(net.norm.train(net.fc(x))));
  return std::pair(mse_loss(z, y) * factor, net);
};
// The same with the products in T.
template <class T>
constexpr auto in_short = [](auto net, auto const& x, auto const& y, auto const& factor) {
  auto const half = cast_tree<Net<T>>(net);
  auto const h = net.norm.train(cast<float>(half.fc(cast<T>(x))));
  auto const z = cast<float>(half.out(cast<T>(tanh(h))));
  return std::pair(mse_loss(z, y) * factor, net);
};

template <class M>
std::vector<double> numbers(M const& m) {
  std::vector<double> r;
  visit(m, [&](auto const& leaf) {
    for (index_t i = 0; i < leaf.size(); ++i) r.push_back(read_real(leaf.operand(), i));
  });
  return r;
}
double apart(std::vector<double> const& a, std::vector<double> const& b) {
  double r = 0;
  for (std::size_t i = 0; i < a.size(); ++i) r = tests::worse(r, std::fabs(a[i] - b[i]));
  return r;
}

auto const x = randn<float, 16, 3>(Key{1});
auto const y = randn<float, 16, 2>(Key{2});
Tensor<float> times(float v) { return full<Tensor<float>>(v); }

}  // namespace

TEST_CASE("a scale changes nothing that is not rounded", "[optim]") {
  auto plain = init<Net<float>>(1), scaled = init<Net<float>>(1);
  auto plain_step = train_step(loss, optim::AdamW{.lr = 0.01});
  auto step = train_step(loss, optim::LossScale{optim::AdamW{.lr = 0.01}});
  for (int k = 0; k < 5; ++k) CHECK(plain_step(plain, x, y, times(1.0f)) == step(scaled, x, y, times(1.0f)));
  CHECK(apart(numbers(plain), numbers(scaled)) == 0);
  CHECK(step.optimizer().skipped == 0);
}

TEST_CASE("steps that overflow are skipped and counted", "[optim]") {
  auto model = init<Net<float>>(1), plain = init<Net<float>>(1);
  auto step = train_step(loss, optim::LossScale{optim::ClipNorm{optim::AdamW{.lr = 0.01}, 1.0},
                                                {.scale = 1024, .growth_interval = 3}});
  auto plain_step = train_step(loss, optim::ClipNorm{optim::AdamW{.lr = 0.01}, 1.0});
  auto& rule = step.optimizer();
  auto const good = [&] {
    step(model, x, y, times(1.0f));
    plain_step(plain, x, y, times(1.0f));
    CHECK(apart(numbers(model), numbers(plain)) == 0);
  };
  auto const bad = [&](float factor, auto const& data) {
    auto const before = numbers(model), state = numbers(step.state_for(model));
    step(model, data, y, times(factor));
    CHECK(apart(numbers(model), before) == 0);
    CHECK(apart(numbers(step.state_for(model)), state) == 0);
    for (double e : numbers(model)) CHECK(std::isfinite(e));
  };
  good();
  CHECK(rule.scaling.scale == 1024);
  bad(INFINITY, x);
  CHECK(rule.scaling.scale == 512);
  bad(NAN, x);
  CHECK(rule.scaling.scale == 256);
  auto spoilt = x.clone();
  nn::init::constant(spoilt, INFINITY);  // would reach the running statistics
  bad(1, Tensor<float, 16, 3>(spoilt));
  CHECK(rule.scaling.scale == 128);
  CHECK(rule.skipped == 3);
  good(), good();
  CHECK(rule.scaling.scale == 128);
  good();
  CHECK(rule.scaling.scale == 256);
  good(), good(), good();
  CHECK(rule.scaling.scale == 512);
  bad(INFINITY, x);
  CHECK(rule.scaling.scale == 256);
  CHECK(rule.skipped == 4);
  CHECK(step.steps() == 11);

  // A static scale stays.
  auto fixed = train_step(loss, optim::LossScale{optim::SGD{.lr = 0.1}, {.scale = 8, .growth_interval = 0}});
  auto other = init<Net<float>>(1);
  fixed(other, x, y, times(INFINITY));
  for (int k = 0; k < 4; ++k) fixed(other, x, y, times(1.0f));
  CHECK(fixed.optimizer().scaling.scale == 8);
  CHECK(fixed.optimizer().skipped == 1);
}

namespace {

// Trains in T; how far the parameters have gone from the start, and the last loss of the f32 loss.
template <class T, class O>
std::pair<double, double> train(O const& rule, float factor, int steps) {
  auto model = init<Net<float>>(1);
  auto const start = numbers(model.fc);
  auto step = train_step(in_short<T>, rule);
  for (int k = 0; k < steps; ++k) step(model, x, y, times(factor));
  return {apart(numbers(model.fc), start), static_cast<double>(loss(model, x, y, times(1.0f)).first.item())};
}

}  // namespace

TEST_CASE("small gradients survive in f16 with a scale, and training reaches what f32 reaches", "[optim]") {
  optim::Adam const adam{.lr = 0.02};
  auto const exact = train<float>(adam, 1, 100);
  auto const half = train<float16>(optim::LossScale{adam}, 1, 100);
  auto const brain = train<bfloat16>(adam, 1, 100);
  CHECK(exact.second < 0.8);
  CHECK(std::fabs(half.second - exact.second) < 0.02);
  CHECK(std::fabs(brain.second - exact.second) < 0.05);
  // Gradients below what f16 can hold.
  optim::SGD const sgd{.lr = 1e6};
  CHECK(train<float16>(sgd, 1e-9f, 1).first == 0);
  CHECK(train<float16>(optim::LossScale{sgd, {.scale = 16777216}}, 1e-9f, 1).first > 1e-6);
  // A scale that is far too large is found out.
  auto model = init<Net<float>>(1);
  auto step = train_step(in_short<float16>, optim::LossScale{adam, {.scale = 0x1p40}});
  for (int k = 0; k < 60; ++k) step(model, x, y, times(1.0f));
  CHECK(step.optimizer().skipped > 10);
  CHECK(step.optimizer().skipped < 40);
  for (double e : numbers(model)) CHECK(std::isfinite(e));
}

TEST_CASE("loss scaling on the tape", "[optim]") {
  auto model = init<Net<float>>(1), plain = init<Net<float>>(1);
  watch(model);
  watch(plain);
  optim::Optimizer optimizer(optim::LossScale{optim::Adam{.lr = 0.01}, {.scale = 1024}});
  optim::Optimizer other(optim::Adam{.lr = 0.01});
  auto const step = [](auto& o, Net<float>& m, double factor) {
    Array const l = loss(m, x, y, times(1.0f)).first;
    (l * factor).backward();
    o.step(m);
    zero_grad(m);
  };
  step(optimizer, model, optimizer.rule().scaling.scale);
  step(other, plain, 1);
  CHECK(apart(numbers(model), numbers(plain)) == 0);
  auto const before = numbers(model);
  step(optimizer, model, INFINITY);
  CHECK(optimizer.rule().skipped == 1);
  CHECK(optimizer.rule().scaling.scale == 512);
  CHECK(apart(numbers(model), before) == 0);
  step(optimizer, model, optimizer.rule().scaling.scale);
  step(other, plain, 1);
  CHECK(apart(numbers(model), numbers(plain)) == 0);
}

TEST_CASE("a step that overflows leaves the sum of gradients as it was", "[optim]") {
  auto const rule = optim::LossScale{optim::Accumulate{optim::SGD{.lr = 0.1}, 2}, {.growth_interval = 0}};
  auto step = train_step(loss, rule), without = train_step(loss, rule);
  auto model = init<Net<float>>(1), other = init<Net<float>>(1);
  for (float factor : {1.0f, 1e38f, 2.0f, 1e38f, 0.5f}) {
    step(model, x, y, times(factor));
    if (factor < 1e38f) without(other, x, y, times(factor));
  }
  CHECK(step.optimizer().skipped == 2);
  CHECK(apart(numbers(model), numbers(other)) == 0);
}

}  // namespace tests::optim_loss_scale
