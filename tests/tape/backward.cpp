// SPDX-License-Identifier: BSL-1.0
// The run-time tape as a user meets it: leaves, gradients that add up, passes that may be repeated or differentiated,
// control flow, hooks.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <functional>
#include <limits>

namespace tests::tape_backward {

namespace {

using namespace dfdx;
using Catch::Approx;
using tests::error_of;

Array number(double v) { return full({}, v, DType::f64); }
Array leaf_number(double v) {
  Array a = number(v);
  a.requires_grad(true);
  return a;
}
Array leaf_vector(std::initializer_list<double> v) {
  Array a = from(v);
  a.requires_grad(true);
  return a;
}

double at(Array const& x, index_t i) { return read_real(dfdx::detail::packed(x).operand(), i); }

// The gradient of the sum of f, on the tape, by a transform of it and compiled; forward mode with ones is `along`.
template <class F, class X>
void check_gradient(F const&, X const& x, X const& want, Array const& along) {
  constexpr auto total = [](auto const& v) { return sum(F{}(v)); };
  X leaf = x.clone();
  leaf.requires_grad(true);
  total(leaf).backward();
  CHECK(array_equal(leaf.grad(), want));
  CHECK(array_equal(grad(total)(x), want));
  CHECK(array_equal(grad(total)(Array(x)), want));
  CHECK(array_equal(jvp(F{})(x, ones_like(x)).second, along));
}

TEST_CASE("the gradient of a largest element that is NaN goes to what is NaN") {
  double const n = std::numeric_limits<double>::quiet_NaN();
  auto const x = Tensor<double, 3, 4>::from({{n, n, n, n}, {1, n, 5, 5}, {3, 1, 3, 2}});
  Array const ones_of_rows = ones({3}, DType::f64), one = ones({}, DType::f64);
  check_gradient([](auto const& v) { return max<1>(v); }, x,
                 Tensor<double, 3, 4>::from({{0.25, 0.25, 0.25, 0.25}, {0, 1, 0, 0}, {0.5, 0, 0.5, 0}}),
                 ones_of_rows);
  check_gradient([](auto const& v) { return amin<1>(v); }, x,
                 Tensor<double, 3, 4>::from({{0.25, 0.25, 0.25, 0.25}, {0, 1, 0, 0}, {0, 1, 0, 0}}),
                 ones_of_rows);
  check_gradient([](auto const& v) { return amax(v); }, x,
                 Tensor<double, 3, 4>::from({{0.2, 0.2, 0.2, 0.2}, {0, 0.2, 0, 0}, {0, 0, 0, 0}}), one);
  // Of two operands both, as in PyTorch.
  Tensor<double, 3, 4> const larger =
      Tensor<double, 3, 4>::from({{1, 1, 1, 1}, {0, 1, 1, 1}, {1, 0, 1, 0.5}});
  check_gradient([](auto const& v) { return maximum(v, 2.0); }, x, larger, larger);
  Tensor<double, 3, 4> const smaller =
      Tensor<double, 3, 4>::from({{1, 1, 1, 1}, {1, 1, 0, 0}, {0, 1, 0, 0.5}});
  check_gradient([](auto const& v) { return minimum(2.0, v); }, x, smaller, smaller);
}

template <class F>
void check_steps(F const& f, char const* name) {
  INFO(name);
  for (Array const& start : {number(-1.5), from({-1.5, 0.0, 2.25})}) {
    Array const x = start.detach().clone();
    Array leaf = x;
    leaf.requires_grad(true);
    Array const y = f(leaf);
    CHECK(y.requires_grad());
    sum(y).backward();
    CHECK(array_equal(leaf.grad(), zeros_like(x)));
    CHECK(array_equal(grad([](auto const& v) { return sum(F{}(v)); })(x), zeros_like(x)));
    leaf.zero_grad();
    sum(f(leaf) * leaf).backward();  // beside what has a derivative
    CHECK(array_equal(leaf.grad(), y.detach()));
    // Gradients of gradients.
    Array const g = gradients(sum(f(leaf) * leaf * leaf), {leaf}, {.create_graph = true})[0];
    leaf.zero_grad();
    sum(g).backward();
    CHECK(array_equal(leaf.grad(), y.detach() * 2.0));
  }
}

TEST_CASE("steps have the derivative 0") {
  check_steps([](auto const& v) { return floor(v); }, "floor");
  check_steps([](auto const& v) { return ceil(v); }, "ceil");
  check_steps([](auto const& v) { return round(v); }, "round");
  check_steps([](auto const& v) { return trunc(v); }, "trunc");
  check_steps([](auto const& v) { return sign(v); }, "sign");
  check_steps([](auto const& v) { return floor_divide(v, 0.5); }, "floor_divide");
  constexpr auto steps = [](auto const& v) {
    return sum(round(v) + floor(v) + sign(v) + trunc(v) + ceil(v));
  };
  CHECK(array_equal(grad(steps)(Tensor<double, 2>::from({0.25, -3})), zeros<double, 2>()));
}

TEST_CASE("who requires a gradient, and who is a leaf") {
  Array const plain = number(2);
  Array const x = leaf_number(3);
  CHECK_FALSE(plain.requires_grad());
  CHECK(plain.is_leaf());
  CHECK(x.requires_grad());
  CHECK(x.is_leaf());
  Array const y = x * plain;
  CHECK(y.requires_grad());
  CHECK_FALSE(y.is_leaf());
  CHECK_FALSE((plain * plain).requires_grad());
  CHECK_FALSE((x > plain).requires_grad());
  CHECK_FALSE(stop_gradient(x).requires_grad());
  CHECK_FALSE(y.detach().requires_grad());
  CHECK(y.detach().bytes() == y.bytes());
  {
    no_grad const guard;
    CHECK_FALSE((x * x).requires_grad());
    {
      enable_grad const inner;
      CHECK((x * x).requires_grad());
    }
    CHECK_FALSE(is_grad_enabled());
  }
  CHECK(is_grad_enabled());
  CHECK(error_of([&] { full({2}, 1, DType::i32).requires_grad(true); }) ==
        "requires_grad: floating dtype required, got i32");
  Array z = x * 2.0;
  CHECK(error_of([&] { z.requires_grad(false); }) ==
        "requires_grad: only a leaf can be switched off; use detach");
  Array w = x;  // a copy of a leaf is that leaf
  w.requires_grad(false);
  CHECK_FALSE((x * x).requires_grad());
}

TEST_CASE("gradients add up, and are forgotten on request") {
  Array const x = leaf_vector({1, 2, 3});
  CHECK(x.grad().empty());
  sum(x * x).backward();
  CHECK(at(x.grad(), 2) == 6);
  Array const before = x.grad();
  sum(x * x).backward();
  CHECK(at(x.grad(), 2) == 12);
  CHECK(at(before, 2) == 6);  // what a user holds stays as it is
  x.zero_grad();
  CHECK(x.grad().empty());
  x.backward();  // a leaf is its own root, and the end gradient of what is no number is ones
  CHECK(at(x.grad(), 0) == 1);
  (x * 2.0).backward(from({1.0, 10.0, 100.0}));
  CHECK(at(x.grad(), 2) == 201);
  CHECK(error_of([&] { (x * 2.0).backward(number(1)); }) ==
        "backward: gradient of f64 [] for a value of f64 [3]");
  CHECK(error_of([&] { number(1).backward(); }) ==
        "backward: the value of shape [] does not require a gradient");
}

TEST_CASE("an operand used twice, a diamond, a shared subexpression") {
  Array const x = leaf_number(0.7);
  Array const s = sin(x);
  Array const y = s * s + s * x + (x - x);
  y.backward();
  double const c = std::cos(0.7), v = std::sin(0.7);
  CHECK(x.grad().item() == Approx(2 * v * c + c * 0.7 + v).epsilon(1e-15));
}

TEST_CASE("a second pass needs the values of the first") {
  Array const x = leaf_number(3);
  Array const y = exp(x * x);
  y.backward({.retain_graph = true});
  y.backward();
  CHECK(x.grad().item() == Approx(2 * 6 * std::exp(9.0)));
  CHECK(error_of([&] { y.backward(); }) ==
        "backward: through exp, whose values an earlier pass has freed; give that pass "
        "{.retain_graph = true}");
  Array const z = y * 2.0;  // the part that is left of the tape is spent too
  CHECK(error_of([&] { z.backward(); }) ==
        "backward: through exp, whose values an earlier pass has freed; give that pass "
        "{.retain_graph = true}");
  CHECK(x.grad().item() == Approx(2 * 6 * std::exp(9.0)));
}

TEST_CASE("gradients of gradients, to the fourth") {
  Array const x = leaf_number(1.3);
  Array f = pow(x, 5.0) * exp(x);
  std::function<double(double)> const poly[] = {
      [](double t) { return std::pow(t, 5); }, [](double t) { return 5 * std::pow(t, 4); },
      [](double t) { return 20 * std::pow(t, 3); }, [](double t) { return 60 * t * t; },
      [](double t) { return 120 * t; }};
  int const choose[5][5] = {{1}, {1, 1}, {1, 2, 1}, {1, 3, 3, 1}, {1, 4, 6, 4, 1}};
  for (int order = 1; order <= 4; ++order) {
    f = gradients(f, {x}, {.create_graph = true})[0];
    double want = 0;
    for (int k = 0; k <= order; ++k) want += choose[order][k] * poly[k](1.3) * std::exp(1.3);
    CHECK(f.item() == Approx(want).epsilon(1e-13));
  }
  CHECK(x.grad().empty());
  // backward() can record as well: the gradient itself is then on the tape.
  Array const y = leaf_number(2);
  (y * y * y).backward({.create_graph = true});
  Array const g = y.grad();
  REQUIRE(g.requires_grad());
  y.zero_grad();
  g.backward();
  CHECK(y.grad().item() == Approx(12));
  y.zero_grad();
}

TEST_CASE("gradients of chosen values leave leaves alone") {
  Array const a = leaf_number(2), b = leaf_number(5), unused = leaf_vector({1, 2});
  Array const m = a * b, y = m * m + a;
  std::vector<Array> const g = gradients(y, {a, m, unused, number(1)}, {.retain_graph = true});
  CHECK(g[0].item() == 2 * 10 * 5 + 1);
  CHECK(g[1].item() == 20);
  CHECK(g[2].shape() == make_shape(2));
  CHECK(at(g[2], 1) == 0);
  CHECK(g[3].item() == 0);
  CHECK(a.grad().empty());
  CHECK(b.grad().empty());

  // What is returned is the caller's, element by element, though the rule of sum gives one number for all.
  Array const x = leaf_vector({1, 2, 3});
  for (Array const& slope : gradients(sum(x) + a, {x, unused})) {
    double const first = at(slope, 0);
    slope[1].fill_(7);
    CHECK(at(slope, 0) == first);
    CHECK(at(slope, 1) == 7);
  }
}

TEST_CASE("gradients of values between, which keep none of them") {
  Array const x = leaf_vector({1, 2, 3});
  Array const h = x * x, k = h + 1.0;
  h.retain_grad();
  std::vector<Array> const g = gradients(sum(k * h), {k, h, x});
  CHECK(array_equal(g[0], h.detach()));
  CHECK(array_equal(g[1], h.detach() * 2.0 + 1.0));
  CHECK(array_equal(g[2], (h.detach() * 2.0 + 1.0) * x.detach() * 2.0));
  CHECK(h.grad().empty());
  CHECK(x.grad().empty());
}

TEST_CASE("values between keep their gradient on request, hooks see and change it") {
  Array const x = leaf_number(2);
  Array const m = x * x;
  m.retain_grad();
  double seen = 0;
  m.register_hook([&](Array const& g) { seen = g.item(); });
  x.register_hook([](Array const& g) { return g * 10.0; });
  x.register_hook([](Array const& g) { return g + 1.0; });
  (m * 3.0).backward();
  CHECK(seen == 3);
  CHECK(m.grad().item() == 3);
  CHECK(x.grad().item() == 121);
  x.zero_grad();
  (x * 1.0 + x * 1.0).backward();  // a hook sees the whole gradient of a pass, once
  CHECK(x.grad().item() == 21);
  CHECK(gradients(x * 1.0 + x * 1.0, {x})[0].item() == 21);  // also of gradients that are returned
  CHECK(x.grad().item() == 21);
  CHECK(error_of([&] { number(1).register_hook([](Array const&) {}); }) ==
        "register_hook: the value of shape [] does not require a gradient");
  CHECK(error_of([&] { number(1).retain_grad(); }) ==
        "retain_grad: the value of shape [] does not require a gradient");
  Array const z = leaf_number(1);
  z.register_hook([](Array const&) { return from({1.0, 2.0}); });
  CHECK(error_of([&] { (z * 2.0).backward(); }) == "register_hook: gradient of f64 [] required, got f64 [2]");
  CHECK(z.grad().empty());
}

TEST_CASE("loops whose length is data, and recursion over a tree") {
  Array const x = leaf_number(1.01);
  Array y = x;
  int rounds = 0;
  while (y.item() < 3) y = y * y, ++rounds;
  y.backward();
  double const power = std::pow(2.0, rounds);
  CHECK(x.grad().item() == Approx(power * std::pow(1.01, power - 1)).epsilon(1e-12));

  struct Tree {
    double leaf = 0;
    std::vector<Tree> below;
  };
  auto const end = [](double v) { return Tree{v, {}}; };
  Tree const tree{0, {end(2), Tree{0, {end(3), Tree{0, {end(5), end(7)}}}}}};
  Array const w = leaf_number(0.5);
  // A node is the sum of what is below it, times w.
  std::function<Array(Tree const&)> const value = [&](Tree const& t) -> Array {
    if (t.below.empty()) return number(t.leaf);
    Array s = value(t.below[0]);
    for (std::size_t i = 1; i < t.below.size(); ++i) s = s + value(t.below[i]);
    return s * w;
  };
  Array const v = value(tree);
  v.backward();
  CHECK(v.item() == Approx(2 * 0.5 + 3 * 0.25 + 12 * 0.125));
  CHECK(w.grad().item() == Approx(2 + 3 * 2 * 0.5 + 12 * 3 * 0.25));
}

TEST_CASE("elements and slices of a value") {
  Array const x = leaf_vector({1, 2, 3, 4});
  Array y = number(0);
  for (index_t i = 0; i < x.size(); ++i) y = y + x[i] * x[i] * static_cast<double>(i);
  y = y + x[-1];
  y.backward();
  for (index_t i = 0; i < 4; ++i)
    CHECK(at(x.grad(), i) == 2 * at(x, i) * static_cast<double>(i) + (i == 3 ? 1 : 0));
  CHECK(error_of([&] { x[4]; }) == "at: index 4 out of range for axis 0 of [4]");
  CHECK(error_of([&] { x[-5]; }) == "at: index -5 out of range for axis 0 of [4]");
  CHECK(error_of([&] { number(1)[0]; }) == "at: a scalar has no axes, so no index 0");

  // A part of what has other gradients as well, of a first and a second order.
  Array const m = from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3});
  Array w = m.detach();
  w.requires_grad(true);
  Array const f = sum(w * w * w) + sum(square(w[1]) * w[0]) + sum(slice_axis(w, 1, 0, 2, 2) * 7.0);
  Array const g = gradients(f, {w}, {.create_graph = true})[0];
  CHECK(at(g, 0) == 3 * 1 + 16 + 7);
  CHECK(at(g, 4) == 3 * 25 + 2 * 5 * 2);
  Array const h = gradients(sum(g), {w})[0];
  CHECK(at(h, 0) == 6 * 1 + 2 * 4);
  CHECK(at(h, 4) == 6 * 5 + 2 * 2 + 2 * 5);
}

TEST_CASE("what two operands are handed is not changed for one of them") {
  // A sum hands one cotangent to both of its operands; to that of one an element or a slice adds.
  for (bool part_first : {false, true})
    for (bool slice : {false, true}) {
      Array const x = leaf_vector({1, 2, 3}), z = leaf_vector({4, 5, 6}), w = from({1.0, 10.0, 100.0});
      Array const part = slice ? sum(x(range(1, 2))) * 5.0 : x(1) * 5.0, whole = sum((x + z) * w);
      (part_first ? part + whole : whole + part).backward();
      CHECK(array_equal(x.grad(), from({1.0, 15.0, 100.0})));
      CHECK(array_equal(z.grad(), w));
      // Nor is the one that the caller gave.
      Array const h = x * 1.0,
                  y = part_first ? h + pad<0, 2>(h(range(1, 2)) * 5.0) : pad<0, 2>(h(range(1, 2)) * 5.0) + h;
      y.backward(w);
      CHECK(array_equal(w, from({1.0, 10.0, 100.0})));
    }
  // A gradient belongs to its leaf: who changes it changes no other.
  Array const x = leaf_vector({1, 2}), z = leaf_vector({3, 4}), w = from({1.0, 10.0});
  (x + z).backward(w);
  Array g = x.grad();
  g *= 2.0;
  CHECK(array_equal(x.grad(), from({2.0, 20.0})));
  CHECK(array_equal(z.grad(), from({1.0, 10.0})));
  CHECK(array_equal(w, from({1.0, 10.0})));
}

TEST_CASE("elements of 32 bits add to one another") {
  Array x = from<float>({1, 2, 3});
  x.requires_grad(true);
  (x(1) * 2.0 + x(1) * x(0) + x(1)).backward();
  CHECK(array_equal(x.grad(), from<float>({2, 4, 0})));
}

TEST_CASE("mixed dtypes, broadcasting and views find their way back") {
  Array x = full({1, 3}, 2, DType::f16);
  x.requires_grad(true);
  Array w = full({2, 1}, 3, DType::f32);
  w.requires_grad(true);
  Array const y = transpose(x * w, 0, 1);
  CHECK(y.dtype() == DType::f32);
  sum(y * y).backward();
  CHECK(x.grad().meta() == x.meta());
  CHECK(w.grad().meta() == w.meta());
  CHECK(at(x.grad(), 0) == 2 * 6 * 3 * 2);
  CHECK(at(w.grad(), 1) == 2 * 6 * 2 * 3);
}

TEST_CASE("an anomaly is told from the numbers that came before it") {
  detect_anomaly const watch_out;
  Array const x = leaf_vector({1, -1});
  CHECK(error_of([&] { sqrt(x); }) == "sqrt: made NaN of numbers, in a result of shape [2]");
  Array const zero = leaf_vector({0, 1});
  // sqrt(0) * 0 has the value 0 and the derivative infinity * 0.
  Array const y = sum(sqrt(zero) * 0.0);
  CHECK(error_of([&] { y.backward(); }) ==
        "backward of sqrt: made NaN of numbers, in the gradient of operand 0 of shape [2]");
  CHECK(zero.grad().empty());
}

TEST_CASE("a failed pass changes no gradient and can be followed by others") {
  Array const x = leaf_number(2), w = leaf_number(3);
  x.register_hook([](Array const&) -> Array { throw std::runtime_error("no"); });
  Array const y = x * w;
  CHECK_THROWS_AS(y.backward({.retain_graph = true}), std::runtime_error);
  std::vector<Array> const g = gradients(y, {w});
  CHECK(g[0].item() == 2);
}

TEST_CASE("gradients that repeat one number meet others, in any order") {
  for (DType d : {DType::f32, DType::f64, DType::f16})
    for (int order = 0; order < 6; ++order) {
      Array x = cast_to(arange(0.0, 40.0, 1.0, DType::f64), d).reshape({2, 20});
      x.requires_grad(true);
      Array const parts[] = {sum(x) * 0.25, sum(square(x)), sum(x) * 0.5};
      int const a = order % 3, b = (a + 1 + order / 3) % 3, c = 3 - a - b;
      (parts[a] + parts[b] + parts[c]).backward();
      Array const g = x.grad();
      CHECK(g.meta() == x.meta());
      CHECK(g.contiguous_memory());
      for (int i = 0; i < 40; ++i) CHECK(at(g, i) == 2 * i + 0.75);
      // What was handed out stays as it is when more is added, whether it repeats a number or not.
      sum(x).backward();
      CHECK(at(g, 3) == 6.75);
      CHECK(at(x.grad(), 3) == 7.75);
    }
}

TEST_CASE("a pass inside of a hook of another") {
  Array const x = leaf_number(2), w = leaf_number(5);
  Array const y = x * x, inner = w * w;
  y.register_hook([&](Array const& g) {
    inner.backward();
    return g * w.grad();
  });
  (y * 3.0).backward();
  CHECK(w.grad().item() == 10);
  CHECK(x.grad().item() == 3 * 10 * 4);
}

TEST_CASE("reductions whose axes go or stay have the same gradients, of first and second order") {
  for (int which = 0; which < 3; ++which)
    for (bool keep : {false, true}) {
      Array const x = leaf_vector({0.5, -1, 2, 3, 0.25, 1.5}), m = reshape(x, {2, 3});
      Array const r = which == 0 ? sum(m, {1}, keep) : which == 1 ? prod(m, {1}, keep) : max(m, {1}, keep);
      std::vector<Array> const g = gradients(sum(square(r)), {x}, {.create_graph = true});
      sum(square(g[0])).backward();
      // r_0 = 1.5, -1 or 2; of which d r / d x_0 = 1, -2 or 0.
      double const first[] = {3, 4, 0};
      CHECK(at(g[0], 0) == Approx(first[which]));
      // Of the sum of their squares: 12 r^2 of the first row; 4 (a^2 b^4 c^4 + a^4 b^2 c^4 + a^4 b^4 c^2); 4 c^2.
      double const second[] = {36, 104, 0};
      CHECK(at(x.grad(), 0) == Approx(second[which]));
      CHECK(x.grad().meta() == x.meta());
    }
}

}  // namespace

}  // namespace tests::tape_backward
