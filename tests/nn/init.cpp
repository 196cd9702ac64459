// SPDX-License-Identifier: BSL-1.0
// Weights: the moments and bounds that the rules promise, determinism, and init of whole models.
#include "support.hpp"

#include <dfdx/nn/activation.hpp>
#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/init.hpp>
#include <dfdx/nn/layer_norm.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/sequential.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/create.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <set>

using namespace dfdx;

namespace {

struct Moments {
  double mean = 0, std = 0, least = 0, most = 0;
};

Moments moments(Array const& x) {
  Moments m;
  auto const n = static_cast<double>(x.size());
  Operand const o = x.operand();
  for (index_t i = 0; i < x.size(); ++i) {
    double const v = read_real(o, i);
    m.mean += v / n;
    m.std += v * v / n;
    m.least = std::min(m.least, v);
    m.most = std::max(m.most, v);
  }
  m.std = std::sqrt(m.std - m.mean * m.mean);
  return m;
}

bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }

}  // namespace

TEST_CASE("gains are PyTorch's", "[nn]") {
  using nn::init::calculate_gain, nn::init::Nonlinearity;
  CHECK(calculate_gain(Nonlinearity::tanh) == 5.0 / 3);
  CHECK(calculate_gain(Nonlinearity::relu) == std::sqrt(2.0));
  CHECK(calculate_gain(Nonlinearity::linear) == 1);
  CHECK(calculate_gain(Nonlinearity::sigmoid) == 1);
  CHECK(calculate_gain(Nonlinearity::selu) == 0.75);
  CHECK(near(calculate_gain(Nonlinearity::leaky_relu, 0.2), std::sqrt(2 / 1.04), 1e-15));
}

TEST_CASE("each rule has the spread that its formula says", "[nn]") {
  Tensor<float, 300, 200> w;
  nn::init::kaiming_normal(w, Key{1}, 5.0 / 3);
  CHECK(near(moments(w).std, 5.0 / 3 / std::sqrt(200.0), 1e-3));
  CHECK(near(moments(w).mean, 0, 1e-3));
  nn::init::kaiming_normal(w, Key{1}, 1, nn::init::Fan::out);
  CHECK(near(moments(w).std, 1 / std::sqrt(300.0), 1e-3));
  nn::init::kaiming_uniform(w, Key{1});
  double const bound = std::sqrt(6.0 / 200);
  CHECK(near(moments(w).most, bound, 1e-4));
  CHECK(near(moments(w).least, -bound, 1e-4));
  CHECK(near(moments(w).std, std::sqrt(2.0 / 200), 1e-3));
  nn::init::xavier_uniform(w, Key{1});
  CHECK(near(moments(w).most, std::sqrt(6.0 / 500), 1e-4));
  nn::init::xavier_normal(w, Key{1}, 2);
  CHECK(near(moments(w).std, 2 * std::sqrt(2.0 / 500), 1e-3));
  nn::init::normal(w, Key{1}, 3, 0.5);
  CHECK(near(moments(w).mean, 3, 0.01));
  nn::init::constant(w, 4);
  CHECK(array_equal(w, full({300, 200}, 4)));

  Tensor<float, 8, 4, 3, 3> kernel;  // fan in 4 * 9
  nn::init::kaiming_uniform(kernel, Key{1}, 1);
  CHECK(moments(kernel).most <= std::sqrt(3.0 / 36));
  Tensor<float, 8> vector;
  CHECK(tests::error_of([&] { nn::init::xavier_normal(vector, Key{1}); }) ==
        "xavier_normal: a weight has at least 2 axes, got [8]");
}

TEST_CASE("a rule writes in place", "[nn]") {
  auto w = zeros<float, 3, 2>();
  auto const view = w;
  nn::init::ones(w);
  CHECK(array_equal(view, ones({3, 2})));
}

TEST_CASE("modules start as in PyTorch", "[nn]") {
  auto const linear = init<nn::Linear<100, 50>>(1);
  CHECK(near(moments(linear.weight).most, 0.1, 1e-3));
  CHECK(near(moments(linear.weight).least, -0.1, 1e-3));
  CHECK(moments(linear.bias).most <= 0.1);
  CHECK(moments(linear.bias).std > 0.04);
  CHECK(near(moments(init<nn::Embedding<200, 50>>(1).weight).std, 1, 0.03));
  auto const norm = init<nn::LayerNorm<5>>();
  CHECK(array_equal(norm.weight, ones({5})));
  CHECK(array_equal(norm.bias, zeros({5})));
}

namespace {

struct Block {
  nn::Linear<4, 4> linear;
  Tensor<float, 4> offset;
  DFDX_FIELDS(linear, offset)
  void reset(Key) { nn::init::constant(linear.bias, 7); }
};

struct Model {
  nn::Embedding<27, 4> embedding;
  std::array<Block, 3> blocks;
  nn::Sequential<nn::Linear<4, 8>, nn::Tanh, nn::LayerNorm<8>, nn::GELU, nn::Linear<8, 3, false>> head;
  DFDX_FIELDS(embedding, blocks, head)
  constexpr auto operator()(operand auto const& x) const { return head(blocks[0].linear(embedding(x))); }
};

static_assert(leaf_count<Model> == 1 + 3 * 3 + 5);
static_assert(parameter_count<Model> == 27 * 4 + 3 * 24 + 40 + 16 + 24);

std::vector<Array> leaves(Model const& m) {
  std::vector<Array> r;
  visit(m, [&](Array const& x) { r.push_back(x); });
  return r;
}

}  // namespace

TEST_CASE("init fills every leaf, the same for the same seed and all different", "[nn]") {
  auto const a = init<Model>(42), b = init<Model>(42), c = init<Model>(43);
  auto const of_a = leaves(a), of_b = leaves(b), of_c = leaves(c);
  for (std::size_t i = 0; i < of_a.size(); ++i) CHECK(array_equal(of_a[i], of_b[i]));
  CHECK(!array_equal(a.embedding.weight, c.embedding.weight));
  CHECK(!array_equal(a.blocks[0].linear.weight, a.blocks[1].linear.weight));
  CHECK(array_equal(a.blocks[2].offset, zeros({4})));
  // A struct's own rule comes after its parts'.
  CHECK(array_equal(a.blocks[1].linear.bias, full({4}, 7)));
  std::set<float> firsts;
  for (Array const& x : of_a) firsts.insert(*x.data<float>());
  CHECK(firsts.size() >= 1 + 3 + 3 + 3);
}

TEST_CASE("names are those of a state dict", "[nn]") {
  Model m;
  std::vector<std::string> names;
  visit_named(m, [&](std::string const& name, auto const&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"embedding.weight", "blocks.0.linear.weight",
                                          "blocks.0.linear.bias", "blocks.0.offset", "blocks.1.linear.weight",
                                          "blocks.1.linear.bias", "blocks.1.offset", "blocks.2.linear.weight",
                                          "blocks.2.linear.bias", "blocks.2.offset", "head.0.weight",
                                          "head.0.bias", "head.2.weight", "head.2.bias", "head.4.weight"});
}

TEST_CASE("a model computes the same from Tensors and Arrays", "[nn]") {
  auto const m = init<Model>(1);
  auto const typed_result = m(Tensor<std::int32_t, 2>::from({0, 26}));
  static_assert(std::is_same_v<decltype(typed_result), Tensor<float, 2, 3> const>);
  Array const untyped_result = m(from<std::int32_t>({0, 26}));
  CHECK(array_equal(typed_result, untyped_result));
}
