// SPDX-License-Identifier: BSL-1.0
// The run-time tape: array functions against gradients written by hand (those of bench/ad), and loops over scalars,
// whose cost is told per recorded op, forward and backward. All results are checked before they are timed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dfdx/dfdx.hpp>

#include "../ad/compare.hpp"
#include "../ad/hand.hpp"

using namespace dfdx;

namespace {

Array leaf(std::vector<double> const& v, Extents const& shape) {
  Array x = from(std::span<double const>(v), shape);
  x.requires_grad(true);
  return x;
}

template <class F, class Hand>
void vector_case(char const* name, int n, F const& f, Hand by_hand) {
  std::vector<double> const values = hand::inputs(name, static_cast<std::size_t>(n));
  Array const x = leaf(values, n);
  auto const ours = [&] {
    x.zero_grad();
    Array const y = f(x);
    y.backward();
    return y.item();
  };
  std::vector<double> g(values.size());
  double const want = by_hand(values.data(), g.data(), n), got = ours();
  double const error = bench::largest_error(x.grad().data<double>(), g.data(), g.size(), got, want);
  bench::compare(
      "tape", name, n, ours,
      [&] {
        double v = by_hand(values.data(), g.data(), n);
        asm volatile("" : "+m"(v));
      },
      error);
}

void matrix_case(int n) {
  auto const size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  std::vector<double> const values = hand::inputs("matrix_product", 2 * size);
  Array const a = leaf({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(size)}, {n, n});
  Array const b = leaf({values.begin() + static_cast<std::ptrdiff_t>(size), values.end()}, {n, n});
  auto const ours = [&] {
    a.zero_grad();
    b.zero_grad();
    Array const y = sum(matmul(a, b));
    y.backward();
    return y.item();
  };
  std::vector<double> g(2 * size);
  double const want = hand::matrix_product(values.data(), g.data(), n), got = ours();
  double const error =
      std::max(bench::largest_error(a.grad().data<double>(), g.data(), size, got, want),
               bench::largest_error(b.grad().data<double>(), g.data() + size, size, want, want));
  bench::compare(
      "tape", "matrix_product", n, ours,
      [&] {
        double v = hand::matrix_product(values.data(), g.data(), n);
        asm volatile("" : "+m"(v));
      },
      error);
}

void regression_case(int n) {
  constexpr int rows = 1000;
  auto const k = static_cast<std::size_t>(n);
  std::vector<double> const p = hand::inputs("regression", k + 2), data = hand::inputs("data", rows * k),
                            target = hand::inputs("target", rows);
  Array const w = leaf({p.begin(), p.end() - 2}, n), b = leaf({p[k]}, {}), s = leaf({p[k + 1]}, {});
  Array const xt = from(std::span<double const>(data), {n, rows}),
              y = from(std::span<double const>(target), rows);
  auto const ours = [&] {
    for (Array const* v : {&w, &b, &s}) v->zero_grad();
    Array const r = y - matmul(w, xt) - b;
    Array const f = sum(square(r)) * -0.5 / (s * s) - log(s) * static_cast<double>(rows) -
                    sum(square(w)) * 0.5 - b * b * 0.5 - std::log(9.9);
    f.backward();
    return f.item();
  };
  std::vector<double> g(k + 2);
  double const want = hand::regression(p.data(), data.data(), target.data(), g.data(), n, rows), got = ours();
  double error = bench::largest_error(w.grad().data<double>(), g.data(), k, got, want);
  error = std::max({error, std::abs(b.grad().item() - g[k]) / std::abs(g[k]),
                    std::abs(s.grad().item() - g[k + 1]) / std::abs(g[k + 1])});
  bench::compare(
      "tape", "regression", n, ours,
      [&] {
        double v = hand::regression(p.data(), data.data(), target.data(), g.data(), n, rows);
        asm volatile("" : "+m"(v));
      },
      error);
}

// --- loops over scalars --------------------------------------------------------------------------------------------

// f(x) returns the value and how many ops it recorded; its gradient must agree with g. Reads of x[i] count as ops, for
// they are recorded too.
constexpr double target_ns = 60;
template <class F>
void scalar_case(char const* name, std::vector<double> const& values, F const& f, double value,
                 std::vector<double> const& gradient) {
  Array const x = leaf(values, static_cast<index_t>(values.size()));
  long ops = 0;
  auto const ours = [&] {
    x.zero_grad();
    auto const [y, n] = f(x);
    y.backward();
    ops = n;
    return y.item();
  };
  double const got = ours();
  double const error =
      bench::largest_error(x.grad().data<double>(), gradient.data(), gradient.size(), got, value);
  std::string const label = std::string(name) + " " + std::to_string(values.size());
  if (!(error < 1e-9)) {
    std::fprintf(stderr, "tape: %s is off by %g\n", label.c_str(), error);
    std::exit(1);
  }
  long const calls = bench::calls_for(ours, 1e-3);
  std::vector<double> rounds;
  for (int i = 0; i < 15; ++i) rounds.push_back(bench::time_of(ours, calls));
  bench::print({.bench = "tape-scalars",
                .name = label,
                .ours_ms = bench::median(rounds) * 1e3 / static_cast<double>(ops),
                .peer = "target",
                .peer_ms = target_ns * 1e-6,
                .error = error,
                .note = "per recorded op"});
}

void sum_iter(int n) {
  std::vector<double> const v = hand::inputs("sum", static_cast<std::size_t>(n));
  std::vector<double> g(v.size());
  double const value = hand::sum(v.data(), g.data(), n);
  scalar_case(
      "sum_iter", v,
      [n](Array const& x) {
        Array s = x[0];
        for (int i = 1; i < n; ++i) s = s + x[i];
        return std::pair(s, 2L * n - 1);
      },
      value, g);
}

void prod_iter(int n) {
  std::vector<double> const v = hand::inputs("prod", static_cast<std::size_t>(n));
  std::vector<double> g(v.size());
  double const value = hand::prod(v.data(), g.data(), n);
  scalar_case(
      "prod_iter", v,
      [n](Array const& x) {
        Array s = x[0];
        for (int i = 1; i < n; ++i) s = s * x[i];
        return std::pair(s, 2L * n - 1);
      },
      value, g);
}

// A stochastic volatility model: n latent steps x, and phi, s, mu; observations y. The loop is written once, for
// doubles and for Arrays; the gradient is checked against central differences of the doubles (eight digits), by its
// projection on the largest partial derivative.
template <class T, class X>
T volatility(X const& x, std::vector<double> const& y) {
  using std::exp, std::log, std::sqrt;
  std::size_t const n = y.size();
  auto const at = [&](std::size_t i) { return x[static_cast<index_t>(i)]; };
  T const phi = at(n), s = at(n + 1), mu = at(n + 2);
  T h = at(0) * s / sqrt(1.0 - phi * phi) + mu;
  T f = h * 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    T const e = at(i);
    if (i > 0) h = e * s + mu + phi * (h - mu);
    f = f - 0.5 * (y[i] * y[i] * exp(-h) + h + e * e);
  }
  T const c = s / 5.0, d = mu / 10.0;
  return f - log(5.0 * (1.0 + c * c)) - log(10.0 * (1.0 + d * d)) - std::log(2.0);
}

void stochastic_volatility(int n) {
  auto const size = static_cast<std::size_t>(n);
  std::vector<double> x = hand::inputs("sum", size + 3), y = hand::inputs("data", size);
  x[size] = 0.3;
  x[size + 1] = 0.7;
  auto const plain = [&](std::vector<double> const& at) { return volatility<double>(at.data(), y); };
  std::vector<double> g(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> moved = x;
    double const h = 1e-3;
    double value[4];
    for (int k = 0; k < 4; ++k) moved[i] = x[i] + h * (k < 2 ? k - 2 : k - 1), value[k] = plain(moved);
    g[i] = (8 * (value[2] - value[1]) - (value[3] - value[0])) / (12 * h);
  }
  // Reads and arithmetic: 1 + 4 (h) once more than n - 1 times or so; see volatility().
  long const ops = 3 + 7 + 1 + static_cast<long>(n) * (1 + 8) + static_cast<long>(n - 1) * 5 + 13;
  scalar_case(
      "stochastic_volatility", x, [&](Array const& v) { return std::pair(volatility<Array>(v, y), ops); },
      plain(x), g);
}

}  // namespace

int main() {
  for (int n : {256, 4096, 16384}) {
    vector_case("sum", n, [](Array const& x) { return sum(x); }, hand::sum);
    vector_case("prod", n, [](Array const& x) { return prod(x); }, hand::prod);
    vector_case("log_sum_exp", n, [](Array const& x) { return log(sum(exp(x))); }, hand::log_sum_exp);
    vector_case(
        "normal_log_pdf", n,
        [n](Array const& x) {
          return sum(square(x - hand::mu)) * (-0.5 / (hand::sigma * hand::sigma)) - n * std::log(hand::sigma);
        },
        hand::normal_log_pdf);
  }
  for (int n : {16, 64, 181}) matrix_case(n);
  for (int n : {10, 80, 150}) regression_case(n);
  for (int n : {256, 4096}) {
    sum_iter(n);
    prod_iter(n);
    stochastic_volatility(n);
  }
}
