// SPDX-License-Identifier: BSL-1.0
// The hand-written gradients of hand.hpp. Compiled with -O3 -march=native -ffast-math: the best case of plain code.
#include "hand.hpp"

#if defined(DFDX_BENCH_EIGEN)
#include <Eigen/Dense>
#endif

namespace hand {

double sum(double const* __restrict x, double* __restrict g, int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) s += x[i], g[i] = 1;
  return s;
}

double prod(double const* __restrict x, double* __restrict g, int n) {
  double p = 1;
  for (int i = 0; i < n; ++i) p *= x[i];
  for (int i = 0; i < n; ++i) g[i] = p / x[i];
  return p;
}

double log_sum_exp(double const* __restrict x, double* __restrict g, int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) {
    double const e = std::exp(x[i]);
    g[i] = e;
    s += e;
  }
  double const r = 1 / s;
  for (int i = 0; i < n; ++i) g[i] *= r;
  return std::log(s);
}

double normal_log_pdf(double const* __restrict x, double* __restrict g, int n) {
  double const w = 1 / (sigma * sigma);
  double s = 0;
  for (int i = 0; i < n; ++i) {
    double const d = mu - x[i];
    s += d * d;
    g[i] = d * w;
  }
  return -0.5 * s * w - n * std::log(sigma);
}

#if defined(DFDX_BENCH_EIGEN)

// Three products, as a derivative program does it: C = A B, dA = 1 B', dB = A' 1.
double matrix_product(double const* x, double* g, int n) {
  using M = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  std::size_t const nn = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  static thread_local M c, ones;
  if (c.rows() != n) {
    c.resize(n, n);
    ones = M::Ones(n, n);
  }
  Eigen::Map<M const> a(x, n, n), b(x + nn, n, n);
  Eigen::Map<M> da(g, n, n), db(g + nn, n, n);
  c.noalias() = a * b;
  da.noalias() = ones * b.transpose();
  db.noalias() = a.transpose() * ones;
  return c.sum();
}

double regression(double const* p, double const* data, double const* y, double* g, int n, int rows) {
  static thread_local Eigen::VectorXd r;
  Eigen::Map<Eigen::MatrixXd const> x(data, rows, n);
  Eigen::Map<Eigen::VectorXd const> target(y, rows), w(p, n);
  Eigen::Map<Eigen::VectorXd> gw(g, n);
  double const b = p[n], s = p[n + 1], v = 1 / (s * s);
  r = target;
  r.noalias() -= x * w;
  r.array() -= b;
  double const squares = r.squaredNorm();
  gw.noalias() = x.transpose() * r;
  gw = gw * v - w;
  g[n] = r.sum() * v - b;
  g[n + 1] = squares * v / s - rows / s;
  return -0.5 * squares * v - rows * std::log(s) - 0.5 * w.squaredNorm() - 0.5 * b * b - std::log(9.9);
}

#else  // loops in the order of memory

double matrix_product(double const* x, double* g, int n) {
  std::size_t const size = static_cast<std::size_t>(n);
  double const *a = x, *b = x + size * size;
  double *da = g, *db = g + size * size;
  static thread_local std::vector<double> product;
  product.assign(size * size, 0.0);
  double* __restrict c = product.data();
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t k = 0; k < size; ++k)
      for (std::size_t j = 0; j < size; ++j) c[i * size + j] += a[i * size + k] * b[k * size + j];
  for (std::size_t i = 0; i < 2 * size * size; ++i) g[i] = 0;
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t k = 0; k < size; ++k)
      for (std::size_t j = 0; j < size; ++j) {
        da[i * size + k] += b[k * size + j];
        db[k * size + j] += a[i * size + k];
      }
  double s = 0;
  for (std::size_t i = 0; i < size * size; ++i) s += c[i];
  return s;
}

double regression(double const* p, double const* data, double const* y, double* g, int n, int rows) {
  static thread_local std::vector<double> residual;
  residual.resize(static_cast<std::size_t>(rows));
  double* __restrict r = residual.data();
  double const b = p[n], s = p[n + 1], v = 1 / (s * s);
  for (int i = 0; i < rows; ++i) r[i] = y[i] - b;
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < rows; ++i) r[i] -= p[k] * data[k * rows + i];
  double sum = 0, squares = 0, weights = 0;
  for (int i = 0; i < rows; ++i) sum += r[i], squares += r[i] * r[i];
  for (int k = 0; k < n; ++k) {
    double dot = 0;
    for (int i = 0; i < rows; ++i) dot += data[k * rows + i] * r[i];
    g[k] = dot * v - p[k];
    weights += p[k] * p[k];
  }
  g[n] = sum * v - b;
  g[n + 1] = squares * v / s - rows / s;
  return -0.5 * squares * v - rows * std::log(s) - 0.5 * weights - 0.5 * b * b - std::log(9.9);
}

#endif

}  // namespace hand
