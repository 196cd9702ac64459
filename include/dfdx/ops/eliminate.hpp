// SPDX-License-Identifier: BSL-1.0
// Triangular matrices: the factors of others, by elimination with row exchanges and of Cholesky, and solutions by them.
// All halve their matrices until few rows are left, so that most of the work is products of matrices, which have
// kernels (Golub, Van Loan, Matrix Computations, 3.2 and 4.2; Toledo, Locality of reference in LU decomposition, 1997).
#pragma once

#include <cmath>

#include <dfdx/ops/matrices.hpp>

namespace dfdx::op::detail {

/// So many rows, or columns, are not halved any more.
inline constexpr index_t few_rows = 32, few_columns = 16;
/// first_half - of n: whole vectors.
template <int = 0>
index_t first_half(index_t n) {
  return whole(n / 2);
}

/// Triangle - the triangular matrix whose rows are at `at`, `pitch` apart, `unit` with ones on its diagonal; or its
/// transpose. What lies on the other side of the diagonal is not looked at.
template <class E = double>
struct Triangle {
  E const* at;
  index_t pitch;
  bool upper = false, unit = false, transposed = false;

  bool from_below() const { return upper != transposed; }
  E const* row(index_t i) const { return at + i * pitch; }
  E diagonal(index_t i) const { return at[i * pitch + i]; }
  Triangle from(index_t k) const { return {at + k * pitch + k, pitch, upper, unit, transposed}; }
};

// b, of so many columns, becomes the solution for a triangular matrix of n rows: row by row.
template <class E>
void substitute_rows(Triangle<E> const& a, index_t n, double* b, index_t b_row, index_t columns) {
  // The rows that are known are taken in the order in which they were made: the last was just written.
  bool const from_below = a.from_below();
  index_t const first = from_below ? n - 1 : 0, down = from_below ? -1 : 1;
  for (index_t k = 0; k < n; ++k) {
    index_t const i = first + k * down;
    double* const x = b + i * b_row;
    E const* const f = a.transposed ? a.row(first) + i : a.row(i) + first;
    subtract_rows(x, b + first * b_row, down * b_row, f, down * (a.transposed ? a.pitch : 1), k, columns);
    if (!a.unit) divide_row(x, a.diagonal(i), columns);
  }
}
// The same of one column, numbers that lie side by side: along the rows of the matrix, four at a time.
template <class E>
void substitute_vector(Triangle<E> const& a, index_t n, double* x) {
  bool const from_below = a.from_below();
  for (index_t done = 0; done < n;) {
    index_t const rows = std::min<index_t>(4, n - done), first = from_below ? n - done - rows : done;
    index_t const known = from_below ? first + rows : 0;  // where what is solved begins
    if (!a.transposed && done > 0) {
      double sums[4];
      row_products(sums, a.row(first) + known, a.pitch, x + known, rows, done);
      for (index_t i = 0; i < rows; ++i) x[first + i] -= sums[i];
    }
    for (index_t k = 0; k < rows; ++k) {
      index_t const i = first + (from_below ? rows - 1 - k : k);
      for (index_t l = 0; l < k; ++l) {
        index_t const j = first + (from_below ? rows - 1 - l : l);
        x[i] -= (a.transposed ? a.row(j)[i] : a.row(i)[j]) * x[j];
      }
      if (!a.unit) x[i] /= a.diagonal(i);
    }
    done += rows;
    index_t const unknown = from_below ? 0 : done;
    if (a.transposed)
      subtract_rows(x + unknown, a.row(first) + unknown, a.pitch, x + first, 1, rows, n - done);
  }
}
template <int = 0>
void substitute(Triangle<> const& a, index_t n, double* b, index_t b_row, index_t columns) {
  if (columns == 1 && b_row == 1) return substitute_vector(a, n, b);
  if (n <= few_rows) return substitute_rows(a, n, b, b_row, columns);
  index_t const h = first_half(n);
  double* const rest = b + h * b_row;
  double const* const between = a.upper ? a.at + h : a.at + h * a.pitch;
  Factor const f = a.transposed ? Factor{between, 1, a.pitch} : Factor{between, a.pitch, 1};
  if (a.from_below()) {
    substitute(a.from(h), n - h, rest, b_row, columns);
    subtract_product(h, columns, n - h, f, {rest, b_row, 1}, b, b_row);
    substitute(a, h, b, b_row, columns);
  } else {
    substitute(a, h, b, b_row, columns);
    subtract_product(n - h, columns, h, f, {b, b_row, 1}, rest, b_row);
    substitute(a.from(h), n - h, rest, b_row, columns);
  }
}

// Exchanges what row n says in the columns first to end: for each of the steps from to, its row and the other one.
template <class M>
void exchange_rows(M& a, index_t from, index_t to, index_t first, index_t end) {
  for (index_t k = from; k < to; ++k) {
    auto const with = static_cast<index_t>(a(a.columns, k));
    if (with != k) std::swap_ranges(a.row(k) + first, a.row(k) + end, a.row(with) + first);
  }
}
// Elimination of a few columns, in whole vectors; `others` says with which row each was exchanged. What rows were taken
// times is in `low`: a vector that is read would wait for a number of it that was just written.
template <int = 0>
void eliminate(Matrix& a, Matrix& low, index_t* others) {
  index_t const n = a.columns;
  // The largest element of a column is looked for when the column before it is taken from all rows.
  double largest = -1;
  index_t pivot = 0;
  auto const look = [&](index_t i, index_t k) {
    if (double const v = std::fabs(a(i, k)); v > largest) largest = v, pivot = i;
  };
  for (index_t i = 0; i < a.rows; ++i) look(i, 0);
  for (index_t k = 0; k < n; ++k) {
    others[k] = pivot;
    if (pivot != k)
      for (Matrix* const x : {&a, &low}) std::swap_ranges(x->row(k), x->row(k) + n, x->row(pivot));
    double const by = a(k, k);
    for (index_t i = k + 1; i < a.rows; ++i) low(i, k) = a(i, k) == 0 ? 0 : a(i, k) / by;
    subtract_from_rows(a.row(k + 1), a.pitch, low.row(k + 1) + k, low.pitch, a.row(k), a.rows - k - 1,
                       a.pitch);
    largest = -1, pivot = k + 1;  // (if all are NaN)
    if (k + 1 < n)
      for (index_t i = k + 1; i < a.rows; ++i) look(i, k + 1);
  }
}
// The columns from first on, to end, of rows from first on.
template <class M>
void factorize_columns(M& a, index_t first, index_t end) {
  index_t const n = a.columns, rows = n - first, columns = end - first;
  if (columns > few_columns) {
    index_t const middle = first + first_half(columns);
    factorize_columns(a, first, middle);
    exchange_rows(a, first, middle, middle, end);
    double* const beside = a.row(first) + middle;
    Triangle<> const unit{a.row(first) + first, a.pitch, false, true};
    substitute(unit, middle - first, beside, a.pitch, end - middle);
    subtract_product(n - middle, end - middle, middle - first, {a.row(middle) + first, a.pitch, 1},
                     {beside, a.pitch, 1}, a.row(middle) + middle, a.pitch);
    factorize_columns(a, middle, end);
    return exchange_rows(a, middle, end, first, middle);
  }
  // In a copy: rows that are far apart compete for a few lines of the caches.
  index_t others[few_columns];
  Matrix copy(rows, columns, Matrix::Whole{}), low(rows, columns, Matrix::Whole{});
  for (index_t i = 0; i < rows; ++i) convert_row(copy.row(i), a.row(first + i) + first, columns);
  eliminate(copy, low, others);
  for (index_t i = 0; i < rows; ++i) {
    double* const row = a.row(first + i) + first;
    if (i < columns) convert_row(row, copy.row(i), columns);
    convert_row(row, low.row(i), std::min(i, columns));
  }
  for (index_t k = 0; k < columns; ++k) a(n, first + k) = static_cast<double>(first + others[k]);
}
// The first n rows of a become L - 1 + U, the one behind them says with which row each was exchanged when its turn
// came. A column that is 0 from its row on is left so.
template <class M>
void factorize(M& a) {
  factorize_columns(a, 0, a.columns);
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
  Triangle<> lower{factors.row(0), factors.pitch, false, true, transposed};
  Triangle<> upper{factors.row(0), factors.pitch, true, false, transposed};
  for (Triangle<> const& t : {transposed ? upper : lower, transposed ? lower : upper})
    substitute(t, n, b.row(0), b.pitch, b.columns);
  if (transposed)
    for (index_t k = n; k-- > 0;) exchange(k);
  return true;
}

// The upper triangle of a, in whole vectors, becomes u of u^T u = a, the rest has no meaning; false if there is none.
template <int = 0>
bool factorize_definite(double* a, index_t pitch, index_t n) {
  if (n <= few_rows) {
    for (index_t k = 0; k < n; ++k) {
      index_t const first = whole_before(k), end = whole(n);
      double* const row = a + k * pitch;
      subtract_rows(row + first, a + first, pitch, a + k, pitch, k, end - first);
      double const root = row[k] > 0 ? std::sqrt(row[k]) : 0;
      if (root == 0) return false;
      divide_row(row + first, root, end - first);
      row[k] = root;
    }
    return true;
  }
  index_t const h = first_half(n), rest = n - h;
  double* const beside = a + h;
  if (!factorize_definite(a, pitch, h)) return false;
  substitute({a, pitch, true, false, true}, h, beside, pitch, rest);
  for (index_t i = 0; i < rest; i += 2 * few_rows)
    subtract_product(std::min(2 * few_rows, rest - i), rest - i, h, {beside + i, 1, pitch},
                     {beside + i, pitch, 1}, a + (h + i) * pitch + h + i, pitch);
  return factorize_definite(a + h * pitch + h, pitch, rest);
}

}  // namespace dfdx::op::detail
