// SPDX-License-Identifier: BSL-1.0
// Gaussian elimination with row exchanges, and solutions by its factors.
#pragma once

#include <cmath>

#include <dfdx/ops/matrices.hpp>

namespace dfdx::op::detail {

// The row from k on in which column k has its largest element.
template <class M>
index_t largest_below(M const& a, index_t k, index_t n) {
  index_t r = k;
  for (index_t i = k + 1; i < n; ++i)
    if (std::fabs(a(i, k)) > std::fabs(a(r, k))) r = i;
  return r;
}

// The first n rows of a become L - 1 + U, the one behind them says with which row each was exchanged when its turn
// came. A column that is 0 from its row on is left so. By panels of columns: behind a panel a row is read and written
// once for all of its columns.
template <class M>
void factorize(M& a) {
  index_t const n = a.columns;
  for (index_t first = 0; first < n; first += 32) {
    index_t const end = n - first < 32 ? n : first + 32;
    // The largest element of a column is looked for when the column before it is taken from all rows.
    index_t pivot = largest_below(a, first, n);
    for (index_t k = first; k < end; ++k) {
      a(n, k) = static_cast<double>(pivot);
      if (pivot != k) std::swap_ranges(a.row(k), a.row(k) + n, a.row(pivot));
      double const by = a(k, k);
      double largest = -1;
      pivot = k + 1;  // (if all are NaN)
      for (index_t i = k + 1; i < n; ++i) {
        double* const row = a.row(i);
        double const f = row[k] = row[k] == 0 ? 0 : row[k] / by;
        subtract_row(row + k + 1, a.row(k) + k + 1, f, end - k - 1);
        if (k + 1 < end && std::fabs(row[k + 1]) > largest) largest = std::fabs(row[k + 1]), pivot = i;
      }
    }
    if (end < n)
      for (index_t i = first + 1; i < n; ++i) {
        index_t const rows = (i < end ? i : end) - first;
        subtract_rows(a.row(i) + end, a.row(first) + end, n, a.row(i) + first, 1, rows, n - end);
      }
  }
}

/// Triangle - the triangular matrix in a, `unit` with ones on its diagonal; or its transpose.
struct Triangle {
  bool upper = false, unit = false, transposed = false;
};
// b becomes the solution for a triangular matrix.
template <class M>
void substitute(M const& a, M& b, Triangle const& of) {
  bool const from_below = of.upper != of.transposed;
  index_t const n = b.rows, down = of.transposed ? a.columns : 1;
  for (index_t k = 0; k < n; ++k) {
    index_t const i = from_below ? n - 1 - k : k;
    index_t const begin = from_below ? i + 1 : 0;
    double const* const f = of.transposed ? a.row(begin) + i : a.row(i) + begin;
    if (b.columns == 1 && !of.transposed) b(i, 0) -= row_product(f, b.row(begin), k);
    else subtract_rows(b.row(i), b.row(begin), b.columns, f, down, k, b.columns);
    if (!of.unit)
      for (index_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
}

// b becomes the solution for the matrix that `factors` is of, or for its transpose; false if it is singular.
template <class M>
bool solve_factorized(M const& factors, M& b, bool transposed) {
  index_t const n = b.rows;
  auto const exchange = [&](index_t k) {
    auto const with = static_cast<index_t>(factors(n, k));
    if (with != k) std::swap_ranges(b.row(k), b.row(k) + b.columns, b.row(with));
  };
  for (index_t k = 0; k < n; ++k)
    if (factors(k, k) == 0) return false;
  if (!transposed)
    for (index_t k = 0; k < n; ++k) exchange(k);
  substitute(factors, b, {.upper = transposed, .unit = !transposed, .transposed = transposed});
  substitute(factors, b, {.upper = !transposed, .unit = transposed, .transposed = transposed});
  if (transposed)
    for (index_t k = n; k-- > 0;) exchange(k);
  return true;
}

}  // namespace dfdx::op::detail
