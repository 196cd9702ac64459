// SPDX-License-Identifier: BSL-1.0
// Rules of nn::init that a model asks for by name: truncated_normal, orthogonal, sparse, dirac. Templates, for few
// programs need them.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <dfdx/nn/init.hpp>

namespace dfdx::nn::init {

namespace detail {

// The standard normal distribution's quantile, by Newton's method for the logarithm of the tail. That is concave, and
// we start beyond the root: the steps never overshoot.
template <int = 0>
double normal_quantile(double p) {
  if (p <= 0) return -std::numeric_limits<double>::infinity();
  if (p >= 1) return std::numeric_limits<double>::infinity();
  if (p > 0.5) return -normal_quantile<0>(1 - p);
  double const want = std::log(p);
  double x = -std::sqrt(-2 * want);
  for (int i = 0; i < 60; ++i) {
    double const tail = 0.5 * std::erfc(-x / std::sqrt(2.0));
    double const slope = std::exp(-0.5 * x * x) / std::sqrt(2 * 3.141592653589793) / tail;
    double const step = (std::log(tail) - want) / slope;
    x -= step;
    if (std::fabs(step) < 1e-14 * (1 + std::fabs(x))) break;
  }
  return x;
}

}  // namespace detail

/// truncated_normal - N(mean, std^2) without what lies outside of [low, high].
template <int = 0>
void truncated_normal(Array& w, Key key, double mean = 0, double std = 1, double low = -2, double high = 2) {
  // On the side where probabilities are small, which keep their digits there.
  double const side = low > mean ? -1 : 1;
  auto const below = [&](double x) { return 0.5 * std::erfc(side * (mean - x) / (std * std::sqrt(2.0))); };
  double const from = below(low), to = below(high);
  detail::fill(w, [=](std::uint64_t i) {
    double const x = mean + side * std * detail::normal_quantile<0>(from + (to - from) * uniform_at(key, i));
    return std::fmin(std::fmax(x, low), high);
  });
}

/// orthogonal - a matrix whose rows are orthonormal, or its columns if these are fewer, times gain; further axes join
/// the second (Saxe, McClelland and Ganguli, 2014).
template <int = 0>
void orthogonal(Array& w, Key key, double gain = 1) {
  Shape const s = w.shape();
  if (s.rank < 2) raise("orthogonal: a weight has at least 2 axes, got ", s);
  std::size_t rows = static_cast<std::size_t>(s[0]),
              columns = rows == 0 ? 0 : static_cast<std::size_t>(s.numel()) / rows;
  bool const tall = rows > columns;
  std::size_t const n = tall ? columns : rows, size = tall ? rows : columns;  // n orthonormal vectors
  std::vector<double> v(n * size);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = normal_at(key, i);
  for (std::size_t i = 0; i < n; ++i) {
    double* const mine = v.data() + i * size;
    // Twice, so that rounding leaves nothing of the others.
    for (int again = 0; again < 2; ++again)
      for (std::size_t j = 0; j < i; ++j) {
        double const* const other = v.data() + j * size;
        double dot = 0;
        for (std::size_t k = 0; k < size; ++k) dot += mine[k] * other[k];
        for (std::size_t k = 0; k < size; ++k) mine[k] -= dot * other[k];
      }
    double length = 0;
    for (std::size_t k = 0; k < size; ++k) length += mine[k] * mine[k];
    for (std::size_t k = 0; k < size; ++k) mine[k] /= std::sqrt(length);
  }
  detail::fill(w, [&](std::uint64_t i) {
    std::size_t const r = i / columns, c = i % columns;
    return gain * (tall ? v[c * size + r] : v[r * size + c]);
  });
}

/// sparse - N(0, std^2), but in each column this share of the rows, rounded up, is 0 (Martens, ICML 2010).
template <int = 0>
void sparse(Array& w, Key key, double sparsity, double std = 0.01) {
  Shape const s = w.shape();
  if (s.rank != 2) raise("sparse: a matrix required, got ", s);
  auto const rows = static_cast<std::size_t>(s[0]), columns = static_cast<std::size_t>(s[1]);
  auto const none = static_cast<std::size_t>(std::ceil(sparsity * static_cast<double>(rows)));
  std::vector<char> zero(rows * columns, 0);
  std::vector<std::size_t> order(rows);
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) order[r] = r;
    for (std::size_t r = 0; r < none && r < rows; ++r) {
      auto const left = static_cast<std::int64_t>(rows - r);
      std::swap(order[r], order[r + static_cast<std::size_t>(integer_at(fold_in(key, c), r, left))]);
      zero[order[r] * columns + c] = 1;
    }
  }
  detail::fill(w, [&](std::uint64_t i) { return zero[i] != 0 ? 0 : std * normal_at(key, i); });
}

/// dirac - convolutions that pass their channels on, as many as both sides have in each group; the weight has 3 to 5
/// axes.
template <int = 0>
void dirac(Array& w, index_t groups = 1) {
  Shape const s = w.shape();
  if (s.rank < 3 || s.rank > 5) raise("dirac: a weight of 3 to 5 axes required, got ", s);
  if (groups < 1 || s[0] % groups != 0)
    raise("dirac: ", s[0], " channels do not make ", Position{groups}, " groups");
  index_t const part = s[0] / groups;
  detail::fill(w, [&](std::uint64_t at) {
    auto i = static_cast<index_t>(at);
    bool centre = true;
    for (int a = s.rank - 1; a >= 2; --a) {
      centre = centre && i % s[a] == s[a] / 2;
      i /= s[a];
    }
    return centre && i % s[1] == i / s[1] % part ? 1.0 : 0.0;
  });
}

}  // namespace dfdx::nn::init
