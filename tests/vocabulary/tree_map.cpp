// SPDX-License-Identifier: BSL-1.0
// Functions of whole models: tree_map, zeros_like and ones_like, parameters in a row.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <array>
#include <vector>

#include <dfdx/dfdx.hpp>

#include "support.hpp"
#include "worse.hpp"

namespace tests::vocabulary_tree_map {

namespace {

using namespace dfdx;

struct Curve {
  Tensor<double> level, slope;
  Tensor<double, 2> bend;
  Buffer<double, 3> seen;
  DFDX_FIELDS(level, slope, bend, seen)
  constexpr auto operator()(auto const& t) const {
    return level + slope * t + select<0, 0>(bend) * square(t) + select<0, 1>(bend) * exp(-t);
  }
};
Curve curve() { return {0.5, -1.0, {2, 3}, full<double, 3>(7)}; }

struct Net {
  nn::Linear<2, 3> first;
  nn::Repeat<nn::Linear<3, 3>, 2> middle;
  std::array<Tensor<float, 2>, 2> list;
  std::tuple<Tensor<float>, Tensor<float, 1>> pair;
  DFDX_FIELDS(first, middle, list, pair)
};

constexpr auto step = [](auto const& p, auto const& g) { return p - 0.5f * g; };

TEST_CASE("tree_map: leaves that stand at the same place", "[tree_map]") {
  auto const a = init<Net>(1), g = init<Net>(2);
  auto const check = [&](Net const& r) {
    Vec<Array> const x = detail::leaves_of(a), y = detail::leaves_of(g), seen = detail::leaves_of(r);
    REQUIRE(seen.size() == 8);
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(allclose(seen[i], x[i] - y[i] * 0.5, 1e-6, 1e-6));
  };
  check(tree_map(step, a, g));
  check(compile([](Net const& x, Net const& y) { return tree_map(step, x, y); })(a, g));
  CHECK(array_equal(a.first.weight, init<Net>(1).first.weight));

  auto const zeros = zeros_like(a), ones = compile([](Net const& x) { return ones_like(x); })(a);
  visit(zeros, [](auto const& leaf) { CHECK(sum(abs(leaf)).item() == 0); });
  visit(ones, [](auto const& leaf) { CHECK(mean(leaf).item() == 1); });

  // Their memory is their own: moments and sums begin with them, and are changed in place.
  auto sums = zeros_like(a);
  lerp_(sums, a, 0.5);
  CHECK(allclose(sums.first.weight, a.first.weight * 0.5));
  sums = zeros_like(a);
  sums.first.weight(0, 1) = 3;
  CHECK(sum(sums.first.weight).item() == 3);
  Array twos = full_like(Array(a.first.weight), 2);
  twos += a.first.weight;
  CHECK(array_equal(twos, a.first.weight + 2));
  auto moments = stateful([](Curve const& was, Curve const& g) {
    auto const now = tree_map([](auto const& s, auto const& d) { return s + d; }, was, g);
    return std::pair(now.level, now);
  });
  auto total = zeros_like(curve());
  moments(total, curve());
  CHECK(moments(total, curve()).item() == 1);

  // On the tape, with parts whose number the program finds out.
  std::vector<Array> x = {from({1.0, 2.0}), from({3.0})}, y = {from({2.0, 2.0}), from({5.0})};
  watch(x);
  auto const r = tree_map([](auto const& p, auto const& q) { return p * q; }, x, y);
  sum(r[0]).backward();
  CHECK(array_equal(x[0].grad(), y[0]));
  CHECK(r[1].item() == 15);
  CHECK_THROWS_MATCHES(tree_map(step, x, std::vector<Array>(1)), error,
                       Catch::Matchers::Message("tree_map: lists of one length required"));
}

// Gradients of each example, which are clipped before they are added up, and how far each is from the mean.
struct Layers {
  nn::Linear<3, 2> first;
  std::array<nn::Linear<2, 2>, 2> list;
  DFDX_FIELDS(first, list)
};
constexpr auto error_of_one = [](Layers const& m, Tensor<float, 3> const& x) {
  return sum(square(m.list[1](tanh(m.list[0](tanh(m.first(x)))))));
};
constexpr auto gradients_of_each = vmap(grad(error_of_one), in_axes<unmapped, 0>);
constexpr auto clipped = [](Layers const& m, Tensor<float, 5, 3> const& x) {
  auto const each = gradients_of_each(m, x);
  auto squares = zeros<float, 5>();
  visit(each, [&](auto const& g) { squares = squares + sum<1>(reshape<5, -1>(square(g))); });
  auto const weight = minimum(0.5f * rsqrt(squares), 1.0f);
  auto const total = tree_map([&](auto const& g) { return einsum<"b,b...->...">(weight, g); }, each);
  auto const apart = tree_map([](auto const& g, auto const& mean) { return g - mean; }, each,
                              tree_map([](auto const& g) { return mean<0>(g); }, each));
  return std::pair(total, apart);
};

TEST_CASE("tree_map: stacked trees, with their axis and without it", "[tree_map]") {
  auto const m = init<Layers>(1);
  auto const x = randn<float, 5, 3>(Key{2});
  Layers total = zeros_like(m), sums = zeros_like(m);
  for (auto const& row : x) {
    auto const g = grad(error_of_one)(m, row);
    float const length = norm(parameters_to_vector(g)).item(), weight = std::min(0.5f / length, 1.0f);
    total = tree_map([&](auto const& a, auto const& b) { return a + weight * b; }, total, g);
    sums = tree_map([&](auto const& a, auto const& b) { return a + b; }, sums, g);
  }
  auto const check = [&](Layers const& seen, Stacked<Layers, 5> const& apart) {
    CHECK(allclose(parameters_to_vector(seen), parameters_to_vector(total), 1e-5, 1e-6));
    Layers const part = apart[3], g = grad(error_of_one)(m, Tensor<float, 3>(x[3]));
    CHECK(allclose(part.list[1].weight, g.list[1].weight - sums.list[1].weight / 5.0f, 1e-5, 1e-6));
  };
  auto const [eager, eager_apart] = clipped(m, x);
  check(eager, eager_apart);
  auto const [compiled, compiled_apart] = compile(clipped)(m, x);
  check(compiled, compiled_apart);
  // A leaf of each part beside one of all.
  auto const scaled =
      tree_map([](auto const& p, auto const& g) { return p - 0.1f * sum<0>(g); }, m, gradients_of_each(m, x));
  CHECK(allclose(scaled.first.bias, m.first.bias - 0.1f * sums.first.bias, 1e-5, 1e-6));
}

// The gradient of the end of a path by the parameters of its slope: a sum of models in a loop.
constexpr auto summed = [](Curve const& c, Tensor<double, 4> const& times) {
  constexpr auto at = [](Curve const& m, auto const& t) { return m(t); };
  return scan(
      [&](Curve const& sum, auto const& t) {
        return tree_map([](auto const& s, auto const& g) { return s + g; }, sum, grad(at)(c, t));
      },
      zeros_like(c), times);
};

TEST_CASE("tree_map: a sum of gradients is carried by a loop", "[tree_map]") {
  Tensor<double, 4> const times{0, 1, 2, 3};
  auto const c = curve();
  Curve const g = grad([](Curve const& m, Tensor<double, 4> const& t) { return sum(m(t)); })(c, times);
  for (Curve const& r : {summed(c, times), compile(summed)(c, times)}) {
    CHECK(r.level.item() == 4);
    CHECK(r.slope.item() == 6);
    CHECK(allclose(r.bend, g.bend, 1e-12, 1e-12));
  }
}

constexpr auto curve_loss = [](Curve const& c, Tensor<double, 4> const& times) {
  return mean(square(c(times)));
};
constexpr auto row_loss = [](auto const& v, Curve const& like, Tensor<double, 4> const& times) {
  return curve_loss(vector_to_parameters(v, like), times);
};

TEST_CASE("parameters in a row: derivatives of models as matrices", "[tree_map]") {
  Tensor<double, 4> const times{0, 1, 2, 3};
  auto const c = curve();
  Tensor<double, 4> const v = parameters_to_vector(c);
  CHECK(array_equal(v, Tensor<double, 4>{0.5, -1, 2, 3}));
  Curve const back = vector_to_parameters(v * 2.0, c);
  CHECK(back.slope.item() == -2);
  CHECK(array_equal(back.bend, c.bend * 2.0));
  CHECK(array_equal(back.seen, c.seen));

  auto const g = grad(row_loss)(v, c, times);
  CHECK(allclose(g, parameters_to_vector(grad(curve_loss)(c, times)), 1e-12, 1e-12));
  // The loss is a square of what is linear in the parameters: one step of Newton ends at its least value.
  auto const h = hessian(row_loss)(v, c, times);
  Curve const best = vector_to_parameters(v - solve(h, g), c);
  CHECK(curve_loss(best, times).item() < 1e-20);
  auto const taped = v.clone();
  Array leaf = taped;
  leaf.requires_grad(true);
  row_loss(Tensor<double, 4>(leaf), c, times).backward();
  CHECK(allclose(leaf.grad(), g, 1e-12, 1e-12));

  std::vector<Array> const lists = {from({1.0, 2.0}), from({3.0})};
  Array const row = parameters_to_vector(lists);
  CHECK(array_equal(row, from({1.0, 2.0, 3.0})));
  CHECK(array_equal(vector_to_parameters(row, lists)[1], lists[1]));
  CHECK_THROWS_MATCHES(vector_to_parameters(from({1.0, 2.0}), lists), error,
                       Catch::Matchers::Message("vector_to_parameters: [2] numbers for a tree of 3"));
}

}  // namespace

}  // namespace tests::vocabulary_tree_map
