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
  MatrixOf() = default;
  MatrixOf(index_t r, index_t c) : rows(r), columns(c), v(static_cast<std::size_t>(r * c)) {}
  double& operator()(index_t i, index_t j) { return v[static_cast<std::size_t>(i * columns + j)]; }
  double operator()(index_t i, index_t j) const { return v[static_cast<std::size_t>(i * columns + j)]; }

  double* row(index_t i) { return v.data() + i * columns; }
  double const* row(index_t i) const { return v.data() + i * columns; }

  /// What it has memory for is kept from one matrix of a batch to the next.
  void read(Operand const& x, index_t offset) {
    int const r = x.meta.shape.rank;
    rows = x.meta.shape[r - 2], columns = x.meta.shape[r - 1];
    v.resize(static_cast<std::size_t>(rows * columns));
    index_t const down = x.strides[r - 2], across = x.strides[r - 1];
    auto const all = [&](auto const& element) {
      double* to = v.data();
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < columns; ++j) *to++ = element(offset + i * down + j * across);
    };
    if (x.meta.dtype == DType::f32)
      all([p = static_cast<float const*>(x.data)](index_t at) { return static_cast<double>(p[at]); });
    else all([&](index_t at) { return read_real(x, at); });
  }
  void write(Operand const& x, index_t offset) const {
    int const r = x.meta.shape.rank;
    index_t const down = x.strides[r - 2], across = x.strides[r - 1];
    auto const all = [&](auto const& put) {
      double const* from = v.data();
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < columns; ++j) put(offset + i * down + j * across, *from++);
    };
    if (x.meta.dtype == DType::f32)
      all([p = static_cast<float*>(x.data)](index_t at, double d) { p[at] = static_cast<float>(d); });
    else all([&](index_t at, double d) { write_real(x, at, d); });
  }
};
using Matrix = MatrixOf<>;

/// subtract_row - y -= f x of n numbers that lie apart from each other.
template <int = 0>
DFDX_INLINE void subtract_row(double* DFDX_RESTRICT y, double const* DFDX_RESTRICT x, double f, index_t n) {
  index_t i = 0;
  for (; i + 4 <= n; i += 4) {
    double const a = y[i] - f * x[i], b = y[i + 1] - f * x[i + 1];
    double const c = y[i + 2] - f * x[i + 2], d = y[i + 3] - f * x[i + 3];
    y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
  }
  for (; i < n; ++i) y[i] -= f * x[i];
}
/// subtract_rows - y -= the sum of f x over so many rows x, four of them at once, for which y is read and written once.
template <int = 0>
void subtract_rows(double* DFDX_RESTRICT y, double const* x, index_t row, double const* f, index_t rows,
                   index_t n) {
  for (; rows >= 4; rows -= 4, x += 4 * row, f += 4) {
    double const *const DFDX_RESTRICT p = x, *const DFDX_RESTRICT q = x + row;
    double const *const DFDX_RESTRICT r = x + 2 * row, *const DFDX_RESTRICT s = x + 3 * row;
    double const e = f[0], g = f[1], h = f[2], k = f[3];
    index_t i = 0;
    for (; i + 4 <= n; i += 4) {
      double const a = y[i] - e * p[i] - g * q[i] - h * r[i] - k * s[i];
      double const b = y[i + 1] - e * p[i + 1] - g * q[i + 1] - h * r[i + 1] - k * s[i + 1];
      double const c = y[i + 2] - e * p[i + 2] - g * q[i + 2] - h * r[i + 2] - k * s[i + 2];
      double const d = y[i + 3] - e * p[i + 3] - g * q[i + 3] - h * r[i + 3] - k * s[i + 3];
      y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
    }
    for (; i < n; ++i) y[i] = y[i] - e * p[i] - g * q[i] - h * r[i] - k * s[i];
  }
  for (; rows > 0; --rows, x += row, ++f) subtract_row(y, x, *f, n);
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

// The row from k on in which column k has its largest element.
template <class M>
index_t largest_below(M const& a, index_t k) {
  index_t r = k;
  for (index_t i = k + 1; i < a.rows; ++i)
    if (std::fabs(a(i, k)) > std::fabs(a(r, k))) r = i;
  return r;
}

// Gaussian elimination with row exchanges: a becomes L - 1 + U, rows of b follow; the sign of the exchanges, or 0 for
// a singular matrix. By panels of columns: behind a panel a row is read and written once for all of its columns.
template <class M>
double eliminate(M& a, M& b) {
  double sign = 1;
  index_t const n = a.rows;
  for (index_t first = 0; first < n; first += 32) {
    index_t const end = n - first < 32 ? n : first + 32;
    // The largest element of a column is looked for when the column before it is taken from all rows.
    index_t pivot = largest_below(a, first);
    for (index_t k = first; k < end; ++k) {
      if (a(pivot, k) == 0) return 0;
      if (pivot != k) {
        std::swap_ranges(a.row(k), a.row(k) + n, a.row(pivot));
        std::swap_ranges(b.row(k), b.row(k) + b.columns, b.row(pivot));
        sign = -sign;
      }
      double largest = -1;
      for (index_t i = k + 1; i < n; ++i) {
        double* const row = a.row(i);
        double const f = row[k] /= a(k, k);
        subtract_row(row + k + 1, a.row(k) + k + 1, f, end - k - 1);
        if (k + 1 < end && std::fabs(row[k + 1]) > largest) largest = std::fabs(row[k + 1]), pivot = i;
      }
      if (largest < 0) pivot = k + 1;  // (all are NaN: as if the first were the largest)
    }
    if (end == n && b.columns == 0) break;
    for (index_t i = first + 1; i < n; ++i) {
      index_t const rows = (i < end ? i : end) - first;
      double const* const f = a.row(i) + first;
      if (end < n) subtract_rows(a.row(i) + end, a.row(first) + end, n, f, rows, n - end);
      subtract_rows(b.row(i), b.row(first), b.columns, f, rows, b.columns);
    }
  }
  return sign;
}
// b becomes the solution for a triangular matrix.
template <class M>
void substitute(M const& a, M& b, bool upper) {
  for (index_t k = 0; k < a.rows; ++k) {
    index_t const i = upper ? a.rows - 1 - k : k;
    index_t const begin = upper ? i + 1 : 0, rows = upper ? k : i;
    if (b.columns == 1) b(i, 0) -= row_product(a.row(i) + begin, b.row(begin), rows);
    else subtract_rows(b.row(i), b.row(begin), b.columns, a.row(i) + begin, rows, b.columns);
    for (index_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
}

}  // namespace dfdx::op::detail
