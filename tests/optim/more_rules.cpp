// SPDX-License-Identifier: BSL-1.0
// Rules of signs, of averages and of matrices against their formulas in double.
#include "optim/formulas.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace tests::optim_more_rules {

using namespace dfdx;
using namespace formulas;

namespace {

// Row-major matrices of any size.
struct Matrix {
  std::size_t rows, columns;
  std::vector<double> v;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), v(r * c) {}
  double& operator()(std::size_t i, std::size_t j) { return v[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return v[i * columns + j]; }
};
Matrix product(Matrix const& a, Matrix const& b) {
  Matrix r(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < b.columns; ++j)
      for (std::size_t k = 0; k < a.columns; ++k) r(i, j) += a(i, k) * b(k, j);
  return r;
}
Matrix turned(Matrix const& a) {
  Matrix r(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) r(j, i) = a(i, j);
  return r;
}
double norm(std::vector<double> const& v) {
  double r = 0;
  for (double e : v) r += e * e;
  return std::sqrt(r);
}

// The iteration on the matrix as it stands, whichever side is longer.
Matrix orthogonal(Matrix x) {
  double const length = norm(x.v);
  for (double& e : x.v) e /= length;
  for (int step = 0; step < 5; ++step) {
    Matrix const a = product(x, turned(x)), b = product(a, x), c = product(a, b);
    for (std::size_t i = 0; i < x.v.size(); ++i) x.v[i] = 3.4445 * x.v[i] - 4.775 * b.v[i] + 2.0315 * c.v[i];
  }
  return x;
}

struct Layer {
  Tensor<double, 3, 2> tall;
  Tensor<double, 2, 4> wide;
  Tensor<double, 2, 3, 2> stack;
  Tensor<double, 3> bias;
  DFDX_FIELDS(tall, wide, stack, bias)
};
constexpr auto pull_layer = [](auto const& m, auto const& g) {
  return sum(m.tall * g.tall) + sum(m.wide * g.wide) + sum(m.stack * g.stack) + sum(m.bias * g.bias);
};
Layer random_layer(std::uint64_t seed) {
  return {randn<double, 3, 2>(Key{seed}), randn<double, 2, 4>(Key{seed + 1}),
          randn<double, 2, 3, 2>(Key{seed + 2}), randn<double, 3>(Key{seed + 3})};
}
template <class T>
Matrix matrix(T const& t, std::size_t rows, std::size_t columns, std::size_t at = 0) {
  Matrix r(rows, columns);
  for (std::size_t i = 0; i < r.v.size(); ++i) r.v[i] = t.data()[at * r.v.size() + i];
  return r;
}
double apart(Matrix const& a, Matrix const& b) {
  double r = 0;
  for (std::size_t i = 0; i < a.v.size(); ++i) r = tests::worse(r, std::fabs(a.v[i] - b.v[i]));
  return r;
}

// Muon in double for one matrix.
struct MuonOf {
  double factor;
  Matrix m;
  MuonOf(double f, Matrix const& p) : factor(f), m(p.rows, p.columns) {}
  void step(Matrix& p, Matrix const& g) {
    Matrix ahead = g;
    for (std::size_t i = 0; i < p.v.size(); ++i) {
      m.v[i] = 0.9 * m.v[i] + 0.1 * g.v[i];
      ahead.v[i] = 0.1 * g.v[i] + 0.9 * m.v[i];
    }
    Matrix const x = orthogonal(ahead);
    for (std::size_t i = 0; i < p.v.size(); ++i) p.v[i] -= 0.1 * 0.2 * p.v[i] + 0.1 * factor * x.v[i];
  }
};

}  // namespace

TEST_CASE("rules of signs and averages follow their formulas", "[optim]") {
  bool grew = false, shrank = false, least = false, most = false;
  auto const rprop = [&, before = Slot{}, size = Slot{}](int k, std::size_t i, double p, double g) mutable {
    if (k == 1) size[i] = 0.1;
    double const agrees = g * before[i];
    double const wanted = size[i] * (agrees > 0 ? 1.5 : agrees < 0 ? 0.4 : 1);
    grew = grew || agrees > 0, shrank = shrank || agrees < 0, least = least || wanted < 0.05,
    most = most || wanted > 0.14;
    size[i] = std::fmin(std::fmax(wanted, 0.05), 0.14);
    before[i] = agrees < 0 ? 0 : g;
    return p - (before[i] > 0 ? size[i] : before[i] < 0 ? -size[i] : 0);
  };
  optim::Rprop const o{.lr = 0.1, .eta_minus = 0.4, .eta_plus = 1.5, .min_step = 0.05, .max_step = 0.14};
  CHECK(error_of(o, rprop) < 1e-13);
  CHECK((grew && shrank && least && most));

  auto const lion = [m = Slot{}](int, std::size_t i, double p, double g) mutable {
    double const ahead = 0.6 * m[i] + 0.4 * g;
    m[i] = 0.8 * m[i] + 0.2 * g;
    return p - 0.1 * 0.3 * p - (ahead > 0 ? 0.1 : -0.1);
  };
  CHECK(error_of(optim::Lion{.lr = 0.1, .beta1 = 0.6, .beta2 = 0.8, .weight_decay = 0.3}, lion) < 1e-13);

  auto const averaged = [](int k, std::size_t, double p, double g) {
    double const h = k == 1 ? 0.1 : 0.1 / std::pow(1 + 0.5 * 0.1 * (k - 1), 0.6);
    g += 0.2 * p;
    return p * (1 - 0.5 * h) - h * g;
  };
  CHECK(error_of(optim::ASGD{.lr = 0.1, .lambd = 0.5, .alpha = 0.6, .weight_decay = 0.2}, averaged) < 1e-13);
}

TEST_CASE("ASGD keeps the average of the parameters after t0", "[optim]") {
  Model<double> model{filled<double>(start)};
  auto step = train_step(pull, optim::ASGD{.lr = 0.1, .t0 = 2});
  std::vector<std::array<double, n>> seen;
  for (int k = 1; k <= 6; ++k) {
    step(model, filled<double>([&](std::size_t i) { return gradient(k, i); }));
    auto& last = seen.emplace_back();
    for (std::size_t i = 0; i < n; ++i) last[i] = model.w(i);
    auto const& average = std::get<0>(step.state_for(model)).w;
    for (std::size_t i = 0; i < n; ++i) {
      // PyTorch's mean is of the steps from t0 + 2 on, and before that the parameter itself.
      double want = last[i];
      if (k > 4) want = 0;
      for (int j = 4; k > 4 && j <= k; ++j) want += seen[static_cast<std::size_t>(j - 1)][i] / (k - 3);
      CHECK(std::fabs(average(i) - want) < 1e-13);
    }
  }
}

TEST_CASE("LAMB moves in proportion to norms", "[optim]") {
  Layer model = random_layer(1);
  nn::init::zeros(model.bias);
  std::vector<double> m(6), v(6), bias_m(3), bias_v(3);
  Matrix p = matrix(model.tall, 3, 2), bias = matrix(model.bias, 1, 3);
  auto step = train_step(
      pull_layer, optim::LAMB{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.2});
  auto const follow = [](Matrix& w, Matrix const& g, std::vector<double>& m, std::vector<double>& v, int k) {
    std::vector<double> r(g.v.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
      m[i] = 0.8 * m[i] + 0.2 * g.v[i];
      v[i] = 0.9 * v[i] + 0.1 * g.v[i] * g.v[i];
      double const root = std::sqrt(v[i] / (1 - std::pow(0.9, k)));
      r[i] = m[i] / (1 - std::pow(0.8, k)) / (root + 1e-3) + 0.2 * w.v[i];
    }
    double const trust = norm(w.v) > 0 ? norm(w.v) / norm(r) : 1;
    for (std::size_t i = 0; i < r.size(); ++i) w.v[i] -= 0.1 * trust * r[i];
  };
  for (int k = 1; k <= 4; ++k) {
    Layer const g = random_layer(static_cast<std::uint64_t>(10 * k));
    step(model, g);
    follow(p, matrix(g.tall, 3, 2), m, v, k);
    follow(bias, matrix(g.bias, 1, 3), bias_m, bias_v, k);
    CHECK(apart(matrix(model.tall, 3, 2), p) < 1e-13);
    CHECK(apart(matrix(model.bias, 1, 3), bias) < 1e-13);
  }
}

TEST_CASE("Muon orthogonalizes the momentum of matrices", "[optim]") {
  Layer model = random_layer(1), plain = random_layer(1);
  optim::AdamW const adam{.lr = 0.02};
  auto step =
      train_step(pull_layer,
                 optim::Muon{.lr = 0.1, .weight_decay = 0.2, .momentum = 0.9, .other = adam, .stacks = true});
  auto adam_step = train_step(pull_layer, adam);
  Matrix tall = matrix(model.tall, 3, 2), wide = matrix(model.wide, 2, 4),
         part = matrix(model.stack, 3, 2, 1);
  MuonOf tall_rule(std::sqrt(1.5), tall), wide_rule(1, wide), part_rule(std::sqrt(1.5), part);
  for (int k = 1; k <= 3; ++k) {
    Layer const g = random_layer(static_cast<std::uint64_t>(10 * k));
    step(model, g);
    adam_step(plain, g);
    tall_rule.step(tall, matrix(g.tall, 3, 2));
    wide_rule.step(wide, matrix(g.wide, 2, 4));
    part_rule.step(part, matrix(g.stack, 3, 2, 1));
    CHECK(apart(matrix(model.tall, 3, 2), tall) < 1e-12);
    CHECK(apart(matrix(model.wide, 2, 4), wide) < 1e-12);
    CHECK(apart(matrix(model.stack, 3, 2, 1), part) < 1e-12);
    CHECK(array_equal(model.bias, plain.bias));
  }
  // Another size of step; three axes by the other rule.
  model = random_layer(1), plain = random_layer(1);
  Layer const g = random_layer(10);
  train_step(pull_layer,
             optim::Muon{.lr = 0.1, .weight_decay = 0.2, .momentum = 0.9, .other = adam, .like_adam = true})(
      model, g);
  train_step(pull_layer, adam)(plain, g);
  tall = matrix(random_layer(1).tall, 3, 2);
  MuonOf(0.2 * std::sqrt(3.0), tall).step(tall, matrix(g.tall, 3, 2));
  CHECK(apart(matrix(model.tall, 3, 2), tall) < 1e-12);
  CHECK(array_equal(model.stack, plain.stack));
}

TEST_CASE("these rules do the same on the tape", "[optim]") {
  auto const check = [](auto const& rule) {
    Layer compiled = random_layer(1), taped = random_layer(1);
    watch(taped);
    auto step = train_step(pull_layer, rule);
    optim::Optimizer optimizer(rule);
    for (int k = 1; k <= 3; ++k) {
      Layer const g = random_layer(static_cast<std::uint64_t>(10 * k));
      step(compiled, g);
      pull_layer(taped, g).backward();
      optimizer.step(taped);
      zero_grad(taped);
    }
    CHECK(apart(matrix(compiled.tall, 3, 2), matrix(taped.tall, 3, 2)) < 1e-13);
    CHECK(apart(matrix(compiled.wide, 2, 4), matrix(taped.wide, 2, 4)) < 1e-13);
    CHECK(apart(matrix(compiled.stack, 6, 2), matrix(taped.stack, 6, 2)) < 1e-13);
    CHECK(apart(matrix(compiled.bias, 1, 3), matrix(taped.bias, 1, 3)) < 1e-13);
  };
  check(optim::Rprop{});
  check(optim::Lion{.lr = 0.1});
  check(optim::ASGD{.lr = 0.1});
  check(optim::LAMB{.lr = 0.1});
  check(optim::Muon{.lr = 0.1, .stacks = true});
}

}  // namespace tests::optim_more_rules
