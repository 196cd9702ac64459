// SPDX-License-Identifier: BSL-1.0
// Matrices of a batch, in double, and Gaussian elimination on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <dfdx/core/config.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::op::detail {

/// Matrix - one matrix of a batch, in double. (Templates all: programs without them do not compile them.)
template <int = 0>
struct MatrixOf {
  index_t rows = 0, columns = 0;
  std::vector<double> v{};
  MatrixOf(index_t r, index_t c) : rows(r), columns(c), v(static_cast<std::size_t>(r * c)) {}
  double& operator()(index_t i, index_t j) { return v[static_cast<std::size_t>(i * columns + j)]; }
  double operator()(index_t i, index_t j) const { return v[static_cast<std::size_t>(i * columns + j)]; }

  double* row(index_t i) { return v.data() + i * columns; }
  double const* row(index_t i) const { return v.data() + i * columns; }

  static MatrixOf read(Operand const& x, index_t offset) {
    int const r = x.meta.shape.rank;
    MatrixOf m(x.meta.shape[r - 2], x.meta.shape[r - 1]);
    for (index_t i = 0; i < m.rows; ++i)
      for (index_t j = 0; j < m.columns; ++j)
        m(i, j) = read_real(x, offset + i * x.strides[r - 2] + j * x.strides[r - 1]);
    return m;
  }
  void write(Operand const& x, index_t offset) const {
    int const r = x.meta.shape.rank;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        write_real(x, offset + i * x.strides[r - 2] + j * x.strides[r - 1], (*this)(i, j));
  }
};
using Matrix = MatrixOf<>;

/// subtract_row - y -= f x of n numbers that lie apart from each other.
template <int = 0>
void subtract_row(double* DFDX_RESTRICT y, double const* DFDX_RESTRICT x, double f, index_t n) {
  index_t i = 0;
  for (; i + 4 <= n; i += 4) {
    double const a = y[i] - f * x[i], b = y[i + 1] - f * x[i + 1];
    double const c = y[i + 2] - f * x[i + 2], d = y[i + 3] - f * x[i + 3];
    y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
  }
  for (; i < n; ++i) y[i] -= f * x[i];
}
/// row_product - the sum of x y, in eight sums that do not wait for each other.
template <int = 0>
double row_product(double const* x, double const* y, index_t n) {
  double sum[8] = {};
  index_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) sum[k] += x[i + k] * y[i + k];
  for (; i < n; ++i) sum[0] += x[i] * y[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// Calls f(offsets) for each of a batch of matrices; `dropped` axes of the last operand are not of the batch.
template <int N, class F>
void for_matrices(Operand const* const (&x)[N], int dropped, F const& f) {
  Shape batch = x[N - 1]->meta.shape;
  batch.rank -= dropped;
  Strides strides[N];
  for (int k = 0; k < N; ++k) strides[k] = x[k]->strides, strides[k].rank = batch.rank;
  walk<N>(batch, strides, [&](index_t const(&o)[N]) { f(o); });
}

// Gaussian elimination with row exchanges: a becomes L - 1 + U, rows of b follow; the sign of the exchanges, or 0 for
// a singular matrix. By panels of columns: behind a panel a row is read and written once for all of its columns.
template <class M>
double eliminate(M& a, M& b) {
  double sign = 1;
  index_t const n = a.rows;
  for (index_t first = 0; first < n; first += 32) {
    index_t const end = n - first < 32 ? n : first + 32;
    for (index_t k = first; k < end; ++k) {
      index_t pivot = k;
      for (index_t i = k + 1; i < n; ++i)
        if (std::fabs(a(i, k)) > std::fabs(a(pivot, k))) pivot = i;
      if (a(pivot, k) == 0) return 0;
      if (pivot != k) {
        std::swap_ranges(a.row(k), a.row(k) + n, a.row(pivot));
        std::swap_ranges(b.row(k), b.row(k) + b.columns, b.row(pivot));
        sign = -sign;
      }
      for (index_t i = k + 1; i < n; ++i) {
        double const f = a(i, k) /= a(k, k);
        subtract_row(a.row(i) + k + 1, a.row(k) + k + 1, f, end - k - 1);
      }
    }
    for (index_t i = first + 1; i < n; ++i)
      for (index_t k = first; k < (i < end ? i : end); ++k) {
        subtract_row(a.row(i) + end, a.row(k) + end, a(i, k), n - end);
        subtract_row(b.row(i), b.row(k), a(i, k), b.columns);
      }
  }
  return sign;
}
// b becomes the solution for a triangular matrix.
template <class M>
void substitute(M const& a, M& b, bool upper) {
  for (index_t k = 0; k < a.rows; ++k) {
    index_t const i = upper ? a.rows - 1 - k : k;
    for (index_t l = upper ? i + 1 : 0; l < (upper ? a.rows : i); ++l)
      subtract_row(b.row(i), b.row(l), a(i, l), b.columns);
    for (index_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
}

}  // namespace dfdx::op::detail
