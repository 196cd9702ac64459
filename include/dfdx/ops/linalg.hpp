// SPDX-License-Identifier: BSL-1.0
// Triangular systems, and factorisations into triangular matrices, of batches of small matrices: plain loops in double,
// whatever the dtype. Not fused: each has its own kernel here.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/ops/adjugate.hpp>
#include <dfdx/ops/join.hpp>
#include <dfdx/ops/lu.hpp>
#include <dfdx/ops/reflections.hpp>

namespace dfdx::op {

/// solve_triangular - x for which a x = b, a lower triangular, or with attrs.i[0] = 1 upper; the other half of a is not
/// looked at.
///
/// Math      x = a^-1 b; db = a^-T dx, da = -db x^T, of which the triangle counts
/// Shapes    a: [B..., N, N], b: [B..., N, K] -> x: [B..., N, K]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "solve_triangular: matrices [2, 2] do not fit right sides [3, 1]"
/// Source    Giles, Collected matrix derivative results for forward and reverse mode AD, 2008
struct solve_triangular : operation {
  static constexpr char const* name = "solve_triangular";
  static constexpr Examples examples = Examples::same;
  static constexpr int arity = 2;
  static constexpr Sized sized = Sized::solve_triangular;
  static constexpr int cost = 1000;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    return detail::system(name, in[0], in[1], why);
  }
  template <class V>
  static constexpr V triangle(V const& x, Attrs const& a) {
    return a.i[0] != 0 ? triu(x, 0) : tril(x, 0);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    V const d = once(
        s, [&] { return bind<solve_triangular>(Attrs{{1 - s.attrs.i[0]}}, detail::turned(s.x[0]), ct); });
    if constexpr (I == 1) return d;
    else return triangle(-detail::product(d, detail::turned(s.y)), s.attrs);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 1) return bind<solve_triangular>(s.attrs, s.x[0], t);
    else return -bind<solve_triangular>(s.attrs, s.x[0], detail::product(triangle(t, s.attrs), s.y));
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    // As its matrices lie.
    bool const turned = detail::is_turned(in[0]), upper = (at.i[0] != 0) != turned;
    Operand const given = turned ? detail::turned(in[0]) : in[0];
    Operand const* const x[] = {&given, &in[1], &out};
    detail::Matrix b(out, true);
    if (b.columns == 1 && given.meta.dtype == DType::f32 && given.strides[given.strides.rank - 1] == 1) {
      // Each number is looked at once: it is made a double then.
      auto const* const all = static_cast<float const*>(given.data);
      index_t const pitch = given.strides[given.strides.rank - 2];
      return detail::for_matrices(x, [&](index_t const(&o)[3]) {
        b.be(out, o[2], false), b.read(in[1], o[1]);
        detail::substitute_vector(detail::Triangle<float>{all + o[0], pitch, upper, false, turned}, b.rows,
                                  b.row(0));
        b.write(out, o[2]);
      });
    }
    detail::Matrix a(given, true);
    detail::for_matrices(x, [&](index_t const(&o)[3]) {
      a.be(given, o[0], true);
      b.be(out, o[2], false), b.read(in[1], o[1]);
      detail::substitute({a.row(0), a.pitch, upper, false, turned}, b.rows, b.row(0), b.pitch, b.columns);
      b.write(out, o[2]);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(base, [](auto const* a, auto const* b, auto* y) {
      detail::SmallMatrix<Step::operands.rows[2], Step::operands.columns[2]> x;
      x.read(b);
      detail::substitute_small<Step::attrs.i[0] != 0, false, false>(a, x);
      x.write(y);
    });
  }
};

/// cholesky - the lower triangular l with l l^T = a, of which the lower triangle is looked at.
///
/// Math      a = l l^T; da = l^-T phi(l^T dl) l^-1, made symmetric; phi: the lower triangle, half the diagonal
/// Shapes    a: [B..., N, N] -> l: [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "cholesky: the matrix is not positive definite"
/// Source    Murray, Differentiation of the Cholesky decomposition, 2016
struct cholesky : operation {
  static constexpr char const* name = "cholesky";
  static constexpr Examples examples = Examples::same;
  static constexpr Sized sized = Sized::cholesky;
  static constexpr int cost = 1000;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    return detail::square_matrices(name, in[0], why);
  }
  template <class V>
  static constexpr V phi(V const& x) {
    return (tril(x, 0) + tril(x, -1)) * 0.5;
  }
  template <class V>
  static constexpr V solved(V const& l, V const& b, bool upper) {
    return bind<solve_triangular>(Attrs{{upper}}, upper ? detail::turned(l) : l, b);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    V const p = phi(detail::product(detail::turned(s.y), tril(ct, 0)));
    // l^-T p l^-1 = (l^-T (l^-T p)^T)^T
    V const m = detail::turned(solved(s.y, detail::turned(solved(s.y, p, true)), true));
    return (m + detail::turned(m)) * 0.5;
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    V const symmetric = (t + detail::turned(t)) * 0.5;
    V const m = solved(s.y, detail::turned(solved(s.y, symmetric, false)), false);
    return detail::product(s.y, phi(m));
  }
  template <int = 0>
  static void run(Attrs const&, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    // By rows of the transpose, which is copied.
    Operand const from = detail::turned(in[0]), to = detail::turned(out);
    if (out.meta.shape[out.meta.shape.rank - 1] <= detail::most_by_cofactors) return run_small(in[0], out);
    detail::Matrix a(from, detail::Matrix::Whole{});
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      a.read(from, o[0]);
      if (!detail::factorize_definite(a.row(0), a.pitch, a.rows)) raise(not_definite);
      for (index_t i = 0; i < a.rows; ++i) std::fill_n(a.row(i), i, 0.0);
      a.write(to, o[1]);
    });
  }
  template <int = 0>
  static void run_small(Operand const& in, Operand const& out) {
    Operand const* const x[] = {&in, &out};
    detail::Matrix a(in), y(out, true);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      a.read(in, o[0]), y.be(out, o[1], false);
      detail::with_few_rows(a.rows, [&](auto n) {
        double l[n() * n()];
        if (!detail::cholesky_small<n()>(a.row(0), l)) raise(not_definite);
        for (int i = 0; i < n(); ++i) std::copy_n(l + i * n(), n(), y.row(i));
      });
      y.write(out, o[1]);
    });
  }
  template <class Step>
  static void run_sized(void* const* base) {
    detail::for_small<Step>(base, [](auto const* a, auto* y) {
      if (!detail::cholesky_small<Step::operands.columns[0]>(a, y)) raise(not_definite);
    });
  }
  static constexpr char const* not_definite = "cholesky: the matrix is not positive definite";
};

/// qr - an orthogonal q and an upper triangular r with q r = a, r below q, by reflections; with attrs.i[0] = 1 q alone,
/// of as many rows as there are when it is called.
///
/// Math      da = (dq + q sym(r dr^T - dq^T q)) r^-T, sym: the lower triangle and its mirror image
/// Shapes    a: [B..., M, N] with M >= N -> [q; r]: [B..., M + N, N], or q: [B..., M, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "qr: matrices with at least as many rows as columns required, got [2, 3]"
/// Source    Walter, Lehmann, Lamour, On evaluating higher-order derivatives of the QR decomposition, 2012
struct qr : operation {
  static constexpr char const* name = "qr";
  static constexpr Examples examples = Examples::same;
  static constexpr int cost = 1000;
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Meta m = in[0];
    int const r = m.shape.rank;
    if (r < 2 || m.shape[r - 1] < 0 || !(m.shape[r - 2] >= m.shape[r - 1] || (is_q(a) && m.shape[r - 2] < 0)))
      return refuse(why, name, too_wide, m.shape);
    if (!is_floating(m.dtype)) return refuse(why, name, ": floating dtype required, got ", m.dtype);
    if (!is_q(a)) m.shape[r - 2] += m.shape[r - 1];
    return m;
  }
  template <int = 0>
  static constexpr bool is_q(Attrs const& a) {
    return a.i[0] == 1;
  }
  template <class V>
  static constexpr V q_of(V const& y) {
    Shape const s = y.shape();
    return slice_axis(y, s.rank - 2, 0, s[s.rank - 2] - s[s.rank - 1]);
  }
  template <class V>
  static constexpr V r_of(V const& y) {
    Shape const s = y.shape();
    return slice_axis(y, s.rank - 2, s[s.rank - 2] - s[s.rank - 1], s[s.rank - 1]);
  }
  // x r^-1, or x r^-T.
  template <class V>
  static constexpr V over(V const& x, V const& r, bool transposed) {
    V const left = transposed ? r : detail::turned(r);
    return detail::turned(bind<solve_triangular>(Attrs{{transposed}}, left, detail::turned(x)));
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if (is_q(s.attrs)) return pulled_back(s.y, r_beside(s), ct, -detail::product(detail::turned(ct), s.y));
    V const q = q_of(s.y), r = r_of(s.y), dq = q_of(ct), dr = triu(r_of(ct), 0);
    return pulled_back(q, r, dq,
                       detail::product(r, detail::turned(dr)) - detail::product(detail::turned(dq), q));
  }
  // r where there is q alone.
  template <class V>
  static constexpr V r_beside(Site<V> const& s) {
    return triu(detail::product(detail::turned(s.y), s.x[0]), 0);
  }
  template <class V>
  static constexpr V pulled_back(V const& q, V const& r, V const& dq, V const& m) {
    V const both = tril(m, 0) + detail::turned(tril(m, -1));
    return over(dq + detail::product(q, both), r, true);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    bool const alone = is_q(s.attrs);
    V const q = alone ? s.y : q_of(s.y), r = alone ? r_beside(s) : r_of(s.y), d = over(t, r, false);
    V const c = detail::product(detail::turned(q), d);
    V const low = tril(c, -1), turn = low - detail::turned(low);
    V const dq = detail::product(q, turn) + d - detail::product(q, c);
    if (alone) return dq;
    int const rows = s.y.shape().rank - 2;
    return bind<concat>(Attrs{{rows}}, dq, detail::product(c - turn, r));
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    Operand const from = detail::turned(in[0]), to = detail::turned(out);
    using detail::Matrix;
    index_t const m = from.meta.shape[from.meta.shape.rank - 1], n = to.meta.shape[to.meta.shape.rank - 2];
    if (m < n) raise(name, too_wide, in[0].meta.shape);
    bool const with_r = !is_q(at), is_wide = out.meta.dtype == DType::f64;
    detail::Reflections all(m, n);
    if (n <= detail::Reflections::panel) {
      Matrix a(in[0], Matrix::Whole{}), y(out, Matrix::Whole{});
      return detail::for_matrices(x, [&](index_t const(&o)[2]) {
        a.read(in[0], o[0]);
        double const scale = is_wide ? detail::scaled_for_squares(a) : 1;
        all.make(a, 0, m);
        y.clear();
        for (index_t i = 0; with_r && i < n; ++i) {
          std::copy(a.row(i) + i, a.row(i) + n, y.row(m + i) + i);
          if (scale != 1) detail::divide_row(y.row(m + i), 1 / scale, n);
        }
        all.orthogonal_panel(y);
        y.write(out, o[1]);
      });
    }
    // By columns: rows of the transposes.
    Matrix a(from), y(to);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      a.read(from, o[0]);
      double const scale = is_wide ? detail::scaled_for_squares(a) : 1;
      all.triangulate(a);
      y.clear();
      for (index_t i = 0; with_r && i < n; ++i) {
        std::copy_n(a.row(i), i + 1, y.row(i) + m);
        if (scale != 1) detail::divide_row(y.row(i) + m, 1 / scale, i + 1);
      }
      all.orthogonal(y);
      y.write(to, o[1]);
    });
  }

 private:
  static constexpr char const* too_wide = ": matrices with at least as many rows as columns required, got ";
};

template <>
struct sized<Sized::solve_triangular> : std::type_identity<solve_triangular> {};
template <>
struct sized<Sized::cholesky> : std::type_identity<cholesky> {};

}  // namespace dfdx::op
