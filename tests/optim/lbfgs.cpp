// SPDX-License-Identifier: BSL-1.0
// L-BFGS on a curved valley and on regressions, compiled and on the tape.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <string>

namespace tests::optim_lbfgs {

using namespace dfdx;

namespace {

constexpr auto rosenbrock = [](auto const& x) {
  auto const a = slice<0, 0, -1>(x), b = slice<0, 1, 10>(x);
  return sum(100.0 * square(b - square(a)) + square(1.0 - a));
};

struct Logistic {
  Tensor<double, 4> weight;
  Tensor<double> bias;
  DFDX_FIELDS(weight, bias)
};
constexpr auto regularized = [](auto const& m, auto const& x, auto const& y) {
  auto const z = matmul(x, m.weight) + m.bias;
  return mean(softplus(z) - y * z) + 0.01 * sum(square(m.weight));
};

}  // namespace

TEST_CASE("Rosenbrock's valley in ten dimensions", "[optim]") {
  auto const gradient = value_and_grad(rosenbrock);
  auto x = full<Tensor<double, 10>>(-1.2);
  optim::LBFGS lbfgs({.max_iter = 200, .tolerance_grad = 1e-10, .tolerance_change = 0});
  double const least = lbfgs.step(x, [&](auto const& p) { return gradient(p); });
  CHECK(lbfgs.gradient_norm() < 1e-8);
  INFO(lbfgs.evaluations() << " evaluations, value " << least);
  CHECK((least < 1e-15 || std::fabs(least - 3.9866) < 0.01));  // the other minimum of ten dimensions
  CHECK(lbfgs.evaluations() < 120);
  CHECK(lbfgs.evaluations() > 10);
}

TEST_CASE("a logistic regression, to the last digit of its gradient", "[optim]") {
  auto const x = randn<double, 60, 4>(Key{1});
  auto const noise = randn<double, 60>(Key{2});
  auto const truth = Tensor<double, 4>::from({1, -2, 0.5, 3});
  auto const y = cast<double>(matmul(x, truth) + noise > 0.3);
  auto const gradient = value_and_grad(regularized);
  auto model = init<Logistic>();
  optim::LBFGS lbfgs({.max_iter = 100, .tolerance_grad = 1e-12, .tolerance_change = 0});
  double const least = lbfgs.step(model, [&](auto const& m) { return gradient(m, x, y); });
  CHECK(lbfgs.gradient_norm() < 1e-8);
  CHECK(lbfgs.evaluations() < 40);
  // Another start, few iterations at a time: the curvature is kept between steps. On the tape.
  Logistic other{full<Tensor<double, 4>>(2), full<Tensor<double>>(-1)};
  optim::LBFGS by_parts({.max_iter = 4, .tolerance_grad = 1e-12, .tolerance_change = 0, .history_size = 5});
  double reached = 0;
  for (int k = 0; k < 12; ++k)
    reached = by_parts.step(other, [&](Logistic const& m) {
      Logistic taped = m;
      watch(taped);
      Array const l = regularized(taped, x, y);
      l.backward();
      return std::pair(l.detach(), grads(taped));
    });
  CHECK(by_parts.gradient_norm() < 1e-8);
  CHECK(by_parts.evaluations() < 60);
  CHECK(std::fabs(reached - least) < 1e-14);
  CHECK(allclose(model.weight, other.weight, 1e-7, 1e-7));
}

TEST_CASE("functions that are not defined everywhere, and f32", "[optim]") {
  // Steps into x <= 0 have no value: the search turns back.
  auto const gradient = value_and_grad([](auto const& x) { return x * x * x - log(x); });
  Tensor<double> x(Array(full({}, 3, DType::f64)));
  optim::LBFGS lbfgs({.lr = 10, .max_iter = 50, .tolerance_grad = 1e-12, .tolerance_change = 0});
  lbfgs.step(x, [&](auto const& p) { return gradient(p); });
  CHECK(std::fabs(x.item() - std::cbrt(1.0 / 3)) < 1e-8);

  auto const short_gradient =
      value_and_grad([](auto const& p) { return sum(square(square(p - 3.0f)) + square(p)); });
  auto p = full<Tensor<float, 3>>(9);
  optim::LBFGS single({.max_iter = 60, .tolerance_grad = 1e-4});
  single.step(p, [&](auto const& at) { return short_gradient(at); });
  CHECK(single.gradient_norm() < 1e-3);

  Tensor<double> bad(Array(full({}, -1, DType::f64)));
  std::string said;
  try {
    lbfgs.step(bad, [&](auto const& at) { return gradient(at); });
  } catch (error const& e) {
    said = e.what();
  }
  CHECK(said == "lbfgs: the function is nan at the start");
  // At most so many evaluations.
  auto far = full<Tensor<double, 10>>(-1.2);
  auto const valley = value_and_grad(rosenbrock);
  optim::LBFGS few({.max_iter = 100, .max_eval = 7});
  few.step(far, [&](auto const& at) { return valley(at); });
  CHECK(few.evaluations() == 7);
}

}  // namespace tests::optim_lbfgs
