// SPDX-License-Identifier: BSL-1.0
// Weights: the moments and bounds that the rules promise, determinism, and init of whole models.
#include "support.hpp"
#include "worse.hpp"

#include <dfdx/nn/activation.hpp>
#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/init_more.hpp>
#include <dfdx/nn/layer_norm.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/repeat.hpp>
#include <dfdx/nn/sequential.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/create.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <set>

namespace tests::nn_init {

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

TEST_CASE("rules by name", "[nn]") {
  Tensor<double, 300, 200> w;
  nn::init::lecun_normal(w, Key{1});
  CHECK(near(moments(w).std, 1 / std::sqrt(200.0), 1e-3));
  nn::init::lecun_uniform(w, Key{1});
  CHECK(near(moments(w).most, std::sqrt(3.0 / 200), 1e-4));

  nn::init::truncated_normal(w, Key{1});
  CHECK(near(moments(w).std, 0.8796256, 5e-3));  // of a standard normal within two deviations
  CHECK(near(moments(w).most, 2, 1e-2));
  CHECK(moments(w).most <= 2);
  CHECK(near(moments(w).least, -2, 1e-2));
  nn::init::truncated_normal(w, Key{1}, 1, 0.5, 1, 4);  // half a normal
  CHECK(near(moments(w).mean, 1 + 0.5 * std::sqrt(2 / 3.141592653589793), 5e-3));
  CHECK(moments(w).least >= 0);
  nn::init::truncated_normal(w, Key{1}, 0, 1, 8, 9);  // far out, where a normal has next to nothing
  CHECK(near(moments(w).mean, 8.1214, 2e-3));
  for (double x : {-9.0, -3.0, -0.5, 0.0, 1e-9, 2.5})
    CHECK(near(nn::init::detail::normal_quantile(0.5 * std::erfc(-x / std::sqrt(2.0))), x,
               1e-12 * std::exp(x > 0 ? x * x / 2 : 0)));

  auto const unit = [](auto const& m, std::size_t vectors, auto at) {
    double worst = 0;
    for (std::size_t i = 0; i < vectors; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        worst = tests::worse(worst, std::fabs(at(m, i, j) - (i == j ? 9.0 : 0.0)));
    return worst;
  };
  Tensor<double, 20, 7> tall;
  nn::init::orthogonal(tall, Key{2}, 3);
  CHECK(unit(tall, 7, [](auto const& m, std::size_t i, std::size_t j) {
          double r = 0;
          for (std::size_t k = 0; k < 20; ++k) r += m(k, i) * m(k, j);
          return r;
        }) < 1e-13);
  Tensor<double, 5, 3, 4> wide;  // as [5, 12]
  nn::init::orthogonal(wide, Key{2}, 3);
  CHECK(unit(wide, 5, [](auto const& m, std::size_t i, std::size_t j) {
          double r = 0;
          for (std::size_t k = 0; k < 12; ++k) r += m(i, k / 4, k % 4) * m(j, k / 4, k % 4);
          return r;
        }) < 1e-13);

  Tensor<double, 30, 8> thin;
  nn::init::sparse(thin, Key{3}, 0.25, 2);
  bool alike = true;
  for (std::size_t c = 0; c < 8; ++c) {
    int zeros = 0;
    for (std::size_t r = 0; r < 30; ++r) {
      zeros += thin(r, c) == 0;
      alike = alike && (thin(r, c) == 0) == (thin(r, 0) == 0);
    }
    CHECK(zeros == 8);  // 7.5, rounded up
  }
  CHECK_FALSE(alike);
  CHECK(near(moments(thin).std, 2 * std::sqrt(22.0 / 30), 0.3));

  Tensor<float, 4, 3, 5> line;
  nn::init::dirac(line);
  CHECK(moments(line).mean * 60 == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(line(i, i, 2) == 1);
  Tensor<float, 4, 2, 3, 3> two;
  nn::init::dirac(two, 2);
  CHECK(near(moments(two).mean * 72, 4, 1e-9));
  for (std::size_t i = 0; i < 4; ++i) CHECK(two(i, i % 2, 1, 1) == 1);

  Tensor<float, 8> vector;
  CHECK(tests::error_of([&] { nn::init::orthogonal(vector, Key{1}); }) ==
        "orthogonal: a weight has at least 2 axes, got [8]");
  CHECK(tests::error_of([&] { nn::init::sparse(vector, Key{1}, 0.5); }) ==
        "sparse: a matrix required, got [8]");
  CHECK(tests::error_of([&] { nn::init::dirac(vector); }) ==
        "dirac: a weight of 3 to 5 axes required, got [8]");
  CHECK(tests::error_of([&] { nn::init::dirac(two, 3); }) == "dirac: 4 channels do not make 3 groups");
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

auto const shared_start = full<float, 2>(5);
struct Gate {
  Tensor<float> bias = 1.0f;
  Tensor<float, 3> weight;
  DFDX_FIELDS(bias, weight)
};
struct Started {
  Tensor<float> scale = 2.6f;
  Tensor<double, dyn> steps = zeros<double, dyn>(make_shape(4)) + 1.0;
  Buffer<float, 2> mean = shared_start;
  Gate gate{3.0f, {}};
  std::array<Gate, 2> more;
  nn::Repeat<Gate, 3> gates;
  nn::Linear<2, 2> layer;
  DFDX_FIELDS(scale, steps, mean, gate, more, gates, layer)
};

TEST_CASE("a tensor begins with what its struct gives it", "[nn]") {
  auto const check = [](Started const& m) {
    CHECK(m.scale.item() == 2.6f);
    CHECK(array_equal(m.steps, full<double, 4>(1)));
    CHECK(array_equal(m.mean, shared_start));
    CHECK(m.gate.bias.item() == 3);
    CHECK(array_equal(m.gate.weight, zeros<float, 3>()));
    CHECK(m.more[1].bias.item() == 1);
    CHECK(m.gates[2].bias.item() == 1);
    CHECK(!array_equal(m.layer.weight, zeros<float, 2, 2>()));
  };
  Started m = init<Started>(1);
  check(m);
  m.mean += 1.0f;  // memory of its own
  CHECK(shared_start(0) == 5);
  m.scale += 1.0f;
  m.gate.bias += 1.0f;
  Tensor<float> const same = m.scale;
  init(m, Key{3});  // again, in the memory that it has
  check(m);
  CHECK(same.item() == 2.6f);
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

}  // namespace tests::nn_init
