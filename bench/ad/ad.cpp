// SPDX-License-Identifier: BSL-1.0
// Value and gradient of small array functions (those of arXiv 2102.03681), compiled with static sizes, against
// gradients written by hand. Every result is checked against the hand-written one before it is timed; then rounds
// of both take turns, and medians count.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dfdx/dfdx.hpp>

#include "compare.hpp"
#include "hand.hpp"

using namespace dfdx;

namespace {

constexpr auto f_sum = [](auto const& x) { return sum(x); };
constexpr auto f_prod = [](auto const& x) { return prod(x); };
constexpr auto f_log_sum_exp = [](auto const& x) { return log(sum(exp(x))); };
constexpr auto f_normal = [](auto const& x) {
  constexpr double mu = hand::mu, sigma = hand::sigma;
  constexpr auto n = static_cast<double>(std::remove_cvref_t<decltype(x)>::static_shape[0]);
  return sum(square(x - mu)) * (-0.5 / (sigma * sigma)) - n * constant_math::log(sigma);
};
constexpr auto f_matrix_product = [](auto const& x) { return sum(matmul(std::get<0>(x), std::get<1>(x))); };
// Bayesian linear regression: weights w, intercept b, noise s; features are rows of xt.
constexpr auto f_regression = [](auto const& p, auto const& xt, auto const& y) {
  auto const& [w, b, s] = p;
  auto const r = y - matmul(w, xt) - b;
  return sum(square(r)) * -0.5 / (s * s) - log(s) * 1000.0 - sum(square(w)) * 0.5 - b * b * 0.5 -
         constant_math::log(9.9);
};

template <std::size_t N>
void vector_case(char const* name, auto f, auto by_hand) {
  std::vector<double> const values = hand::inputs(name, N);
  auto const x = Tensor<double, N>::from(values);
  auto ours = value_and_grad(f).bind(x);
  std::vector<double> g(N);
  double const want = by_hand(x.data(), g.data(), static_cast<int>(N));
  auto const& [value, gradient] = ours();
  double const error = bench::largest_error(gradient.data(), g.data(), N, value.item(), want);
  bench::compare(
      "ad", name, static_cast<int>(N), [&] { ours(); },
      [&] {
        double v = by_hand(x.data(), g.data(), static_cast<int>(N));
        asm volatile("" : "+m"(v));
      },
      error);
}

template <std::size_t N>
void matrix_case() {
  std::vector<double> const values = hand::inputs("matrix_product", 2 * N * N);
  auto const all = Tensor<double, 2, N, N>::from(values);
  auto const x = std::tuple(all[0], all[1]);
  auto ours = value_and_grad(f_matrix_product).bind(x);
  std::vector<double> g(2 * N * N);
  double const want = hand::matrix_product(values.data(), g.data(), static_cast<int>(N));
  auto const& [value, gradient] = ours();
  double const error =
      std::max(bench::largest_error(std::get<0>(gradient).data(), g.data(), N * N, value.item(), want),
               bench::largest_error(std::get<1>(gradient).data(), g.data() + N * N, N * N, want, want));
  bench::compare(
      "ad", "matrix_product", static_cast<int>(N), [&] { ours(); },
      [&] {
        double v = hand::matrix_product(values.data(), g.data(), static_cast<int>(N));
        asm volatile("" : "+m"(v));
      },
      error);
}

template <std::size_t N>
void regression_case() {
  constexpr std::size_t rows = 1000;
  std::vector<double> const p = hand::inputs("regression", N + 2), data = hand::inputs("data", rows * N),
                            target = hand::inputs("target", rows);
  auto const w = Tensor<double, N>::from(std::span(p).first(N));
  auto const params = std::tuple(w, Tensor<double>(p[N]), Tensor<double>(p[N + 1]));
  auto const xt = Tensor<double, N, rows>::from(data);
  auto const y = Tensor<double, rows>::from(target);
  auto ours = value_and_grad(f_regression).bind(params, xt, y);
  std::vector<double> g(N + 2);
  double const want =
      hand::regression(p.data(), data.data(), target.data(), g.data(), static_cast<int>(N), rows);
  auto const& [value, gradient] = ours();
  auto const& [gw, gb, gs] = gradient;
  double error = bench::largest_error(gw.data(), g.data(), N, value.item(), want);
  error = std::max({error, std::abs(gb.item() - g[N]) / std::abs(g[N]),
                    std::abs(gs.item() - g[N + 1]) / std::abs(g[N + 1])});
  bench::compare(
      "ad", "regression", static_cast<int>(N), [&] { ours(); },
      [&] {
        double v =
            hand::regression(p.data(), data.data(), target.data(), g.data(), static_cast<int>(N), rows);
        asm volatile("" : "+m"(v));
      },
      error);
}

template <std::size_t... N>
void vector_cases(char const* name, auto f, auto by_hand) {
  (vector_case<N>(name, f, by_hand), ...);
}

}  // namespace

int main() {
  vector_cases<16, 256, 4096, 16384>("sum", f_sum, hand::sum);
  vector_cases<16, 256, 4096, 16384>("prod", f_prod, hand::prod);
  vector_cases<16, 256, 4096, 16384>("log_sum_exp", f_log_sum_exp, hand::log_sum_exp);
  vector_cases<16, 256, 4096, 16384>("normal_log_pdf", f_normal, hand::normal_log_pdf);
  matrix_case<4>();
  matrix_case<16>();
  matrix_case<64>();
  matrix_case<181>();
  regression_case<10>();
  regression_case<80>();
  regression_case<150>();
}
