// SPDX-License-Identifier: BSL-1.0
// Derivatives of determinants: matrices of cofactors, of any rank, and their derivatives.
#pragma once

#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <dfdx/ops/cast.hpp>
#include <dfdx/ops/lu.hpp>

namespace dfdx::op {

namespace detail {

/// Unfolded - a matrix a of n >= 2 rows as x diag(1, t) y: t of two rows has what of a is least, x and y have inverses
/// unless the rank is less than n - 2. By elimination with exchanges of rows and columns, which finds the largest
/// element each time. As |a| = |x| |diag(1, t)| |y|, the first two derivatives of it are those of |t|, brought to a.
/// Source    Golub, Van Loan, Matrix Computations, 3.4.6, for the elimination
template <int = 0>
class UnfoldedOf {
 public:
  explicit UnfoldedOf(Matrix const& a) : n_(a.rows), u_(n_, n_), turned_(n_, n_), rows_(n_), columns_(n_) {
    for (index_t i = 0; i < n_; ++i) std::copy_n(a.row(i), n_, u_.row(i));
    for (auto* const order : {&rows_, &columns_}) std::iota(order->begin(), order->end(), index_t{0});
    for (index_t k = 0; k + 2 < n_ && scale_ != 0; ++k) {
      exchange(k);
      scale_ *= u_(k, k);
      if (u_(k, k) == 0) break;
      for (index_t i = k + 1; i < n_; ++i) u_(i, k) /= u_(k, k);
      subtract_from_rows(u_.row(k + 1) + k + 1, n_, u_.row(k + 1) + k, n_, u_.row(k) + k + 1, n_ - k - 1,
                         n_ - k - 1);
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) t_[i][j] = std::exchange(u_(n_ - 2 + i, n_ - 2 + j), i == j);
  }
  /// y = the cofactors of a: x^-T of those of diag(1, t) y^-T.
  void cofactors(Matrix& y) {
    y.clear();
    if (scale_ == 0) return;
    double const of_t = t_[0][0] * t_[1][1] - t_[0][1] * t_[1][0];
    for (index_t i = 0; i + 2 < n_; ++i) y(i, i) = of_t;
    add_cofactors(y, t_, 1);
    bring_back(y);
  }
  /// y = what they change by along g, times g again: the gradient of the sum of g times the cofactors.
  void slope(Matrix const& g, Matrix& y) {
    y.clear();
    if (scale_ == 0) return;
    // m = x^-1 g y^-1, and of |diag(1, t) + m| what is of second order in m.
    index_t const h = n_ - 2;
    Matrix m(n_, n_);
    bring(g, m);
    double cofactors_of_t[2][2] = {{t_[1][1], -t_[1][0]}, {-t_[0][1], t_[0][0]}}, below[2][2], with_below = 0;
    for (index_t i = 0; i < 2; ++i)
      for (index_t j = 0; j < 2; ++j)
        below[i][j] = m(h + i, h + j), with_below += cofactors_of_t[i][j] * below[i][j];
    double const of_t = t_[0][0] * t_[1][1] - t_[0][1] * t_[1][0];
    double trace = 0;
    for (index_t i = 0; i < h; ++i) trace += m(i, i);
    for (index_t i = 0; i < h; ++i) {
      for (index_t j = 0; j < h; ++j) y(i, j) = -of_t * m(j, i);
      y(i, i) += of_t * trace + with_below;
      for (index_t j = 0; j < 2; ++j)
        for (index_t k = 0; k < 2; ++k) {
          y(i, h + j) -= m(h + k, i) * cofactors_of_t[k][j];
          y(h + j, i) -= cofactors_of_t[j][k] * m(i, h + k);
        }
    }
    add_cofactors(y, below, 1);
    add_cofactors(y, t_, trace);
    bring_back(y);
  }

 private:
  // The largest element from row and column k on comes there.
  void exchange(index_t k) {
    index_t row = k, column = k;
    double largest = -1;
    for (index_t i = k; i < n_; ++i)
      for (index_t j = k; j < n_; ++j)
        if (double const v = std::fabs(u_(i, j)); v > largest) largest = v, row = i, column = j;
    if (row != k) {
      std::swap_ranges(u_.row(k), u_.row(k) + n_, u_.row(row));
      std::swap(rows_[static_cast<std::size_t>(k)], rows_[static_cast<std::size_t>(row)]), scale_ = -scale_;
    }
    if (column != k) {
      for (index_t i = 0; i < n_; ++i) std::swap(u_(i, k), u_(i, column));
      std::swap(columns_[static_cast<std::size_t>(k)], columns_[static_cast<std::size_t>(column)]);
      scale_ = -scale_;
    }
  }
  index_t row(index_t i) const { return rows_[static_cast<std::size_t>(i)]; }
  index_t column(index_t i) const { return columns_[static_cast<std::size_t>(i)]; }
  void add_cofactors(Matrix& y, double const (&t)[2][2], double f) {
    index_t const h = n_ - 2;
    y(h, h) += f * t[1][1], y(h, h + 1) -= f * t[1][0];
    y(h + 1, h) -= f * t[0][1], y(h + 1, h + 1) += f * t[0][0];
  }
  void turn(Matrix const& from, Matrix& to) {
    turn_rows(to.row(0), to.pitch, from.row(0), from.pitch, n_, n_);
  }
  // m = x^-1 g y^-1.
  void bring(Matrix const& g, Matrix& m) {
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j < n_; ++j) turned_(j, i) = g(row(i), column(j));
    substitute({u_.row(0), n_, true, false, true}, n_, turned_.row(0), n_, n_);
    turn(turned_, m);
    substitute({u_.row(0), n_, false, true, false}, n_, m.row(0), n_, n_);
  }
  // y becomes |x y| x^-T y y^-T.
  void bring_back(Matrix& y) {
    turn(y, turned_);
    substitute({u_.row(0), n_, true, false, false}, n_, turned_.row(0), n_, n_);
    Matrix m(n_, n_);
    turn(turned_, m);
    substitute({u_.row(0), n_, false, true, true}, n_, m.row(0), n_, n_);
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = 0; j < n_; ++j) y(row(i), column(j)) = scale_ * m(i, j);
  }

  index_t n_;
  Matrix u_, turned_;
  kernels::ScratchVector<index_t> rows_, columns_;
  double t_[2][2] = {}, scale_ = 1;  // the determinant of x y
};
using Unfolded = UnfoldedOf<>;

// Whether a determinant times the inverse is as good as cofactors: no pivot is small beside others.
template <int = 0>
bool is_regular(double const* factors, index_t pitch, index_t n) {
  double least = HUGE_VAL, most = 0;
  for (index_t i = 0; i < n; ++i) {
    double const u = std::fabs(factors[i * pitch + i]);
    least = u < least ? u : least, most = u > most ? u : most;
  }
  return least > 1e-8 * most && most < HUGE_VAL;
}
// a^-T of factors, and its determinant, in which no pivot is 0.
template <int = 0>
double inverse_transpose(Matrix const& factors, Matrix& y) {
  y.clear();
  for (index_t i = 0; i < y.rows; ++i) y(i, i) = 1;
  solve_factorized(factors, y, true);
  return determinant_of_factors(factors.row(0), factors.pitch, y.rows);
}

}  // namespace detail

/// cofactors - the matrices of cofactors, which are the gradients of determinants, by lu(a), or by definition of up to
/// four rows if a stands there again. Where a pivot is small beside others, by an elimination that exchanges columns
/// too: of singular matrices they are as exact as of others.
///
/// Math      y = |a| a^-T where there is an inverse; else of one rank less than rows u v^T, with a v = 0 and a^T u = 0,
///           of lesser rank 0. da = d(sum of dy y)/da (cofactors_slope)
/// Shapes    a: [B..., N, N], lu(a) or a -> y: [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "cofactors: square matrices required, got [2, 3]"
/// Source    Magnus, Neudecker, Matrix Differential Calculus, 8.3
struct cofactors : operation {
  static constexpr char const* name = "cofactors";
  static constexpr Examples examples = Examples::same;
  static constexpr int arity = 2;
  static constexpr Sized sized = Sized::cofactors;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 3; }
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    return detail::square_matrices(name, in[0], why);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s);
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return vjp<I>(t, s);  // second derivatives are symmetric
  }
  template <int = 0>
  static void run(Attrs const&, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &in[1], &out};
    detail::Matrix a(in[0]), factors(in[1], true), y(out, true);
    detail::for_matrices(x, [&](index_t const(&o)[3]) {
      factors.be(in[1], o[1], true), y.be(out, o[2], false);
      if (factors.rows == factors.columns) {
        detail::with_few_rows(y.rows, [&](auto n) { of_few<n()>(factors, y); });
      } else if (detail::is_regular(factors.row(0), factors.pitch, y.rows)) {
        double const d = detail::inverse_transpose(factors, y);
        for (index_t i = 0; i < y.rows; ++i)
          for (index_t j = 0; j < y.rows; ++j) y(i, j) *= d;
      } else {
        a.read(in[0], o[0]);
        detail::Unfolded(a).cofactors(y);
      }
      y.write(out, o[2]);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(base, [](auto const* a, auto const* factors, auto* y) {
      constexpr int n = Step::operands.columns[0];
      detail::SmallMatrix<n, n> x{};
      if constexpr (Step::operands.rows[1] == n) {
        of_few<n>([&](int i, int j) { return factors[i * n + j]; },
                  [&](int i, int j) -> double& { return x.v[i][j]; });
      } else if (detail::is_regular(factors, n, n)) {
        for (int i = 0; i < n; ++i) x.v[i][i] = 1;
        detail::solve_small<true>(factors, x);
        double const d = detail::determinant_of_factors(factors, n, n);
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) x.v[i][j] *= d;
      } else {
        detail::Matrix all(n, n), r(n, n);
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) all(i, j) = static_cast<double>(a[i * n + j]);
        detail::Unfolded(all).cofactors(r);
        x.read(r.row(0));
      }
      x.write(y);
    });
  }

 private:
  template <int N, class A, class Y>
  static void of_few(A const& a, Y&& y) {
    double v[N][N], adjugate[N][N];
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) v[i][j] = static_cast<double>(a(i, j));
    detail::by_cofactors(v, adjugate);
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) y(i, j) = adjugate[j][i];
  }
};

/// cofactors_slope - the gradient of the sum of g times the cofactors of a: what second derivatives of determinants are
/// made of. It is linear in g, and its own transpose. Of singular matrices as exact as of others; its derivative by a
/// needs an inverse.
///
/// Math      y = |a| (<g, d> d - d g^T d) with d = a^-T, and by continuity where there is no inverse: 0 where the rank
///           is less by three
/// Shapes    a: [B..., N, N], lu(a) or a, g: [B..., N, N] -> y: [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "cofactors_slope: matrices [2, 2] do not fit right sides [3, 3]"; "inverse: the matrix is singular", of
///           third derivatives
/// Source    Magnus, Neudecker, Matrix Differential Calculus, 8.3
struct cofactors_slope : operation {
  static constexpr char const* name = "cofactors_slope";
  static constexpr Examples examples = Examples::same;
  static constexpr int arity = 3;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 7; }
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    return detail::system(name, in[0], in[2], why);
  }
  // Of <k, y>: derivatives of a determinant by a, along g and k.
  template <class V>
  static constexpr V third(V const& k, Site<V> const& s) {
    // In double, as kernels do: much of it may cancel.
    auto const as = [](V const& x, DType to) {
      return x.dtype() == to ? x : bind<cast>(Attrs{{static_cast<index_t>(to)}}, x);
    };
    if (k.dtype() != DType::f64) {
      V x[3];
      for (int i = 0; i < 3; ++i) x[i] = as(s.x[i], DType::f64);
      return as(third(as(k, DType::f64), Site<V>{x, s.y, s.attrs}), k.dtype());
    }
    V const &a = s.x[0], &factors = s.x[1], &g = s.x[2];
    V const d = detail::turned(bind<inverse>(Attrs{}, a, factors));
    auto const wide = [&](V const& x) { return bind_as<expand>(a.meta(), Attrs{}, x); };
    auto const with = [&](V const& x, V const& y) {
      return wide(sum_axes(x * y, index_t{3} << (a.shape().rank - 2)));
    };
    V const dg = detail::product(d, detail::turned(g)), dk = detail::product(d, detail::turned(k));
    V const x = detail::product(dg, d), y = detail::product(dk, d);
    V const of_g = with(g, d), of_k = with(k, d);
    V const all = (of_g * of_k - with(x, k)) * d - of_g * y - of_k * x;
    return wide(bind<determinant>(Attrs{{determinant::value}}, a, factors)) *
           (all + detail::product(dg, y) + detail::product(dk, x));
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 2) return bind<cofactors_slope>(Attrs{}, s.x[0], s.x[1], ct);
    else if constexpr (I == 1) return V{};
    else return third(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return vjp<I>(t, s);
  }
  template <int = 0>
  static void run(Attrs const&, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &in[1], &in[2], &out};
    detail::Matrix a(in[0]), factors(in[1], true), g(in[2], true), y(out, true);
    index_t const n = y.rows;
    detail::for_matrices(x, [&](index_t const(&o)[4]) {
      factors.be(in[1], o[1], true), g.be(in[2], o[2], true), y.be(out, o[3], false);
      if (n < 2) {
        y.clear();
      } else if (factors.rows != factors.columns && detail::is_regular(factors.row(0), factors.pitch, n)) {
        detail::Matrix d(n, n), t(n, n);
        double const size = detail::inverse_transpose(factors, d);
        double with = 0;
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < n; ++j) with += g(i, j) * d(i, j);
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < n; ++j) y(i, j) = size * with * d(i, j), t(i, j) = 0;
        // t = -d g^T, and y less |a| times -t d.
        detail::subtract_product(n, n, n, {d.row(0), n, 1}, {g.row(0), 1, g.pitch}, t.row(0), n);
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < n; ++j) t(i, j) *= -size;
        detail::subtract_product(n, n, n, {t.row(0), n, 1}, {d.row(0), n, 1}, y.row(0), y.pitch);
      } else {
        a.read(in[0], o[0]);
        detail::Unfolded(a).slope(g, y);
      }
      y.write(out, o[3]);
    });
  }
};

template <int I, class V>
constexpr V cofactors::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 1) return V{};
  else return bind<cofactors_slope>(Attrs{}, s.x[0], s.x[1], ct);
}

template <>
struct sized<Sized::cofactors> : std::type_identity<cofactors> {};

}  // namespace dfdx::op
