// SPDX-License-Identifier: BSL-1.0
// The GMM and LSTM objectives of ADBench, as its C++ has them, against its hand-written gradients: eagerly, on the
// tape, and GMM compiled.
#include <adbench.hpp>
#include <dfdx/vocabulary/einsum.hpp>

#include <fstream>

namespace tests::tape_adbench {

namespace {

using namespace dfdx;
using namespace tests::adbench;

// --- Gaussian mixture ------------------------------------------------------------------------------------------------

// Mixture weights [K], means [K, D], logarithms of the diagonals of the inverse factors [K, D] and what is below them,
// column by column, [K, D (D - 1) / 2]; points [N, D]; `place` [D (D - 1) / 2, D, D] puts the latter into matrices.
// Constants are left out.
constexpr auto gmm = [](auto const& p, auto const& points, auto const& place, auto const& gamma,
                        auto const& m) {
  auto const& [alphas, means, diagonal, below] = p;
  auto const centred = unsqueeze<1>(points) - unsqueeze<0>(means);
  auto const factor = einsum<"kt,tij->kij">(below, place);
  auto const turned = exp(diagonal) * centred + einsum<"kij,nkj->nki">(factor, centred);
  auto const logs = sum<1>(diagonal);
  auto const terms = alphas + logs - sum<-1>(square(turned)) * 0.5;
  auto const likelihood = sum(logsumexp<-1>(terms) - logsumexp(alphas));
  auto const squares = sum(square(exp(diagonal))) + sum(square(below));
  return likelihood + gamma * gamma * squares * 0.5 - m * sum(logs);
};

struct Gmm {
  index_t d = 0, k = 0, n = 0;
  double gamma = 0, m = 0;
  Array alphas, means, diagonal, below, points, place;

  explicit Gmm(std::string const& name) {
    std::ifstream in(file_of("gmm", name));
    in >> d >> k >> n;
    alphas = numbers(in, k);
    means = numbers(in, {k, d});
    Array const icf = numbers(in, {k, d * (d + 1) / 2});
    diagonal = slice(icf, 1, 0, d).contiguous();
    below = slice(icf, 1, d).contiguous();
    points = numbers(in, {n, d});
    in >> gamma >> m;
    REQUIRE(in);
    place = zeros({d * (d - 1) / 2, d, d}, DType::f64);
    for (index_t column = 0, t = 0; column < d; ++column)
      for (index_t row = column + 1; row < d; ++row) place.at<double>({t++, row, column}) = 1;
  }

  double constant() const {
    auto const p = static_cast<double>(d), freedom = p + m + 1;
    double log_gamma = 0.25 * p * (p - 1) * std::log(M_PI);
    for (int j = 1; j <= d; ++j) log_gamma += std::lgamma(0.5 * freedom + 0.5 * (1 - j));
    double const c = freedom * p * (std::log(gamma) - 0.5 * std::log(2.0)) - log_gamma;
    return -static_cast<double>(n) * p * 0.5 * std::log(2 * M_PI) - static_cast<double>(k) * c;
  }
  // In the order of the files: per component the diagonal, then what is below.
  std::vector<double> ordered(Array const& a, Array const& b, Array const& c, Array const& e) const {
    std::vector<double> r;
    append(r, a.contiguous());
    append(r, b.contiguous());
    append(r, concat<1>(c, e));
    return r;
  }
};

void check_gmm(std::string const& name) {
  Gmm g(name);
  Expected const want = expected(name);
  Array const gamma = Array::number(g.gamma), m = Array::number(g.m);
  auto const parameters = std::tuple(g.alphas, g.means, g.diagonal, g.below);
  double const eager = gmm(parameters, g.points, g.place, gamma, m).item() + g.constant();
  CHECK(std::fabs(eager - want.objective) <= 1e-12 * std::fabs(want.objective));
  for (Array* a : {&g.alphas, &g.means, &g.diagonal, &g.below}) a->requires_grad(true);
  Array const y = gmm(std::tuple(g.alphas, g.means, g.diagonal, g.below), g.points, g.place, gamma, m);
  y.backward();
  check(y.item() + g.constant(),
        g.ordered(g.alphas.grad(), g.means.grad(), g.diagonal.grad(), g.below.grad()), want);
}

template <std::size_t D, std::size_t K>
void check_compiled_gmm(std::string const& name) {
  Gmm const g(name);
  constexpr std::size_t t = D * (D - 1) / 2;
  auto const p = std::tuple(Tensor<double, K>(g.alphas), Tensor<double, K, D>(g.means),
                            Tensor<double, K, D>(g.diagonal), Tensor<double, K, t>(g.below));
  auto const [value, gradient] =
      value_and_grad(gmm)(p, Tensor<double, dyn, D>(g.points), Tensor<double, t, D, D>(g.place),
                          Tensor<double>(g.gamma), Tensor<double>(g.m));
  auto const& [a, b, c, e] = gradient;
  check(value.item() + g.constant(), g.ordered(a, b, c, e), expected(name));
}

// --- LSTM ------------------------------------------------------------------------------------------------------------

// Layers with diagonal weights over a sequence of characters as bits; the loss of each step is against the next one.
Array lstm(Array const& main, Array const& extra, Array const& state, Array const& sequence, index_t layers) {
  index_t const b = sequence.shape()[1], steps = sequence.shape()[0];
  std::vector<Array> hidden, cell, weight, bias;
  for (index_t l = 0; l < layers; ++l) {
    hidden.push_back(state[2 * l]);
    cell.push_back(state[2 * l + 1]);
    weight.push_back(main[2 * l].reshape({4, b}));
    bias.push_back(main[2 * l + 1].reshape({4, b}));
  }
  Array total = Array::number(0.0);
  for (index_t s = 0; s + 1 < steps; ++s) {
    Array x = sequence[s] * extra[0];
    for (std::size_t l = 0; l < hidden.size(); ++l) {
      Array const &w = weight[l], &u = bias[l];
      Array const forget = sigmoid(x * w[0] + u[0]), in = sigmoid(hidden[l] * w[1] + u[1]);
      Array const out = sigmoid(x * w[2] + u[2]), change = tanh(hidden[l] * w[3] + u[3]);
      cell[l] = cell[l] * forget + in * change;
      hidden[l] = out * tanh(cell[l]);
      x = hidden[l];
    }
    Array const y = x * extra[1] + extra[2];
    total = total + sum(sequence[s + 1] * (y - log(sum(exp(y)) + 2.0)));
  }
  return -total / static_cast<double>((steps - 1) * b);
}

void check_lstm(std::string const& name) {
  INFO(name);
  auto [layers, steps, bits, main, extra, state, sequence] = Lstm(name);
  Expected const want = expected(name);
  double const eager = lstm(main, extra, state, sequence, layers).item();
  CHECK(std::fabs(eager - want.objective) <= 1e-12 * std::fabs(want.objective));
  main.requires_grad(true);
  extra.requires_grad(true);
  Array const loss = lstm(main, extra, state, sequence, layers);
  loss.backward();
  std::vector<double> gradient;
  append(gradient, main.grad());
  append(gradient, extra.grad());
  check(loss.item(), gradient, want);
}

TEST_CASE("ADBench: Gaussian mixtures") {
  for (std::string const& name : problems("gmm")) check_gmm(name);
}

TEST_CASE("ADBench: a Gaussian mixture, compiled") {
  std::string const name = "gmm_test_d2_K3_n1";
  if (folder().empty() || !fs::exists(file_of("gmm", name))) SKIP("no ADBench file " << name);
  check_compiled_gmm<2, 3>(name);
}

TEST_CASE("ADBench: LSTM") {
  for (std::string const& name : problems("lstm")) check_lstm(name);
}

}  // namespace

}  // namespace tests::tape_adbench
