// SPDX-License-Identifier: BSL-1.0
// Eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/ops/linalg.hpp>

namespace dfdx::op {

namespace detail {

/// Eigen - of one symmetric matrix after the other: reflections make it tridiagonal, rotations then diagonal (the
/// implicit QL steps). What is called a row of vectors is an eigenvector.
/// Source    Golub, Van Loan, Matrix Computations, 8.3; Bowdler, Martin, Reinsch, Wilkinson, The QR and QL algorithms
///           for symmetric matrices, 1968
template <int = 0>
class EigenOf {
 public:
  explicit EigenOf(index_t n) : n_(n), v_(n, n), work_(4, n) {}

  /// Of a, whose lower triangle is looked at and which is spoilt: rows of vectors, and behind each its value,
  /// ascending; false where the iteration does not end, as with NaN.
  bool of(Matrix& a, Matrix& vectors) {
    double* const value = work_.row(0);
    double const scale = largest(a);
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j <= i; ++j) a(j, i) = a(i, j) = a(i, j) * (1 / scale);
    vectors.clear();
    for (index_t i = 0; i < n_; ++i) vectors(i, i) = 1;
    make_tridiagonal(a);
    for (index_t k = n_ - 3; k >= 0; --k) {
      // From the right: rows less what they have of v.
      index_t const m = n_ - k - 1;
      row_products(work_.row(2), vectors.row(k + 1) + k + 1, vectors.pitch, v_.row(k) + k + 1, m, m);
      subtract_from_rows(vectors.row(k + 1) + k + 1, vectors.pitch, work_.row(2), 1, v_.row(k) + k + 1, m, m);
    }
    if (!make_diagonal(vectors)) return false;
    for (index_t i = 0; i < n_; ++i) {
      index_t least = i;
      for (index_t j = i + 1; j < n_; ++j)
        if (value[j] < value[least]) least = j;
      if (least == i) continue;
      std::swap(value[i], value[least]);
      std::swap_ranges(vectors.row(i), vectors.row(i) + n_, vectors.row(least));
    }
    for (index_t i = 0; i < n_; ++i) vectors(i, n_) = value[i] * scale;
    return true;
  }

 private:
  // A power of two beside which squares of elements neither overflow nor vanish.
  double largest(Matrix const& a) const {
    double r = 0;
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j <= i; ++j) r = std::max(r, std::fabs(a(i, j)));
    return r > 0 && r < HUGE_VAL ? std::exp2(std::clamp(std::floor(std::log2(r)), -1000.0, 1000.0)) : 1;
  }
  // The diagonal in row 0 of `work`, what is beside it in row 1, and the reflections 1 - v v^T in v.
  void make_tridiagonal(Matrix& a) {
    double *const value = work_.row(0), *const beside = work_.row(1), *const w = work_.row(2);
    for (index_t k = 0; k < n_; ++k) {
      value[k] = a(k, k);
      index_t const m = n_ - k - 1;
      if (m == 0) break;
      double *const x = a.row(k) + k + 1, *const v = v_.row(k) + k + 1;
      beside[k] = x[0];
      std::fill_n(v, m, 0.0);
      double norm = 0, rest = 0;
      row_products(&rest, x + 1, m, x + 1, 1, m - 1);
      if (rest == 0) continue;
      norm = std::sqrt(rest + x[0] * x[0]);
      double const head = std::signbit(x[0]) ? norm : -norm;
      double const by = std::sqrt(norm * (norm + std::fabs(x[0])));
      beside[k] = head;
      x[0] -= head;
      convert_row(v, static_cast<double const*>(x), m);
      divide_row(v, by, m);
      // a less v w^T + w v^T, of w = a v less v times half of v^T a v.
      double* const rows = a.row(k + 1) + k + 1;
      row_products(w, rows, a.pitch, v, m, m);
      double with = 0;
      row_products(&with, v, m, w, 1, m);
      double const half = with / 2;
      subtract_from_rows(w, m, &half, 1, v, 1, m);
      subtract_from_rows(rows, a.pitch, v, 1, w, m, m);
      subtract_from_rows(rows, a.pitch, w, 1, v, m, m);
    }
  }
  bool make_diagonal(Matrix& vectors) {
    double *const value = work_.row(0), *const beside = work_.row(1);
    if (n_ > 0) beside[n_ - 1] = 0;
    for (index_t first = 0; first < n_; ++first)
      for (int steps = 0;; ++steps) {
        index_t last = first;  // where what follows is apart
        while (last + 1 < n_ &&
               !(std::fabs(beside[last]) <= 0x1p-53 * (std::fabs(value[last]) + std::fabs(value[last + 1]))))
          ++last;
        if (last == first) break;
        if (steps == 60) return false;
        // The eigenvalue of the first two rows that is nearer to the first.
        double const slope = (value[first + 1] - value[first]) / (2 * beside[first]);
        double const shift =
            value[first] - beside[first] / (slope + std::copysign(std::hypot(slope, 1), slope));
        double s = 1, c = 1, taken = 0, bulge = value[last] - shift;
        index_t i = last - 1;
        for (; i >= first; --i) {
          double const f = s * beside[i], b = c * beside[i], r = std::hypot(f, bulge);
          beside[i + 1] = r;
          if (r == 0) {
            value[i + 1] -= taken, beside[last] = 0;
            break;
          }
          s = f / r, c = bulge / r;
          double const g = value[i + 1] - taken, t = (value[i] - g) * s + 2 * c * b;
          taken = s * t;
          value[i + 1] = g + taken;
          bulge = c * t - b;
          rotate_rows(vectors.row(i), vectors.row(i + 1), c, s, n_);
        }
        if (i >= first) continue;
        value[first] -= taken, beside[first] = bulge, beside[last] = 0;
      }
    return true;
  }

  index_t n_;
  Matrix v_, work_;
};
using Eigen = EigenOf<>;

}  // namespace detail

/// eigh - the eigenvalues l of symmetric matrices, ascending, below the eigenvectors q, which are columns, of length 1
/// and orthogonal; the lower triangle of a is looked at. A vector's sign is any.
///
/// Where eigenvalues are equal, vectors are no functions of a: derivatives leave out what the vectors of one value do
/// to each other. That is right of functions of the values that do not tell equal ones apart; others may have none.
/// Gaps d below 4 eps |l| count as d / (4 eps |l|)^2 in place of 1 / d, |l| the length of all.
///
/// Math      a = q diag(l) q^T; da = q (diag(dl) + f o (q^T dq)) q^T, made symmetric; f_ij = 1 / (l_j - l_i), f_ii = 0
/// Shapes    a: [B..., N, N] -> [q; l]: [B..., N + 1, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "eigh: no eigenvalues were found: is there a NaN?"; "eigh: square matrices required, got [2, 3]"
/// Source    Giles, Collected matrix derivative results for forward and reverse mode AD, 2008
struct eigh : operation {
  static constexpr char const* name = "eigh";
  static constexpr Examples examples = Examples::same;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 1u << max_arity; }
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta m = detail::square_matrices(name, in[0], why);
    if (!m.valid()) return m;
    int const r = m.shape.rank;
    if (m.shape[r - 1] < 0) return refuse(why, name, ": known extents required, got ", m.shape);
    ++m.shape[r - 2];
    return m;
  }
  template <class V>
  static constexpr V vectors_of(V const& y) {
    Shape const s = y.shape();
    return slice_axis(y, s.rank - 2, 0, s[s.rank - 1]);
  }
  // The values, repeated in each row: l_j in column j.
  template <class V>
  static constexpr V values_of(V const& y) {
    Shape s = y.shape();
    V const row = slice_axis(y, s.rank - 2, s[s.rank - 1], 1);
    s[s.rank - 2] = s[s.rank - 1];
    return bind_as<expand>(Meta{y.dtype(), s}, Attrs{}, row);
  }
  template <class V>
  static constexpr V diagonal(V const& x) {
    return tril(triu(x, 0), 0);
  }
  // f of the values.
  template <class V>
  static constexpr V gaps(V const& y) {
    bool const wide = y.dtype() == DType::f64;
    double const eps = 4 * (wide ? 0x1p-52 : y.dtype() == DType::f32 ? 0x1p-23 : 0x1p-9);
    double const least = wide ? 1e-290 : y.dtype() == DType::f16 ? 1e-6 : 1e-36;
    V const l = values_of(y), d = l - detail::turned(l);
    V const all = sum_axes(l * l, index_t{1} << (l.shape().rank - 1)) * (eps * eps) + least;
    return d / bind<maximum>(Attrs{}, d * d, bind_as<expand>(l.meta(), Attrs{}, all));
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    V const q = vectors_of(s.y);
    V const m = gaps(s.y) * detail::product(detail::turned(q), vectors_of(ct)) + diagonal(values_of(ct));
    V const r = detail::product(detail::product(q, m), detail::turned(q));
    return (r + detail::turned(r)) * 0.5;
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    V const q = vectors_of(s.y), symmetric = (t + detail::turned(t)) * 0.5;
    V const m = detail::product(detail::product(detail::turned(q), symmetric), q);
    int const rows = s.y.shape().rank - 2;
    V const dl = sum_axes(diagonal(m), index_t{1} << rows);
    return bind<concat>(Attrs{{rows}}, detail::product(q, gaps(s.y) * m), dl);
  }
  template <int = 0>
  static void run(Attrs const&, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    Operand const to = detail::turned(out);
    detail::Matrix a(in[0]), y(to);
    detail::Eigen eigen(a.rows);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      a.read(in[0], o[0]);
      if (!eigen.of(a, y)) raise("eigh: no eigenvalues were found: is there a NaN?");
      y.write(to, o[1]);
    });
  }
};

}  // namespace dfdx::op
