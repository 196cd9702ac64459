// SPDX-License-Identifier: BSL-1.0
// Householder's reflections, which make a matrix triangular; several of them at once, as products of matrices.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/ops/matrices.hpp>

namespace dfdx::op::detail {

/// power_of_two - one near |x|, by which numbers up to x are divided so that their squares neither overflow nor vanish.
template <int = 0>
double power_of_two(double x) {
  return x > 0 && x < HUGE_VAL ? std::exp2(std::clamp(std::floor(std::log2(x)), -1000.0, 1000.0)) : 1;
}

/// scaled_for_squares - divides a by a power of two, which is the result, if squares of its elements could overflow or
/// vanish.
template <int = 0>
double scaled_for_squares(Matrix& a) {
  double squares = 0, most = 0;
  for (index_t i = 0; i < a.rows; ++i) {
    double r = 0;
    row_products(&r, a.row(i), a.pitch, a.row(i), 1, a.columns);
    squares += r;
  }
  if (squares > 0x1p-800 && squares < 0x1p800) return 1;
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.columns; ++j) most = std::max(most, std::fabs(a(i, j)));
  double const scale = power_of_two(most);
  for (index_t i = 0; i < a.rows; ++i) divide_row(a.row(i), scale, a.columns);
  return scale;
}

/// Reflections - those that make a matrix of m rows and n columns, m >= n, upper triangular: 1 - v v^T for each column,
/// |v|^2 = 2, or v = 0.
///
/// Of so many columns in turn (a panel) the product is 1 - v^T t v, v the reflections' rows and t upper triangular, so
/// that what is to the right of them meets products of matrices. There matrices are held column by column.
/// Source    Golub, Van Loan, Matrix Computations, 5.2; Schreiber, Van Loan, A storage-efficient WY representation for
///           products of Householder transformations, 1989
template <int = 0>
class ReflectionsOf {
 public:
  static constexpr index_t panel = 16;  ///< columns of one; they are whole vectors

  ReflectionsOf(index_t m, index_t n)
      : rows_(m),
        columns_(n),
        v_(n, m),
        t_(n <= panel ? 0 : n, panel),
        along_(n <= panel ? 0 : n, panel),
        turned_(n <= panel ? 0 : n, panel) {}

  /// Those of a panel, the columns from `first` on, of which x has the rows from there on. x becomes r in its upper
  /// triangle; what is below has no meaning.
  void make(Matrix& x, index_t first, index_t rows) {
    for (index_t k = 0; k < x.columns; ++k) {
      double* const v = v_.row(first + k) + first;
      std::fill_n(v, rows, 0.0);
      if (k + 1 == rows) return;
      // What the column makes with all: its own square among them.
      alignas(64) double products[panel] = {};
      subtract_rows(products, x.row(k), panel, x.row(k) + k, panel, rows - k, panel);
      double const norm = std::sqrt(-products[k]), own = x(k, k);
      double const head = std::signbit(own) ? norm : -norm;  // as in LAPACK
      if (!(norm > 1e-150)) continue;                        // squares that would vanish make no reflection
      double const scale = 1 / std::sqrt(norm * (norm + std::fabs(own)));
      for (index_t i = k; i < rows; ++i) v[i] = x(i, k) * scale;
      v[k] = (own - head) * scale;
      for (index_t j = 0; j < panel; ++j) products[j] = -scale * (products[j] + head * x.row(k)[j]);
      subtract_from_rows(x.row(k), panel, v + k, 1, products, rows - k, panel);
      x(k, k) = head;
    }
  }
  /// Of one panel: y, whose first rows are 0, becomes the orthogonal q, the product of all on the columns of 1.
  void orthogonal_panel(Matrix& y) {
    for (index_t k = columns_ - 1; k >= 0; --k) {
      y(k, k) = 1;
      alignas(64) double products[panel] = {};
      double const* const v = v_.row(k) + k;
      subtract_rows(products, y.row(k), panel, v, 1, rows_ - k, panel);
      for (double& x : products) x = -x;
      subtract_from_rows(y.row(k), panel, v, 1, products, rows_ - k, panel);
    }
  }
  /// a, column by column, becomes r in its upper triangle; what is below has no meaning.
  void triangulate(Matrix& a) {
    for (index_t first = 0; first < columns_; first += panel) {
      index_t const n = std::min(panel, columns_ - first), rows = rows_ - first;
      Matrix x(rows, n, Matrix::Whole{});
      turn_rows(x.row(0), x.pitch, static_cast<double const*>(a.row(first)) + first, a.pitch, rows, n);
      make(x, first, rows);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i <= j; ++i) a.row(first + j)[first + i] = x(i, j);
      combine(first, first + n);
      apply(first, first + n, a, first + n, false);
    }
  }
  /// y, column by column, which is 0, becomes the orthogonal q.
  void orthogonal(Matrix& y) {
    for (index_t i = 0; i < columns_; ++i) y(i, i) = 1;
    for (index_t first = (columns_ - 1) / panel * panel; first >= 0; first -= panel)
      apply(first, std::min(columns_, first + panel), y, first, true);
  }

 private:
  // t of a panel: of the product with one reflection more, the column t v u on top of 1.
  void combine(index_t first, index_t end) {
    index_t const n = end - first;
    double products[panel * panel] = {};  // less those of the rows v
    Factor const v{v_.row(first) + first, v_.pitch, 1};
    subtract_product(n, n, rows_ - first, v, {v.at, 1, v_.pitch}, products, panel);
    double* const t = t_.row(first);
    std::fill_n(t, n * panel, 0.0);
    for (index_t k = 0; k < n; ++k) {
      for (index_t i = 0; i < k; ++i)
        for (index_t j = i; j < k; ++j) t[i * panel + k] += t[i * panel + j] * products[j * panel + k];
      t[k * panel + k] = 1;
    }
  }
  // The product of a panel's reflections, or else the transpose of it, on the columns of a from `from` on.
  void apply(index_t first, index_t end, Matrix& a, index_t from, bool product) {
    index_t const n = end - first, count = columns_ - from, rows = rows_ - first;
    if (count <= 0) return;
    double* const x = a.row(from) + first;
    Factor const v{v_.row(first) + first, v_.pitch, 1}, w{along_.row(0), panel, 1};
    along_.clear(), turned_.clear();
    subtract_product(count, n, rows, {x, a.pitch, 1}, {v.at, 1, v_.pitch}, along_.row(0), panel);
    subtract_product(count, n, n, w, {t_.row(first), product ? 1 : panel, product ? panel : 1},
                     turned_.row(0), panel);
    subtract_product(count, rows, n, {turned_.row(0), panel, 1}, v, x, a.pitch);
  }

  index_t rows_, columns_;
  Matrix v_, t_, along_, turned_;
};
using Reflections = ReflectionsOf<>;

}  // namespace dfdx::op::detail
