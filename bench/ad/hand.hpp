// SPDX-License-Identifier: BSL-1.0
// Gradients written by hand, as one would for speed: plain loops that the compiler vectorises (hand.cpp is built
// with fast maths), Eigen for products where it is found, and the problems' inputs.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace hand {

constexpr double mu = -0.56, sigma = 1.37;

/// Uniform in [-1, 1), always the same (splitmix64); for prod near 1, so that products stay finite.
inline std::vector<double> inputs(std::string const& name, std::size_t n) {
  std::uint64_t s = 0x5eed0000u + n;
  std::vector<double> v(n);
  for (double& x : v) {
    std::uint64_t z = (s += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    x = 2 * (static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53) - 1;
  }
  if (name == "prod")
    for (double& x : v) x = std::exp(0.1 * x);
  if (name == "regression") v.back() = std::abs(v.back()) + 0.1;
  return v;
}

double sum(double const* x, double* g, int n);
double prod(double const* x, double* g, int n);
double log_sum_exp(double const* x, double* g, int n);
double normal_log_pdf(double const* x, double* g, int n);
double matrix_product(double const* x, double* g, int n);
double regression(double const* p, double const* data, double const* y, double* g, int n, int rows);

}  // namespace hand
