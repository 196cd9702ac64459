// SPDX-License-Identifier: BSL-1.0
// Singular values and vectors of one matrix after the other, in double.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/ops/eigen.hpp>

namespace dfdx::op::detail {

/// Singular - of matrices of n <= m rows of m numbers: rotations of two rows at a time until all are orthogonal
/// (one-sided Jacobi). Their lengths are the singular values then; what the rotations make of the unit matrix, and rows
/// of length 1, the vectors. So values far below the largest are as accurate as each row by itself tells them.
///
/// Many long rows become triangular first; more than `few`, of lengths not far apart, are first turned by the
/// eigenvectors of their products with one another, after which few rotations are left.
/// Source    Hestenes, Inversion of matrices by biorthogonalization, 1958; de Rijk, A one-sided Jacobi algorithm for
///           computing the singular value decomposition on a vector computer, 1989; Drmac, Veselic, New fast and
///           accurate Jacobi SVD algorithm, 2008
template <int = 0>
class SingularOf {
 public:
  static constexpr index_t few = 8;

  /// Where in a row of results is what belongs to a value: the vector of m numbers, the value, that of n numbers.
  struct Places {
    index_t wide, value, narrow;
  };

  SingularOf(index_t n, index_t m, bool with_vectors, bool as_doubles)
      : n_(n),
        m_(m),
        triangular_(m > 2 * n && n > Reflections::panel),
        vectors_(with_vectors),
        floats_(!as_doubles),
        width_(triangular_ ? n : m),
        x_(n, width_ + (with_vectors ? n : 0)),
        lengths_(3, n) {}

  /// Of a, which is spoilt: rows of y, values in descending order, or these alone; false if not all elements are
  /// finite. To values of 0 belong some vectors orthogonal to the others.
  bool of(Matrix& a, Matrix& y, Places const& to) {
    double const scale = scaled(a);
    if (!(scale > 0)) return false;
    Reflections reflections(triangular_ ? m_ : 0, triangular_ ? n_ : 0);
    if (triangular_) reflections.triangulate(a);
    x_.clear();
    for (index_t i = 0; i < n_; ++i) {
      std::copy_n(a.row(i), triangular_ ? i + 1 : m_, x_.row(i));
      if (vectors_) x_(i, width_ + i) = 1;
    }
    Found const found = n_ > few ? bring_near() : Found::nothing;
    if (found != Found::values) rotate(found == Found::vectors);
    for (index_t k = 0; k < n_; ++k) y(k, to.value) = length(k) * scale;
    if (!vectors_) return true;
    for (index_t k = 0; k < n_; ++k) {
      if (length(k) > 0) divide_row(x_.row(k), length(k), width_);
      else complete(k);
      std::copy_n(x_.row(k) + width_, n_, y.row(k) + to.narrow);
      if (!triangular_) std::copy_n(x_.row(k), m_, y.row(k) + to.wide);
    }
    if (!triangular_) return true;
    a.clear();
    reflections.orthogonal(a);
    for (index_t k = 0; k < n_; ++k) std::fill_n(y.row(k) + to.wide, m_, 0.0), divide_row(x_.row(k), -1, n_);
    subtract_product(n_, m_, n_, {x_.row(0), x_.pitch, 1}, {a.row(0), a.pitch, 1}, y.row(0) + to.wide,
                     y.pitch);
    return true;
  }

 private:
  enum class Found { nothing, values, vectors };  // or what is near them

  // Squares below count as 0: products of two of them would vanish.
  static constexpr double least = 1e-290;

  double length(index_t k) const { return lengths_(1, k); }
  double square(index_t i, index_t j) const {
    double r = 0;
    row_products(&r, x_.row(i), x_.pitch, x_.row(j), 1, width_);
    return r;
  }
  // a over a power of two, which is the result; 0 if an element is not finite.
  double scaled(Matrix& a) const {
    double most = 0;
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j < m_; ++j) {
        double const x = std::fabs(a(i, j));
        if (!(x < HUGE_VAL)) return 0;
        most = std::max(most, x);
      }
    double const scale = power_of_two(most);
    if (scale != 1)
      for (index_t i = 0; i < n_; ++i) divide_row(a.row(i), scale, m_);
    return scale;
  }
  // (That leaves errors beside the longest row in all: not where rows are short beside others.)
  Found bring_near() {
    double least_square = HUGE_VAL, most = 0;
    for (index_t k = 0; k < n_; ++k) {
      double const s = square(k, k);
      least_square = std::min(least_square, s), most = std::max(most, s);
    }
    if (!(least_square > 1e-6 * most)) return Found::nothing;
    Matrix products(n_, n_), vectors(n_, n_ + 1, Matrix::Whole{}), turned(n_, width_);
    products.clear(), turned.clear();
    Factor const x{x_.row(0), x_.pitch, 1};
    // Less the products, whose eigenvalues ascend, and rows times -1: signs are any.
    subtract_product(n_, n_, width_, x, {x.at, 1, x.row}, products.row(0), n_);
    // Of floats their values do: the least is off by no more than 2^-26 of the largest.
    bool const is_enough = !vectors_ && floats_;
    if (!Eigen(n_, !is_enough).of(products, vectors)) return Found::nothing;
    for (index_t k = 0; is_enough && k < n_; ++k) lengths_(1, k) = std::sqrt(std::max(0.0, -vectors(k, 0)));
    if (is_enough) return Found::values;
    subtract_product(n_, width_, n_, {vectors.row(0), vectors.pitch, 1}, x, turned.row(0), width_);
    for (index_t k = 0; k < n_; ++k) {
      std::copy_n(turned.row(k), width_, x_.row(k));
      for (index_t i = 0; vectors_ && i < n_; ++i) x_(k, width_ + i) = -vectors(k, i);
    }
    return Found::vectors;
  }
  // Until a sweep finds all rows orthogonal, the longest first. (By the last sweep they are as far as they ever get.)
  void rotate(bool is_near) {
    double const near = std::sqrt(static_cast<double>(width_)) * (floats_ ? 0x1p-34 : 0x1p-52);
    double *const squares = lengths_.row(0), *const lengths = lengths_.row(1),
                  *const products = lengths_.row(2);
    for (int sweep = 0, rotated = 1; sweep < 40 && rotated != 0; ++sweep) {
      rotated = 0;
      for (index_t k = 0; k < n_; ++k) squares[k] = square(k, k), lengths[k] = std::sqrt(squares[k]);
      for (index_t i = 0; i < n_; ++i) {
        index_t const longest = std::max_element(squares + i, squares + n_) - squares;
        if (longest != i) {
          std::swap(squares[i], squares[longest]), std::swap(lengths[i], lengths[longest]);
          std::swap_ranges(x_.row(i), x_.row(i) + x_.columns, x_.row(longest));
        }
        if (!(squares[i] > least)) {
          std::fill(lengths + i, lengths + n_, 0.0);
          break;
        }
        bool known = sweep > 0 || is_near;
        if (known) row_products(products, x_.row(i + 1), x_.pitch, x_.row(i), n_ - i - 1, width_);
        for (index_t j = i + 1; j < n_; ++j) {
          double const p = known ? products[j - i - 1] : square(i, j);
          if (!(squares[j] > least) || !(std::fabs(p) > near * lengths[i] * lengths[j])) continue;
          double const half = (squares[j] - squares[i]) / (2 * p), size = std::fabs(half);
          double const t =
              std::copysign(size > 1e9 ? 0.5 / size : 1 / (size + std::sqrt(1 + size * size)), half);
          double const c = 1 / std::sqrt(1 + t * t);
          rotate_rows(x_.row(i), x_.row(j), c, c * t, x_.columns);
          for (index_t const k : {i, j}) {
            double const before = squares[k];
            squares[k] += k == i ? -t * p : t * p;
            if (!(squares[k] > 0.01 * before)) squares[k] = square(k, k);
            lengths[k] = std::sqrt(squares[k]);
          }
          known = false, ++rotated;
        }
      }
    }
  }
  // Row k: a vector of length 1, orthogonal to those before.
  void complete(index_t k) {
    double* const x = x_.row(k);
    index_t best = 0;
    for (index_t j = 0, first = 1; j < width_; ++j) {
      double taken = 0;
      for (index_t i = 0; i < k; ++i) taken += x_(i, j) * x_(i, j);
      if (first != 0 || taken < x[best]) best = j, first = 0;
      x[j] = taken;
    }
    std::fill_n(x, width_, 0.0);
    x[best] = 1;
    for (int again = 0; again < 2; ++again) {
      row_products(lengths_.row(2), x_.row(0), x_.pitch, x, k, width_);
      subtract_rows(x, x_.row(0), x_.pitch, lengths_.row(2), 1, k, width_);
      divide_row(x, std::sqrt(square(k, k)), width_);
    }
  }

  index_t n_, m_;
  bool triangular_, vectors_, floats_;
  index_t width_;
  Matrix x_, lengths_;  // rows, and behind them what the rotations make of the unit matrix
};
using Singular = SingularOf<>;

}  // namespace dfdx::op::detail
