// SPDX-License-Identifier: BSL-1.0
// Transforms: loops by scan against gradients written by hand as the same loops, a Hessian against as many gradients
// as it has rows, and checkpointing against keeping everything. Results are checked before they are timed.
#include <cstdlib>
#include <vector>

#include <dfdx/dfdx.hpp>

#include "../ad/compare.hpp"
#include "../ad/hand.hpp"
#include "small_loops.hpp"

using namespace dfdx;

namespace {

template <std::size_t N>
using Vector = Tensor<double, N>;

// --- loops over numbers ---
constexpr auto sum_iter = []<std::size_t N>(Vector<N> const& x) {
  return scan([](auto const& y, auto const& v) { return y + v; }, zeros_like(select<0, 0>(x)), x);
};
constexpr auto prod_iter = []<std::size_t N>(Vector<N> const& x) {
  return scan([](auto const& y, auto const& v) { return y * v; }, ones_like(select<0, 0>(x)), x);
};
// n latent steps x and their parameters phi, s, mu, given observations y.
constexpr auto volatility = []<std::size_t N, std::size_t M>(Vector<N> const& all, Vector<M> const& y) {
  auto const phi = select<0, M>(all), s = select<0, M + 1>(all), mu = select<0, M + 2>(all);
  auto const x = slice<0, 0, M>(all);
  // h before the first step, so that all are alike.
  auto const h0 = mu + select<0, 0>(all) * (s / sqrt(1.0 - phi * phi) - s) / phi;
  auto const [h, f] = scan(
      [&](auto const& c, auto const& xy) {
        auto const& [e, seen] = xy;
        auto const next = e * s + mu + phi * (std::get<0>(c) - mu);
        return std::tuple(next, std::get<1>(c) - 0.5 * (seen * seen * exp(-next) + next + e * e));
      },
      std::tuple(h0, zeros_like(h0)), std::tuple(x, y));
  static_cast<void>(h);
  auto const c = s / 5.0, d = mu / 10.0;
  return f - log(5.0 * (1.0 + c * c)) - log(10.0 * (1.0 + d * d)) - 0.69314718055994531;
};

double by_hand_sum(double const* x, double* g, int n) {
  double y = 0;
  for (int i = 0; i < n; ++i) y += x[i];
  double ct = 1;
  for (int i = n - 1; i >= 0; --i) {
    g[i] = ct;
    asm volatile("" : "+x"(ct));  // step by step: this is what is compared
  }
  return y;
}
double by_hand_prod(double const* x, double* g, int n, std::vector<double>& before) {
  double y = 1;
  for (int i = 0; i < n; ++i) before[static_cast<std::size_t>(i)] = y, y *= x[i];
  double ct = 1;
  for (int i = n - 1; i >= 0; --i) g[i] = ct * before[static_cast<std::size_t>(i)], ct *= x[i];
  return y;
}
double by_hand_volatility(double const* x, double const* y, double* g, int n, std::vector<double>& hs) {
  double const phi = x[n], s = x[n + 1], mu = x[n + 2];
  double const root = std::sqrt(1 - phi * phi);
  double f = 0, h = 0;
  for (int i = 0; i < n; ++i) {
    h = i == 0 ? x[0] * s / root + mu : x[i] * s + mu + phi * (h - mu);
    hs[static_cast<std::size_t>(i)] = h;
    f -= 0.5 * (y[i] * y[i] * std::exp(-h) + h + x[i] * x[i]);
  }
  double dh = 0, dphi = 0, ds = 0, dmu = 0;
  for (int i = n - 1; i >= 0; --i) {
    double const now = hs[static_cast<std::size_t>(i)];
    dh += 0.5 * (y[i] * y[i] * std::exp(-now) - 1);
    if (i > 0) {
      double const past = hs[static_cast<std::size_t>(i - 1)];
      g[i] = dh * s - x[i];
      ds += dh * x[i], dmu += dh * (1 - phi), dphi += dh * (past - mu);
      dh *= phi;
    } else {
      g[0] = dh * s / root - x[0];
      ds += dh * x[0] / root, dmu += dh, dphi += dh * x[0] * s * phi / (root * root * root);
    }
  }
  double const c = s / 5, d = mu / 10;
  g[n] = dphi;
  g[n + 1] = ds - 2 * c / 5 / (1 + c * c);
  g[n + 2] = dmu - 2 * d / 10 / (1 + d * d);
  return f - std::log(5 * (1 + c * c)) - std::log(10 * (1 + d * d)) - std::log(2.0);
}

template <std::size_t N>
Vector<N> vector_of(std::vector<double> const& v) {
  return Vector<N>(from(std::span<double const>(v), make_shape(static_cast<index_t>(N))));
}

template <class Program, class Hand>
void loop_case(char const* name, int n, Program& program, Hand const& by_hand, std::size_t parameters) {
  std::vector<double> g(parameters);
  double const want = by_hand(g.data());
  auto const& [value, gradient] = program();
  double const error =
      bench::largest_error(Array(gradient).data<double>(), g.data(), g.size(), value.item(), want);
  bench::compare(
      "transforms", name, n, [&] { program(); },
      [&] {
        double v = by_hand(g.data());
        asm volatile("" : "+m"(v));
      },
      error);
}

template <std::size_t N>
void loops() {
  constexpr int n = static_cast<int>(N);
  auto const xs = hand::inputs("sum", N), ps = hand::inputs("prod", N), ys = hand::inputs("data", N);
  std::vector<double> room(N), vs = hand::inputs("sum", N + 3);
  vs[N] = 0.3;
  vs[N + 1] = 0.7;
  auto const x = vector_of<N>(xs), p = vector_of<N>(ps), y = vector_of<N>(ys);
  auto const v = vector_of<N + 3>(vs);
  auto sums = value_and_grad(sum_iter).bind(x);
  loop_case("scan: sum_iter", n, sums, [&](double* g) { return by_hand_sum(xs.data(), g, n); }, N);
  auto products = value_and_grad(prod_iter).bind(p);
  loop_case(
      "scan: prod_iter", n, products, [&](double* g) { return by_hand_prod(ps.data(), g, n, room); }, N);
  auto paths = value_and_grad(volatility).bind(v, y);
  loop_case(
      "scan: stochastic_volatility", n, paths,
      [&](double* g) { return by_hand_volatility(vs.data(), ys.data(), g, n, room); }, N + 3);
}

// --- second derivatives ---
constexpr std::size_t parameters = 100, rows = 200;
using Data = Tensor<double, rows, parameters>;
constexpr auto logistic = [](Vector<parameters> const& w, Data const& x, Vector<rows> const& y) {
  return sum(bce_with_logits<Reduction::none>(matmul(x, w), y)) + 0.5 * sum(square(w));
};

void hessian_case() {
  auto const w = randn<double, parameters>(Key{1});
  auto const x = randn<double, rows, parameters>(Key{2});
  auto const y = uniform<double, rows>(Key{3}, 0.0, 1.0);
  auto all = hessian(logistic).bind(w, x, y);
  auto one = grad(logistic).bind(w, x, y);
  // X' diag(p (1 - p)) X + 1
  Array const p = sigmoid(matmul(x, w)), weights = p * (1.0 - p);
  Array const want =
      matmul(transpose(Array(x), 0, 1), Array(x) * unsqueeze(weights, 1)) + eye(parameters, DType::f64);
  double error = 0;
  Array const got = all(), off = abs(got - want);
  error = max(off).item() / max(abs(want)).item();
  bench::compare(
      "transforms", "hessian, parameters:", static_cast<int>(parameters), [&] { all(); },
      [&] {
        for (std::size_t i = 0; i < parameters; ++i) one();
      },
      error, "as many gradients");
}

// --- checkpointing ---
constexpr std::size_t width = 128, batch = 256, depth = 64, segments = 8;
struct Block {
  nn::Linear<width, 2 * width> up;
  nn::Linear<2 * width, width> down;
  DFDX_FIELDS(up, down)
  constexpr auto operator()(auto const& x) const { return x + down(tanh(up(x))); }
};
struct Net {
  nn::Repeat<Block, depth> blocks;
  DFDX_FIELDS(blocks)
};
using X = Tensor<float, batch, width>;
constexpr auto kept = [](Net const& net, X const& x) { return mean(square(net.blocks(x))); };
constexpr auto again = [](Net const& net, X const& x) {
  return mean(square(checkpoint_sequential<segments>(net.blocks, x)));
};
template <class F>
constexpr index_t memory = decltype(value_and_grad(F{}))::template program_for<Net, X>::arena_bytes -
                           parameter_count<Net> * static_cast<index_t>(sizeof(float));

void checkpoint_case() {
  auto net = init<Net>(1);
  visit(net, [](auto& leaf) { leaf = leaf * 0.2f; });
  auto const x = randn<float, batch, width>(Key{2});
  auto ours = value_and_grad(again).bind(net, x);
  auto theirs = value_and_grad(kept).bind(net, x);
  std::vector<Array> g;
  visit(theirs().second, [&](auto const& leaf) { g.push_back(Array(leaf).clone()); });
  std::size_t k = 0;
  bool same = true;
  visit(ours().second, [&](auto const& leaf) { same = same && array_equal(leaf, g[k++]); });
  if (!same) std::fprintf(stderr, "transforms: checkpointing changes a gradient\n"), std::exit(1);
  std::vector<double> m, n;
  for (int round = 0; round < 7; ++round) {
    m.push_back(bench::time_of([&] { ours(); }, 1));
    n.push_back(bench::time_of([&] { theirs(); }, 1));
  }
  char note[80];
  std::snprintf(note, sizeof note, "memory beside the gradients: %.3f of it",
                static_cast<double>(memory<decltype(again)>) / static_cast<double>(memory<decltype(kept)>));
  bench::print({.bench = "transforms",
                .name = "checkpoint, 64 blocks in 8 segments",
                .ours_ms = bench::median(m) * 1e3,
                .peer = "all kept",
                .peer_ms = bench::median(n) * 1e3,
                .note = note});
}

}  // namespace

int main() {
  loops<256>();
  loops<4096>();
  bench::small_loops();
  hessian_case();
  checkpoint_case();
}
