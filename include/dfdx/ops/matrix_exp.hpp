// SPDX-License-Identifier: BSL-1.0
// Exponentials of matrices.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/ops/join.hpp>
#include <dfdx/ops/lu.hpp>

namespace dfdx::op {

namespace detail {

/// Exponential - of one matrix of n rows after the other: halved until a Pade approximant is good enough, whose
/// denominator is solved for, and squared as often. The approximants are those of degree 3, 7 and 13, which need the
/// same powers; of floats the first two do.
/// Source    Higham, The scaling and squaring method for the matrix exponential revisited, 2005
template <int = 0>
class ExponentialOf {
 public:
  ExponentialOf(index_t n, bool as_doubles)
      : n_(n),
        wide_(as_doubles),
        powers_{{n, n}, {n, n}, {n, n}},
        sum_(n, n),
        u_(n, n),
        v_(n, n),
        factors_(n + 1, n) {}

  /// a becomes its exponential; NaN if not all elements are finite.
  void of(Matrix& a) {
    if (n_ == 0) return;
    // Up to which norm degree 3, 7 and 13 are within rounding (Higham, table 2.3; 7 is the last of floats).
    double const most[] = {wide_ ? 0.014955852179 : 0.42587300169, wide_ ? 0.950417899616 : 3.92572478313,
                           5.3719203511};
    double const norm = largest_column(a);
    if (!(norm < HUGE_VAL)) {
      for (index_t i = 0; i < n_; ++i) std::fill_n(a.row(i), n_, norm - norm);
      return;
    }
    int const degree = norm <= most[0] ? 3 : norm <= most[1] || !wide_ ? 7 : 13;
    double const limit = most[wide_ ? 2 : 1];
    int const halvings = norm > limit ? static_cast<int>(std::ceil(std::log2(norm / limit))) : 0;
    if (halvings > 0)
      for (index_t i = 0; i < n_; ++i) divide_row(a.row(i), std::exp2(halvings), n_);
    approximate(a, degree);
    for (int k = 0; k < halvings; ++k) {
      multiply(a, a, sum_);
      std::copy_n(sum_.row(0), n_ * n_, a.row(0));
    }
  }

 private:
  double largest_column(Matrix const& a) {
    double* const sums = sum_.row(0);
    double r = 0;
    std::fill_n(sums, n_, 0.0);
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j < n_; ++j) sums[j] += std::fabs(a(i, j));
    for (index_t j = 0; j < n_; ++j) r = sums[j] <= r ? r : sums[j];  // NaN too
    return r;
  }
  // p(a) / p(-a): odd and even terms of p by powers of a^2.
  void approximate(Matrix& a, int degree) {
    double c[14] = {1};
    for (int j = 1; j <= degree; ++j) c[j] = c[j - 1] * (degree - j + 1) / (j * (2 * degree - j + 1));
    multiply(a, a, powers_[0]);
    if (degree > 3)
      multiply(powers_[0], powers_[0], powers_[1]), multiply(powers_[0], powers_[1], powers_[2]);
    for (int const odd : {1, 0}) {
      v_.clear();
      if (degree == 13) {
        sum_.clear();
        add(sum_, 0, &c[8 + odd], 3);
        multiply(powers_[2], sum_, v_);
      }
      add(v_, c[odd], &c[2 + odd], degree > 3 ? 3 : 1);
      if (odd == 1) multiply(a, v_, u_);
    }
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j < n_; ++j) factors_(i, j) = v_(i, j) - u_(i, j), a(i, j) = v_(i, j) + u_(i, j);
    factorize(factors_);
    solve_factorized(factors_, a, false);
  }
  // y += c + the sum of every other factor f times a power.
  void add(Matrix& y, double c, double const* f, int count) {
    for (index_t i = 0; i < n_; ++i) {
      y(i, i) += c;
      for (int k = 0; k < count; ++k) {
        double const less = -f[2 * k];
        subtract_rows(y.row(i), powers_[k].row(i), n_, &less, 1, 1, n_);
      }
    }
  }
  // z = x y.
  void multiply(Matrix const& x, Matrix const& y, Matrix& z) {
    z.clear();
    if (n_ > few_columns) {
      subtract_product(n_, n_, n_, {x.row(0), n_, 1}, {y.row(0), n_, 1}, z.row(0), n_);
      for (index_t i = 0; i < n_; ++i) divide_row(z.row(i), -1, n_);
      return;
    }
    double less[few_columns];
    for (index_t i = 0; i < n_; ++i) {
      for (index_t k = 0; k < n_; ++k) less[k] = -x(i, k);
      subtract_rows(z.row(i), y.row(0), n_, less, 1, n_, n_);
    }
  }

  index_t n_;
  bool wide_;
  Matrix powers_[3], sum_, u_, v_, factors_;
};

}  // namespace detail

/// matrix_exp - the exponentials of matrices.
///
/// Math      y = 1 + a + a^2 / 2! + a^3 / 3! + ...; dy is the upper right quarter of the exponential of
///           [a, da; 0, a], the gradient that of [a^T, dy; 0, a^T]
/// Shapes    a: [B..., N, N] -> [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "matrix_exp: square matrices required, got [2, 3]"
/// Source    Higham, The scaling and squaring method for the matrix exponential revisited, 2005; Mathias, A chain rule
///           for matrix functions and applications, 1996, for the derivatives
struct matrix_exp : operation {
  static constexpr char const* name = "matrix_exp";
  static constexpr Examples examples = Examples::same;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 1; }
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta const m = detail::square_matrices(name, in[0], why);
    if (m.valid() && m.shape[m.shape.rank - 1] < 0)
      return refuse(why, name, ": known extents required, got ", m.shape);
    return m;
  }
  // What it changes by along t.
  template <class V>
  static constexpr V slope(V const& a, V const& t) {
    int const rows = a.shape().rank - 2;
    index_t const n = a.shape()[rows];
    V const above = bind<concat>(Attrs{{rows + 1}}, a, t), below = bind<pad>(Attrs{{rows + 1, n, 0}}, a);
    V const y = bind<matrix_exp>(Attrs{}, bind<concat>(Attrs{{rows}}, above, below));
    return slice_axis(slice_axis(y, rows, 0, n), rows + 1, n, n);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return slope(detail::turned(s.x[0]), ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return slope(s.x[0], t);
  }
  template <int = 0>
  static void run(Attrs const&, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    detail::Matrix a(out);
    detail::ExponentialOf<> all(a.rows, out.meta.dtype == DType::f64);
    detail::for_matrices(x,
                         [&](index_t const(&o)[2]) { a.read(in[0], o[0]), all.of(a), a.write(out, o[1]); });
  }
};

}  // namespace dfdx::op
