// SPDX-License-Identifier: BSL-1.0
// Eigenvalues and eigenvectors of one symmetric matrix after the other, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <dfdx/ops/reflections.hpp>

namespace dfdx::op::detail {

/// Eigen - of one symmetric matrix after the other: reflections make it tridiagonal, rotations then diagonal (the
/// implicit QL steps). What is called a row of vectors is an eigenvector.
///
/// A reflection's update of what is left waits for the next one, with which it is one pass over memory; rotations of
/// vectors wait for those of a few steps more.
/// Source    Golub, Van Loan, Matrix Computations, 8.3; Bowdler, Martin, Reinsch, Wilkinson, The QR and QL algorithms
///           for symmetric matrices, 1968; Dongarra, Sorensen, Hammarling, Block reduction of matrices to condensed
///           forms for eigenvalue computations, 1989
template <int = 0>
class EigenOf {
 public:
  /// For matrices of n rows, with or without vectors.
  explicit EigenOf(index_t n, bool with_vectors = true)
      : n_(n),
        vectors_(with_vectors),
        v_(n, n),
        work_(4, n),
        rotations_(with_vectors ? 2 * most_waiting : 0, n) {}

  /// Of a, whose lower triangle is looked at and which is spoilt: rows of vectors, and behind each its value,
  /// ascending, or rows of a value alone; false where the iteration does not end, as with NaN.
  bool of(Matrix& a, Matrix& vectors) {
    double* const value = work_.row(0);
    double const scale = power_of_two(largest(a));
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j <= i; ++j) a(j, i) = a(i, j) = a(i, j) * (1 / scale);
    make_tridiagonal(a);
    if (vectors_) accumulate(vectors);
    if (!make_diagonal(vectors)) return false;
    if (!vectors_) std::sort(value, value + n_);
    for (index_t i = 0; vectors_ && i < n_; ++i) {
      index_t least = i;
      for (index_t j = i + 1; j < n_; ++j)
        if (value[j] < value[least]) least = j;
      if (least == i) continue;
      std::swap(value[i], value[least]);
      std::swap_ranges(vectors.row(i), vectors.row(i) + n_, vectors.row(least));
    }
    for (index_t i = 0; i < n_; ++i) vectors(i, vectors_ ? n_ : 0) = value[i] * scale;
    return true;
  }

 private:
  static constexpr index_t most_waiting = 8;

  double largest(Matrix const& a) const {
    double r = 0;
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j <= i; ++j) r = std::max(r, std::fabs(a(i, j)));
    return r;
  }
  // The diagonal in row 0 of `work`, what is beside it in row 1, and the reflections 1 - v v^T in v.
  void make_tridiagonal(Matrix& a) {
    double *const value = work_.row(0), *const beside = work_.row(1);
    for (index_t k = 0; k < n_; ++k) {
      // Row k lacks what the last reflection makes of it, the rows below too: a less v w^T + w v^T.
      double *const w = work_.row(2 + k % 2) + k + 1, *const last_w = work_.row(3 - k % 2) + k;
      double* const last_v = k == 0 ? nullptr : v_.row(k - 1) + k;
      if (k > 0) {
        subtract_from_rows(a.row(k) + k, n_, last_v, 1, last_w, 1, n_ - k);
        subtract_from_rows(a.row(k) + k, n_, last_w, 1, last_v, 1, n_ - k);
      }
      value[k] = a(k, k);
      index_t const m = n_ - k - 1;
      if (m == 0) break;
      double *const x = a.row(k) + k + 1, *const v = v_.row(k) + k + 1, *const rows = a.row(k + 1) + k + 1;
      make_reflection(x, v, m, beside[k]);
      if (k == 0) row_products(w, rows, n_, v, m, m);
      else subtract_two_rows(w, rows, n_, last_v + 1, last_w + 1, last_w + 1, last_v + 1, v, m, m);
      // w = a v less v times half of v^T a v.
      double with = 0;
      row_products(&with, v, m, w, 1, m);
      double const half = with / 2;
      subtract_from_rows(w, m, &half, 1, v, 1, m);
    }
  }
  // v, of which the reflection makes all of x but the first number 0, which becomes `head`; v = 0 if they are 0.
  void make_reflection(double* x, double* v, index_t m, double& head) const {
    head = x[0];
    std::fill_n(v, m, 0.0);
    double rest = 0;
    row_products(&rest, x + 1, m, x + 1, 1, m - 1);
    if (!(rest > 1e-300)) return;  // squares that would vanish make no reflection
    double const norm = std::sqrt(rest + x[0] * x[0]);
    head = std::signbit(x[0]) ? norm : -norm;
    double const by = std::sqrt(norm * (norm + std::fabs(x[0])));
    x[0] -= head;
    convert_row(v, static_cast<double const*>(x), m);
    divide_row(v, by, m);
  }
  // The product of all reflections, a few of its rows at a time: less what they have of v, the last v first.
  void accumulate(Matrix& vectors) {
    constexpr index_t several = 8;
    double with[several];
    vectors.clear();
    for (index_t i = 0; i < n_; ++i) vectors(i, i) = 1;
    for (index_t i = 1; i < n_; i += several) {
      index_t const rows = std::min(several, n_ - i);
      for (index_t k = std::min(n_ - 3, i + rows - 2); k >= 0; --k) {
        double *const x = vectors.row(i) + k + 1, *const v = v_.row(k) + k + 1;
        row_products(with, x, vectors.pitch, v, rows, n_ - k - 1);
        subtract_from_rows(x, vectors.pitch, with, 1, v, rows, n_ - k - 1);
      }
    }
  }
  bool make_diagonal(Matrix& vectors) {
    double *const value = work_.row(0), *const beside = work_.row(1);
    double *const c_of = rotations_.row(0), *const s_of = rotations_.row(vectors_ ? most_waiting : 0);
    if (vectors_) std::fill_n(c_of, most_waiting * n_, 1.0), std::fill_n(s_of, most_waiting * n_, 0.0);
    index_t waiting = 0, low = 0, high = 0;  // so many steps wait, of rows from `low` to `high`
    auto const flush = [&] {
      if (waiting == 0) return;
      rotate_neighbours(vectors.row(low), vectors.pitch, c_of + low, s_of + low, n_, (waiting + 1) / 2,
                        high - low, n_);
      std::fill_n(c_of, most_waiting * n_, 1.0), std::fill_n(s_of, most_waiting * n_, 0.0);
      waiting = 0;
    };
    if (n_ > 0) beside[n_ - 1] = 0;
    // What is as small as rounding of the whole matrix counts as 0: of matrices of low rank the rest is noise, among
    // which steps would find no end.
    double most = 0;
    for (index_t i = 0; i < n_; ++i) most = std::max(most, std::fabs(value[i]) + std::fabs(beside[i]));
    double const least = 0x1p-54 * most;
    auto const is_apart = [&](index_t i) {
      double const b = std::fabs(beside[i]);
      return b <= least || b <= 0x1p-53 * (std::fabs(value[i]) + std::fabs(value[i + 1]));
    };
    for (index_t first = 0; first < n_; ++first)
      for (int steps = 0;; ++steps) {
        index_t last = first;  // where what follows is apart
        while (last + 1 < n_ && !is_apart(last)) ++last;
        if (last == first) break;
        if (steps == 60) return false;
        if (!vectors_) {
          step<false>(first, last, nullptr, nullptr);
          continue;
        }
        if (waiting == most_waiting || first >= high || last <= low) flush();
        step<true>(first, last, c_of + waiting * n_, s_of + waiting * n_);
        low = waiting == 0 ? first : std::min(low, first), high = waiting == 0 ? last : std::max(high, last);
        ++waiting;
      }
    flush();
    return true;
  }
  // One step: rotations of rows from last - 1 on down to `first`.
  template <bool Kept>
  void step(index_t first, index_t last, double* c_of, double* s_of) {
    double *const value = work_.row(0), *const beside = work_.row(1);
    // The eigenvalue of the first two rows that is nearer to the first.
    double const slope = (value[first + 1] - value[first]) / (2 * beside[first]);
    double const shift = value[first] - beside[first] / (slope + std::copysign(std::hypot(slope, 1), slope));
    double s = 1, c = 1, taken = 0, bulge = value[last] - shift;
    for (index_t i = last - 1; i >= first; --i) {
      double const f = s * beside[i], b = c * beside[i], square = f * f + bulge * bulge;
      double const r = square > 1e-280 ? std::sqrt(square) : std::hypot(f, bulge);
      beside[i + 1] = r;
      if (r == 0) {
        value[i + 1] -= taken, beside[last] = 0;
        return;
      }
      s = f / r, c = bulge / r;
      double const g = value[i + 1] - taken, t = (value[i] - g) * s + 2 * c * b;
      taken = s * t;
      value[i + 1] = g + taken;
      bulge = c * t - b;
      if constexpr (Kept) c_of[i] = c, s_of[i] = s;
    }
    value[first] -= taken, beside[first] = bulge, beside[last] = 0;
  }

  index_t n_;
  bool vectors_;
  Matrix v_, work_, rotations_;  // rows of c, then of s: 1 and 0 where nothing is rotated
};
using Eigen = EigenOf<>;

}  // namespace dfdx::op::detail
