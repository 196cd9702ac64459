// SPDX-License-Identifier: BSL-1.0
// Training steps: DESIGN 10 (b), equality with a step written by hand, reproducibility, and no allocation after the
// first step.
#include "allocations.hpp"
#include "worse.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <cmath>

namespace tests::program_training {

namespace {

using namespace dfdx;

template <std::size_t In, std::size_t Hidden, std::size_t Out>
struct Mlp {
  nn::Linear<In, Hidden> fc1;
  nn::Linear<Hidden, Out> fc2;
  DFDX_FIELDS(fc1, fc2)
  constexpr auto operator()(auto const& x) const { return fc2(relu(fc1(x))); }
};
constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};

using Small = Mlp<12, 16, 5>;
using Images = Tensor<float, 8, 12>;
using Labels = Tensor<std::int32_t, 8>;

Images images(std::uint64_t k) { return randn<float, 8, 12>(Key{k}); }
Labels labels(std::uint64_t k) { return randint<std::int32_t, 8>(Key{k}, 0, 5); }

template <class M>
bool same_bits(M const& a, M const& b) {
  std::vector<Array> x, y;
  visit(a, [&](auto const& leaf) { x.push_back(leaf); });
  visit(b, [&](auto const& leaf) { y.push_back(leaf); });
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::memcmp(x[i].bytes(), y[i].bytes(),
                    static_cast<std::size_t>(x[i].size()) * size_of(x[i].dtype())) != 0)
      return false;
  return true;
}

template <class M>
double distance(M const& a, M const& b) {
  std::vector<Array> x, y;
  visit(a, [&](auto const& leaf) { x.push_back(leaf); });
  visit(b, [&](auto const& leaf) { y.push_back(leaf); });
  double r = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (index_t k = 0; k < x[i].size(); ++k)
      r = tests::worse(r, std::fabs(read_real(x[i].operand(), k) - read_real(y[i].operand(), k)));
  return r;
}

}  // namespace

TEST_CASE("DESIGN 10 (b): a model is trained", "[program]") {
  auto model = init<Small>(42);
  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f});
  float first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    float const l = step(model, images(1), labels(2));
    if (i == 0) first = l;
    last = l;
  }
  CHECK(std::fabs(first - std::log(5.0f)) < 1);
  CHECK(last < 0.2f * first);
  static_assert(decltype(step)::program_for<Small, Images, Labels>::arena_bytes < 1 << 14);
  // The same struct eagerly and compiled.
  auto const eager = model(images(3));
  CHECK(allclose(compile([](auto const& m, auto const& x) { return m(x); })(model, images(3)), eager, 1e-4,
                 1e-5));
}

TEST_CASE("a step is what its gradients say", "[program]") {
  auto model = init<Small>(1), by_hand = init<Small>(1);
  auto step = train_step(loss, optim::SGD{.lr = 0.25f});
  auto gradient = value_and_grad(loss);
  for (std::uint64_t k = 0; k < 5; ++k) {
    float const l = step(model, images(k), labels(k));
    auto const [value, g] = gradient(by_hand, images(k), labels(k));
    CHECK(std::fabs(l - value.item()) < 1e-5f);
    auto const update = [](auto& w, auto const& d) {
      for (index_t i = 0; i < w.size(); ++i) w.data()[i] -= 0.25f * d.data()[i];
    };
    update(by_hand.fc1.weight, g.fc1.weight);
    update(by_hand.fc1.bias, g.fc1.bias);
    update(by_hand.fc2.weight, g.fc2.weight);
    update(by_hand.fc2.bias, g.fc2.bias);
    CHECK(distance(model, by_hand) < 1e-5);
  }
}

TEST_CASE("a step takes plain numbers, as compile does", "[program]") {
  auto const weighted = [](auto const& model, auto const& x, auto const& y, auto const& weight) {
    return cross_entropy(model(x), y) * weight;
  };
  auto a = init<Small>(3), b = clone(a);
  auto step_a = train_step(weighted, optim::SGD{.lr = 0.1f});
  auto step_b = train_step(weighted, optim::SGD{.lr = 0.1f});
  for (std::uint64_t i = 0; i < 3; ++i) {
    float const weight = 0.5f * static_cast<float>(i + 1);
    REQUIRE(step_a(a, images(i), labels(i), weight) ==
            step_b(b, images(i), labels(i), Tensor<float>(weight)));
  }
  REQUIRE(same_bits(a, b));
}

TEST_CASE("training twice from one seed gives the same bits", "[program]") {
  auto const train = [] {
    auto model = init<Small>(9);
    auto step = train_step(loss, optim::AdamW{.lr = 3e-3f});
    for (std::uint64_t k = 0; k < 20; ++k) step(model, images(k), labels(k));
    return model;
  };
  CHECK(same_bits(train(), train()));
}

TEST_CASE("a model of another type starts with a state of its own", "[program]") {
  auto first = init<Small>(1);
  auto model = init<Mlp<12, 3, 5>>(2), again = init<Mlp<12, 3, 5>>(2);
  auto step = train_step(loss, optim::Adam{.lr = 1e-2f}), fresh = train_step(loss, optim::Adam{.lr = 1e-2f});
  for (std::uint64_t k = 0; k < 3; ++k) step(first, images(k), labels(k));
  step(model, images(7), labels(7));
  fresh(again, images(7), labels(7));
  CHECK(step.steps() == 1);
  CHECK(same_bits(model, again));
}

TEST_CASE("parameters that are not contiguous are refused", "[program]") {
  auto model = init<Small>(1);
  model.fc1.weight = transpose(zeros<float, 12, 16>());
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  CHECK_THROWS_AS(step(model, images(1), labels(1)), error);
}

TEST_CASE("parameters that share memory are refused, wherever the model lies then", "[program]") {
  struct Pair {
    Tensor<float, 3> a, b;
    DFDX_FIELDS(a, b)
  };
  auto step = train_step([](auto const& m, auto const& x) { return sum(m.a * x) + sum(square(m.b)); },
                         optim::SGD{.lr = 0.1f});
  auto const x = ones<float, 3>();
  Pair apart{ones<float, 3>(), ones<float, 3>()}, one{x.clone(), x.clone()};
  step(apart, x);
  one.b = one.a;
  CHECK_THROWS_WITH(step(one, x),
                    "train_step: parameters of shape [3] and [3] share memory, so that one of their updates "
                    "would be lost; clone one, or use one field twice");
  CHECK(array_equal(one.a, x));
  Array const both = ones({5});
  one.a = Tensor<float, 3>(slice<0, 0, 3>(both));
  one.b = Tensor<float, 3>(slice<0, 2, 5>(both));
  CHECK_THROWS_AS(step(one, x), error);
  one.b = clone(one.b);
  step(one, x);
  step(apart, x);
  CHECK(step.steps() == 3);
}

TEST_CASE("copies of a model share its numbers, clones do not", "[program]") {
  auto model = init<Small>(3);
  auto const shared = model, kept = clone(model);
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  step(model, images(1), labels(2));
  CHECK(same_bits(model, shared));
  CHECK_FALSE(same_bits(model, kept));
  Small other = clone(kept);
  auto const before = clone(kept);
  lerp_(other, model, 0.25);
  CHECK(allclose(other.fc1.weight, kept.fc1.weight + (model.fc1.weight - kept.fc1.weight) * 0.25f));
  CHECK(same_bits(kept, before));
  copy_(other, model);
  CHECK(same_bits(other, model));
  step(model, images(1), labels(2));
  CHECK_FALSE(same_bits(other, model));
  // A model that a tape watches is changed beside the tape, and its clone is not watched.
  watch(other);
  CHECK(clone(other).fc1.weight.tape() == nullptr);
  copy_(other, kept);
  CHECK(same_bits(other, kept));
  CHECK(other.fc1.weight.requires_grad());
  // Leaves that hold no memory yet stay so; those of other shapes are refused.
  Small const nothing = clone(Small{});
  CHECK(nothing.fc1.weight.empty());
  Tensor<float, dyn> line(ones({2}));
  CHECK_THROWS_WITH(copy_(line, Tensor<float, dyn>(ones({3}))),
                    "copy_: a value of shape [3] does not fit the target of shape [2]");
}

TEST_CASE("no allocation after the first step or call", "[program]") {
  auto model = init<Small>(42);
  auto step = train_step(loss, optim::AdamW{.lr = 1e-3f});
  auto const x = images(1);
  auto const y = labels(2);
  step(model, x, y);
  std::int64_t before = tests::allocations();
  for (int i = 0; i < 10; ++i) step(model, x, y);
  CHECK(tests::allocations() == before);

  auto gradient = value_and_grad(loss);
  static_cast<void>(gradient(model, x, y));
  before = tests::allocations();
  float total = 0;
  for (int i = 0; i < 10; ++i) total += gradient(model, x, y).first.item();
  CHECK(tests::allocations() == before);
  CHECK(std::isfinite(total));
  // The counter counts.
  before = tests::allocations();
  auto const fresh = dfdx::empty<float, (1 << 26)>();  // more than is kept for reuse
  CHECK(tests::allocations() > before);
  static_cast<void>(fresh);
}

namespace {
struct Block {
  nn::Linear<6, 6> fc;
  Tensor<float, 6> gain;
  DFDX_FIELDS(fc, gain)
  constexpr auto operator()(auto const& x) const { return x + tanh(fc(x)) * gain; }
};
// A table used twice: to look up and, transposed, to score; and an array of layers.
struct Tied {
  nn::Embedding<7, 6> table;
  std::array<Block, 3> blocks;
  DFDX_FIELDS(table, blocks)
  constexpr auto operator()(auto const& tokens) const {
    return matmul(blocks[2](blocks[1](blocks[0](table(tokens)))), transpose(table.weight));
  }
};
}  // namespace

TEST_CASE("shared parameters and arrays of layers are updated after their last use", "[program]") {
  auto model = init<Tied>(5), by_hand = init<Tied>(5);
  for (auto* m : {&model, &by_hand})
    for (Block& b : m->blocks) nn::init::ones(b.gain);
  auto const tokens = Tensor<std::int32_t, 4>::from({1, 6, 1, 0}),
             next = Tensor<std::int32_t, 4>::from({6, 1, 0, 3});
  auto step = train_step(loss, optim::SGD{.lr = 0.5f, .momentum = 0.9f});
  auto gradient = value_and_grad(loss);
  std::vector<std::vector<float>> velocity;
  for (int k = 0; k < 4; ++k) {
    float const l = step(model, tokens, next);
    auto const [value, g] = gradient(by_hand, tokens, next);
    CHECK(std::fabs(l - value.item()) < 1e-4f);
    std::vector<Array> p, d;
    visit(by_hand, [&](auto const& leaf) { p.push_back(leaf); });
    visit(g, [&](auto const& leaf) { d.push_back(leaf); });
    REQUIRE(p.size() == 10);
    velocity.resize(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      velocity[i].resize(static_cast<std::size_t>(p[i].size()));
      for (index_t j = 0; j < p[i].size(); ++j) {
        float& v = velocity[i][static_cast<std::size_t>(j)];
        v = 0.9f * v + d[i].data<float>()[j];
        p[i].data<float>()[j] -= 0.5f * v;
      }
    }
    CHECK(distance(model, by_hand) < 2e-4);
  }
}

TEST_CASE("other batch sizes, other element types", "[program]") {
  using Model = nn::Linear<3, 1, true, double>;
  constexpr auto squared = [](auto const& m, Tensor<double, dyn, 3> const& x,
                              Tensor<double, dyn, 1> const& y) { return mse_loss(m(x), y); };
  auto model = init<Model>(3);
  auto step = train_step(squared, optim::SGD{.lr = 0.1f});
  auto const truth = Tensor<double, 3, 1>::from({1, -2, 0.5});
  double l = 0;
  for (std::uint64_t k = 0; k < 300; ++k) {
    std::size_t const n = 1 + k % 7;
    auto const x = randn<double, dyn, 3>(Key{k}, make_shape(n, 3));
    l = step(model, x, Tensor<double, dyn, 1>(Array(matmul(x, truth) + 0.25)));
  }
  CHECK(l < 1e-3);
  CHECK(std::fabs(model.weight(0, 1) + 2) < 0.1);
  CHECK(std::fabs(model.bias(0) - 0.25) < 0.1);
}

TEST_CASE("a label that is no class stops a program before it changes anything", "[program]") {
  auto model = init<Small>(1), untouched = init<Small>(1);
  auto const x = images(1);
  auto y = labels(2);
  auto step = train_step(loss, optim::SGD{.lr = 0.1f, .momentum = 0.9f});
  auto other = train_step(loss, optim::SGD{.lr = 0.1f, .momentum = 0.9f});
  step(model, x, y);
  other(untouched, x, y);
  for (std::int32_t wrong : {5, -1}) {
    auto bad = labels(2);
    bad(3) = wrong;
    std::string const words = "cross_entropy: label " + std::to_string(wrong) + " out of range for 5 classes";
    CHECK_THROWS_WITH(step(model, x, bad), words);
    CHECK_THROWS_WITH(compile(loss)(model, x, bad), words);
    CHECK_THROWS_WITH(cross_entropy(model(x), bad), words);
    CHECK(same_bits(model, untouched));
  }
  step(model, x, y);
  other(untouched, x, y);
  CHECK(same_bits(model, untouched));
  // The ignored label is none of them, wherever it stands.
  y(3) = static_cast<std::int32_t>(ignored_index);
  CHECK(compile(loss)(model, x, y).item() == Catch::Approx(cross_entropy(model(x), y).item()));
  // By itself, mapped over examples, and by another name.
  auto const one = [](auto const& logits, auto const& label) { return multi_margin_loss(logits, label); };
  auto const z = randn<float, 4, 5>(Key{3});
  CHECK_THROWS_WITH(compile(vmap(one))(z, Tensor<std::int64_t, 4>::from({0, 1, 7, 2})),
                    "multi_margin_loss: label 7 out of range for 5 classes");
  CHECK_THROWS_WITH(compile([](auto const& p, auto const& l) { return nll_loss(p, l); })(
                        z, Tensor<std::int64_t, 4>::from({0, 1, 5, 2})),
                    "nll_loss: label 5 out of range for 5 classes");
}

namespace {

// Two models that are trained against each other: each loss reads both.
struct Generator {
  nn::Linear<4, 8, true, double> in;
  nn::Linear<8, 2, true, double> out;
  DFDX_FIELDS(in, out)
  constexpr auto operator()(auto const& z) const { return out(tanh(in(z))); }
};
struct Judge {
  nn::Linear<2, 8, true, double> in;
  nn::Linear<8, 1, true, double> out;
  DFDX_FIELDS(in, out)
  constexpr auto operator()(auto const& x) const { return squeeze<1>(out(tanh(in(x)))); }
};
constexpr auto judged = [](Judge const& judge, Generator const& made, Tensor<double, 16, 4> const& z,
                           Tensor<double, 16, 2> const& x) {
  return mean(softplus(-judge(x))) + mean(softplus(judge(stop_gradient(made(z)))));
};
constexpr auto believed = [](Generator const& made, Judge const& judge, Tensor<double, 16, 4> const& z) {
  return mean(softplus(-judge(made(z))));
};

}  // namespace

TEST_CASE("two models trained against each other, as on the tape", "[program]") {
  auto made = init<Generator>(1), taped_made = clone(made);
  auto judge = init<Judge>(2), taped_judge = clone(judge);
  auto judge_step = train_step(judged, optim::Adam{.lr = 0.02});
  auto made_step = train_step(believed, optim::AdamW{.lr = 0.01});
  optim::Optimizer judge_rule(optim::Adam{.lr = 0.02});
  optim::Optimizer made_rule(optim::AdamW{.lr = 0.01});
  watch(taped_made);
  watch(taped_judge);
  for (std::uint64_t i = 0; i < 6; ++i) {
    auto const z = randn<double, 16, 4>(Key{10 + i});
    auto const x = randn<double, 16, 2>(Key{50 + i});
    double const first = judge_step(judge, made, z, x), second = made_step(made, judge, z);
    auto const taped_first = judged(taped_judge, taped_made, z, x);
    taped_first.backward();
    judge_rule.step(taped_judge);
    zero_grad(taped_judge);
    auto const taped_second = believed(taped_made, taped_judge, z);
    taped_second.backward();
    made_rule.step(taped_made);
    zero_grad(taped_made);
    zero_grad(taped_judge);
    CHECK(std::fabs(first - taped_first.item()) < 1e-12);
    CHECK(std::fabs(second - taped_second.item()) < 1e-12);
  }
  CHECK(allclose(made.in.weight, taped_made.in.weight, 1e-9, 1e-11));
  CHECK(allclose(judge.out.bias, taped_judge.out.bias, 1e-9, 1e-11));
}

TEST_CASE("training: gradients made elsewhere move a model as its loss does", "[program]") {
  auto whole = init<Small>(3), given = clone(whole);
  auto step = train_step(loss, optim::ClipNorm{optim::Adam{.lr = 1e-2f}, 0.5});
  auto gradient = value_and_grad(loss);
  auto update = train_step(given_gradients, optim::ClipNorm{optim::Adam{.lr = 1e-2f}, 0.5});
  for (std::uint64_t i = 0; i < 5; ++i) {
    step(whole, images(i), labels(i));
    update(given, gradient(given, images(i), labels(i)).second);
  }
  CHECK(distance(whole, given) < 1e-6);
  CHECK(distance(whole, init<Small>(3)) > 1e-3);
}

}  // namespace tests::program_training
