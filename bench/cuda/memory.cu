// SPDX-License-Identifier: BSL-1.0
// What a GPU's memory bounds: maps, rows with phases, sums, sorting, random numbers.
#include "measure.hpp"

#include <dfdx/vocabulary/order.hpp>

using namespace bench;

namespace {

struct Map {
  constexpr auto operator()(auto const& a, auto const& x, auto const& b, auto const& r) const {
    return gelu(a * x + b) + r;
  }
};
struct Softmax {
  constexpr auto operator()(auto const& x) const { return softmax(x); }
};
struct Norm {
  constexpr auto operator()(auto const& x, auto const& w, auto const& b) const {
    return layer_norm(x, w, b, 1e-5f);
  }
};
struct RootMeanSquare {
  constexpr auto operator()(auto const& x, auto const& w) const { return rms_norm(x, w, 1e-5f); }
};
struct Entropy {
  constexpr auto operator()(auto const& x, auto const& labels) const { return cross_entropy(x, labels); }
};
struct Sum {
  constexpr auto operator()(auto const& x) const { return sum(x); }
};
struct Sort {
  constexpr auto operator()(auto const& x) const { return argsort<0>(x); }
};
struct Running {
  constexpr auto operator()(auto const& x) const { return cumsum<1>(x); }
};

constexpr double root_half = 0.70710678118654752;
double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x * root_half)); }

template <class T>
void maps(char const* dtype, double bandwidth) {
  using X = Tensor<T, size_or(100'000'000, 100'003)>;
  double const n = static_cast<double>(X::static_meta.shape.numel()), size = sizeof(T);
  auto const a = normals<X>(1), x = normals<X>(2), b = normals<X>(3), r = normals<X>(4);
  {
    auto f = compile(Map{});
    auto const va = numbers(a), vx = numbers(x), vb = numbers(b), vr = numbers(r);
    double const error =
        error_of(f(a, x, b, r), [&](std::size_t i) { return gelu_of(va[i] * vx[i] + vb[i]) + vr[i]; });
    row(
        "cuda map", std::string("gelu(a x + b) + r, ") + dtype, [&] { f(a, x, b, r); }, checked<T>(error),
        bandwidth, 5 * n * size);
  }
  auto g = vjp(Map{});
  auto const ct = normals<X>(5);
  row(
      "cuda map", std::string("gelu(a x + b) + r with gradients, ") + dtype, [&] { g(a, x, b, r, ct); },
      checked<T>(error_beside_cpu(g, a, x, b, r, ct)), bandwidth, 9 * n * size);
}

void rows(double bandwidth) {
  constexpr std::size_t m = size_or(8192, 40), n = size_or(8192, 300);
  using X = Tensor<float, m, n>;
  double const size = static_cast<double>(m * n) * 4;
  auto const x = normals<X>(1), ct = normals<X>(2);
  auto const values = numbers(x);
  {
    auto f = compile(Softmax{});
    double const error = error_of(f(x), [&](std::size_t i) {
      std::size_t const first = i / n * n;
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += std::exp(values[first + j]);
      return std::exp(values[i]) / sum;
    });
    row("cuda rows", "softmax", [&] { f(x); }, checked<float>(error), bandwidth, 2 * size);
    auto g = vjp(Softmax{});
    row(
        "cuda rows", "softmax with gradient", [&] { g(x, ct); }, checked<float>(error_beside_cpu(g, x, ct)),
        bandwidth, 4 * size);
  }
  auto const w = normals<Tensor<float, n>>(3), b = normals<Tensor<float, n>>(4);
  auto const vw = numbers(w), vb = numbers(b);
  {
    auto f = compile(Norm{});
    double const error = error_of(f(x, w, b), [&](std::size_t i) {
      std::size_t const first = i / n * n;
      double mean = 0, squares = 0;
      for (std::size_t j = 0; j < n; ++j) mean += values[first + j] / static_cast<double>(n);
      for (std::size_t j = 0; j < n; ++j)
        squares += (values[first + j] - mean) * (values[first + j] - mean) / static_cast<double>(n);
      return (values[i] - mean) / std::sqrt(squares + 1e-5) * vw[i % n] + vb[i % n];
    });
    row("cuda rows", "layer norm", [&] { f(x, w, b); }, checked<float>(error), bandwidth, 2 * size);
    auto g = vjp(Norm{});
    row(
        "cuda rows", "layer norm with gradients", [&] { g(x, w, b, ct); },
        checked<float>(error_beside_cpu(g, x, w, b, ct)), bandwidth, 4 * size);
  }
  {
    auto f = compile(RootMeanSquare{});
    double const error = error_of(f(x, w), [&](std::size_t i) {
      std::size_t const first = i / n * n;
      double squares = 0;
      for (std::size_t j = 0; j < n; ++j)
        squares += values[first + j] * values[first + j] / static_cast<double>(n);
      return values[i] / std::sqrt(squares + 1e-5) * vw[i % n];
    });
    row("cuda rows", "RMS norm", [&] { f(x, w); }, checked<float>(error), bandwidth, 2 * size);
    auto g = vjp(RootMeanSquare{});
    row(
        "cuda rows", "RMS norm with gradients", [&] { g(x, w, ct); },
        checked<float>(error_beside_cpu(g, x, w, ct)), bandwidth, 4 * size);
  }
}

template <std::size_t Classes>
void entropy(double bandwidth) {
  constexpr std::size_t m = size_or(8192, 40), classes = size_or(Classes, Classes / 64);
  auto const logits = normals<Tensor<float, m, classes>>(5);
  auto labels = Tensor<std::int32_t, m>(Array(Meta{DType::i32, make_shape(static_cast<index_t>(m))}));
  for (std::size_t i = 0; i < m; ++i) labels.data()[i] = static_cast<std::int32_t>(i * 7919 % classes);
  auto const there = to(cuda(), labels);
  auto g = value_and_grad(Entropy{});
  row(
      "cuda rows", "cross entropy of " + std::to_string(Classes) + " with gradient",
      [&] { g(logits, there); }, checked<float>(error_beside_cpu(g, logits, there)), bandwidth,
      2 * static_cast<double>(m * classes) * 4);
}

void orders(double bandwidth) {
  constexpr std::size_t n = size_or(std::size_t{1} << 24, 5000);
  using X = Tensor<float, n>;
  auto const x = normals<X>(1);
  auto const values = numbers(x);
  double total = 0, size = 0;
  for (double v : values) total += v, size += std::fabs(v);
  auto add = compile(Sum{});
  double const sum_error = std::fabs(static_cast<double>(add(x)) - total) / size;
  row("cuda order", "sum of 2^24", [&] { add(x); }, {sum_error, 1e-6}, bandwidth, static_cast<double>(n) * 4);
  auto sort = compile(Sort{});
  auto const order = numbers(sort(x));
  double misplaced = 0;
  for (std::size_t i = 1; i < n; ++i)
    misplaced +=
        values[static_cast<std::size_t>(order[i - 1])] > values[static_cast<std::size_t>(order[i])] ? 1 : 0;
  row(
      "cuda order", "argsort of 2^24", [&] { sort(x); }, {misplaced, 0}, bandwidth,
      static_cast<double>(n) * 12);
  using Lines = Tensor<float, size_or(4096, 30), size_or(4096, 300)>;
  auto const lines = normals<Lines>(2);
  auto running = compile(Running{});
  row(
      "cuda order", "cumsum of rows of 4096", [&] { running(lines); },
      checked<float>(error_beside_cpu(running, lines)), bandwidth,
      static_cast<double>(Lines::static_meta.shape.numel()) * 8);
  auto draw = compile(Normals<float>{});
  auto const key = to(cuda(), Tensor<std::int64_t>(3));
  row(
      "cuda order", "2^24 normal numbers", [&] { draw(x, key); },
      checked<float>(error_beside_cpu(draw, x, key)), bandwidth, static_cast<double>(n) * 4);
}

}  // namespace

int main() {
  return run([](double bandwidth) {
    row("cuda roof", "copy of 1 GiB", 2.0 * (1 << 30) / bandwidth * 1e3, {}, bandwidth, 2.0 * (1 << 30));
    maps<float>("f32", bandwidth);
    maps<bfloat16>("bf16", bandwidth);
    rows(bandwidth);
    entropy<32000>(bandwidth);
    entropy<50257>(bandwidth);
    entropy<128256>(bandwidth);
    orders(bandwidth);
  });
}
