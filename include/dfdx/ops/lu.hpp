// SPDX-License-Identifier: BSL-1.0
// Linear systems, inverses and determinants of batches of small matrices, by factors that they share: plain loops in
// double, whatever the dtype. Not fused: each has its own kernel here.
#pragma once

#include <cmath>
#include <type_traits>

#include <dfdx/ops/eliminate.hpp>
#include <dfdx/ops/matmul.hpp>
#include <dfdx/ops/reduce.hpp>
#include <dfdx/ops/sized.hpp>
#include <dfdx/ops/small_matrices.hpp>

namespace dfdx::op {

namespace detail {

constexpr Meta square_matrices(char const* name, Meta const& a, Text* why) {
  Shape const& s = a.shape;
  if (s.rank < 2 || !extents_agree(s[s.rank - 1], s[s.rank - 2]))
    return refuse(why, name, ": square matrices required, got ", s);
  if (!is_floating(a.dtype)) return refuse(why, name, ": floating dtype required, got ", a.dtype);
  return a;
}

// Of a x = b.
constexpr Meta system(char const* name, Meta const& a, Meta const& b, Text* why) {
  if (!square_matrices(name, a, why).valid()) return refuse(nullptr);
  bool fits = a.shape.rank == b.shape.rank && a.dtype == b.dtype;
  for (int i = 0; fits && i + 1 < a.shape.rank; ++i) fits = extents_agree(a.shape[i], b.shape[i]);
  return fits ? b : refuse(why, name, ": matrices ", a.shape, " do not fit right sides ", b.shape);
}

template <class V>
constexpr V product(V const& x, V const& y) {
  return bind<matmul>(Attrs{}, x, y);
}
template <class V>
constexpr V turned(V const& x) {
  return matmul::swap_last(x);
}

}  // namespace detail

/// lu - the factors of matrices that solve, inverse and determinant share: l - 1 + u of p a = l u, and in row N of p
/// for each k the row that row k was exchanged with at step k; what is behind has no meaning. It has no derivative of
/// its own: those that use it have the matrices as an operand too, and that carries theirs.
///
/// Math      p a = l u, l lower triangular with ones on its diagonal, u upper triangular
/// Shapes    a: [B..., N, N] -> [B..., 2 N, N]
/// Dtypes    f32 f64 f16 bf16 -> f64
/// Errors    "lu: square matrices required, got [2, 3]"
/// Source    Golub, Van Loan, Matrix Computations, 3.4
struct lu : operation {
  static constexpr char const* name = "lu";
  static constexpr Examples examples = Examples::same;
  static constexpr Sized sized = Sized::lu;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta r = detail::square_matrices(name, in[0], why);
    if (!r.valid()) return r;
    index_t& rows = r.shape[r.shape.rank - 2];
    return rows = extent::mul(2, rows), r.dtype = DType::f64, r;
  }
  template <int = 0>
  static void run(Attrs const&, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    detail::Matrix a(out, true);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      a.be(out, o[1], false), a.read(in[0], o[0]);
      bool done = false;
      if (a.pitch == a.columns)
        detail::with_few_rows(a.columns, [&](auto n) {
          done = true;
          detail::factorize_small<n()>(a.row(0), a.row(0));
        });
      if (!done) detail::factorize(a);
      a.write(out, o[1], a.columns + 1);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(
        base, [](auto const* a, double* y) { detail::factorize_small<Step::operands.columns[0]>(a, y); });
  }
};

/// solve - x for which a x = b, or with attrs.i[0] = 1 a^T x = b, by lu(a).
///
/// Math      x = a^-1 b; db = a^-T dx, da = -db x^T; of the transpose: x = a^-T b, db = a^-1 dx, da = -x db^T
/// Shapes    a: [B..., N, N], lu(a), b: [B..., N, K] -> x: [B..., N, K]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "solve: the matrix is singular"
/// Source    Giles, Collected matrix derivative results for forward and reverse mode AD, 2008
struct solve : operation {
  static constexpr char const* name = "solve";
  static constexpr Examples examples = Examples::same;
  static constexpr int arity = 3;
  static constexpr Sized sized = Sized::solve;
  static constexpr int cost = 1000;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    return detail::system(name, in[0], in[2], why);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    bool const transposed = s.attrs.i[0] != 0;
    V const d = once(s, [&] { return bind<solve>(Attrs{{!transposed}}, s.x[0], s.x[1], ct); });
    if constexpr (I == 2) return d;
    else if constexpr (I == 1) return V{};
    else if (transposed) return -detail::product(s.y, detail::turned(d));
    else return -detail::product(d, detail::turned(s.y));
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 2) return bind<solve>(s.attrs, s.x[0], s.x[1], t);
    else if constexpr (I == 1) return V{};
    else
      return -bind<solve>(s.attrs, s.x[0], s.x[1],
                          detail::product(s.attrs.i[0] != 0 ? detail::turned(t) : t, s.y));
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[1], &in[2], &out};
    detail::Matrix factors(in[1], true), b(out, true);
    detail::for_matrices(x, [&](index_t const(&o)[3]) {
      factors.be(in[1], o[0], true);
      b.be(out, o[2], false), b.read(in[2], o[1]);
      bool done = false, solved = false;
      if (b.columns == 1 && factors.pitch == factors.columns && b.pitch == 1)
        detail::with_few_rows(b.rows, [&](auto n) {
          detail::SmallMatrix<n(), 1> small;
          small.read(b.row(0));
          solved = at.i[0] != 0 ? detail::solve_small<true>(factors.row(0), small)
                                : detail::solve_small<false>(factors.row(0), small);
          small.write(b.row(0)), done = true;
        });
      if (!done) solved = detail::solve_factorized(factors, b, at.i[0] != 0);
      if (!solved) raise("solve: the matrix is singular");
      b.write(out, o[2]);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(base, [](auto const*, double const* factors, auto const* b, auto* y) {
      detail::SmallMatrix<Step::operands.rows[3], Step::operands.columns[3]> x;
      x.read(b);
      constexpr bool transposed = Step::attrs.i[0] != 0;
      if (!detail::solve_small<transposed>(factors, x)) raise("solve: the matrix is singular");
      x.write(y);
    });
  }
};

/// inverse - the inverse matrices, by lu(a), or by cofactors of up to four rows if a stands there again.
///
/// Math      y = a^-1; da = -y^T dy y^T
/// Shapes    a: [B..., N, N], lu(a) or a -> y: [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "inverse: the matrix is singular"
/// Source    Giles 2008
struct inverse : operation {
  static constexpr char const* name = "inverse";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::same;
  static constexpr int arity = 2;
  static constexpr Sized sized = Sized::inverse;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 1u << max_arity; }
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    return detail::square_matrices(detail::called(a, name), in[0], why);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 1) return V{};
    else return -detail::product(detail::product(detail::turned(s.y), ct), detail::turned(s.y));
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 1) return V{};
    else return -detail::product(detail::product(s.y, t), s.y);
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[1], &out};
    detail::Matrix factors(in[1], true), y(out, true);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      factors.be(in[1], o[0], true), y.be(out, o[1], false);
      bool exists = true;
      if (factors.rows == factors.columns) {
        detail::with_few_rows(y.rows, [&](auto n) {
          detail::SmallMatrix<n(), n()> small;
          exists = detail::invert_small<n()>(factors, small);
          for (int i = 0; i < n(); ++i)
            for (int j = 0; j < n(); ++j) y(i, j) = small.v[i][j];
        });
      } else {
        y.clear();
        for (index_t i = 0; i < y.rows; ++i) y(i, i) = 1;
        exists = detail::solve_factorized(factors, y, false);
      }
      if (!exists) raise(detail::called(at, name), ": the matrix is singular");
      y.write(out, o[1]);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(base, [](auto const*, auto const* factors, auto* y) {
      constexpr int n = Step::operands.columns[0];
      detail::SmallMatrix<n, n> x{};
      bool exists = true;
      if constexpr (Step::operands.rows[1] == n) {
        exists = detail::invert_small<n>([&](int i, int j) { return factors[i * n + j]; }, x);
      } else {
        for (int i = 0; i < n; ++i) x.v[i][i] = 1;
        exists = detail::solve_small<false>(factors, x);
      }
      if (!exists) raise(detail::called(Step::attrs, name), ": the matrix is singular");
      x.write(y);
    });
  }
};

struct cofactors;

/// determinant - of matrices, by lu(a), or by cofactors of up to four rows if a stands there again; with attrs.i[0] = 1
/// the logarithm of its absolute value, with 2 its sign, by lu(a).
///
/// Math      y = |a|, da = cofactors(a) dy; y = log ||a||, da = a^-T dy; the sign has no gradient. Of a singular matrix
///           0, -infinity, which has no gradient, and 0
/// Shapes    a: [B..., N, N], lu(a) or a -> y: [B..., 1, 1]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "determinant: square matrices required, got [2, 3]"
/// Source    Giles 2008
struct determinant : operation {
  static constexpr char const* name = "determinant";
  static constexpr Examples examples = Examples::same;
  static constexpr int arity = 2;
  static constexpr Sized sized = Sized::determinant;
  static constexpr int cost = 1000;
  static constexpr index_t value = 0, logarithm = 1, sign = 2;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta r = detail::square_matrices(name, in[0], why);
    if (r.valid()) r.shape[r.shape.rank - 1] = r.shape[r.shape.rank - 2] = 1;
    return r;
  }
  // Cofactors, or a^-T.
  template <class V>
  static constexpr V slope(Site<V> const& s) {
    if (s.attrs.i[0] == value) return bind<cofactors>(Attrs{}, s.x[0], s.x[1]);
    return detail::turned(bind<inverse>(Attrs{}, s.x[0], s.x[1]));
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if (I == 1 || s.attrs.i[0] == sign) return V{};
    return bind_as<expand>(s.x[0].meta(), Attrs{}, ct) * slope(s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if (I == 1 || s.attrs.i[0] == sign) return V{};
    return sum_axes(t * slope(s), index_t{3} << (t.shape().rank - 2));
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[1], &out};
    detail::Matrix factors(in[1], true);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      factors.be(in[1], o[0], true);
      double y = 1;
      if (factors.rows != factors.columns) y = of(factors.row(0), factors.pitch, factors.columns, at.i[0]);
      else detail::with_few_rows(factors.rows, [&](auto n) { y = detail::determinant_small<n()>(factors); });
      write_real(out, o[1], y);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(base, [](auto const*, auto const* factors, auto* y) {
      constexpr int n = Step::operands.columns[0];
      using T = std::remove_reference_t<decltype(*y)>;
      if constexpr (Step::operands.rows[1] == n)
        *y = static_cast<T>(detail::determinant_small<n>([&](int i, int j) { return factors[i * n + j]; }));
      else *y = static_cast<T>(of(factors, n, n, Step::attrs.i[0]));
    });
  }

 private:
  template <int = 0>
  static double of(double const* factors, index_t pitch, index_t n, index_t what) {
    if (what == value) return detail::determinant_of_factors(factors, pitch, n);
    double logarithms = 0, turn = 1;
    for (index_t i = 0; i < n; ++i) {
      double const u = factors[i * pitch + i];
      if (factors[n * pitch + i] != static_cast<double>(i)) turn = -turn;
      turn = u == 0 ? 0 : u < 0 ? -turn : turn;
      if (what == logarithm) logarithms += std::log(std::fabs(u));
    }
    return what == logarithm ? logarithms : turn;
  }
};

template <>
struct sized<Sized::lu> : std::type_identity<lu> {};
template <>
struct sized<Sized::solve> : std::type_identity<solve> {};
template <>
struct sized<Sized::inverse> : std::type_identity<inverse> {};
template <>
struct sized<Sized::determinant> : std::type_identity<determinant> {};

}  // namespace dfdx::op
