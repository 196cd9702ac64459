// SPDX-License-Identifier: BSL-1.0
// Eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include <dfdx/ops/eigen.hpp>
#include <dfdx/ops/linalg.hpp>

namespace dfdx::op {

namespace detail {

/// epsilon_of - what 1 differs by from the next number.
template <int = 0>
constexpr double epsilon_of(DType d) {
  return d == DType::f64 ? 0x1p-52 : d == DType::f32 ? 0x1p-23 : d == DType::f16 ? 0x1p-10 : 0x1p-7;
}
/// reciprocal_beside - 1 / d, but where |d| is below e = 4 eps |l|, |l| the length of a row of l: d / e^2 there.
template <class V>
constexpr V reciprocal_beside(V const& d, V const& l) {
  bool const wide = l.dtype() == DType::f64;
  double const eps = 4 * epsilon_of(l.dtype());
  double const least = wide ? 1e-290 : l.dtype() == DType::f16 ? 1e-6 : 1e-36;
  V const all = sum_axes(l * l, index_t{1} << (l.shape().rank - 1)) * (eps * eps) + least;
  return d / bind<maximum>(Attrs{}, d * d, bind_as<expand>(d.meta(), Attrs{}, all));
}

}  // namespace detail

/// eigh - the eigenvalues l of symmetric matrices, ascending, below the eigenvectors q, which are columns, of length 1
/// and orthogonal; the lower triangle of a is looked at. A vector's sign is any. With attrs.i[0] = 1 the values alone.
///
/// Where eigenvalues are equal, vectors are no functions of a: derivatives leave out what the vectors of one value do
/// to each other. That is right of functions of the values that do not tell equal ones apart; others may have none.
/// Gaps d below 4 eps |l| count as d / (4 eps |l|)^2 in place of 1 / d, |l| the length of all.
///
/// Math      a = q diag(l) q^T; da = q (diag(dl) + f o (q^T dq)) q^T, made symmetric; f_ij = 1 / (l_j - l_i), f_ii = 0
/// Shapes    a: [B..., N, N] -> [q; l]: [B..., N + 1, N], or l: [B..., 1, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "eigh: no eigenvalues were found: is there a NaN?"; "eigh: square matrices required, got [2, 3]"
/// Source    Giles, Collected matrix derivative results for forward and reverse mode AD, 2008
struct eigh : operation {
  static constexpr char const* name = "eigh";
  static constexpr Examples examples = Examples::same;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int) { return 1u | 1u << max_arity; }  // a, of the values alone
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const& at, Meta const* in, Text* why) {
    Meta m = detail::square_matrices(name, in[0], why);
    if (!m.valid()) return m;
    int const r = m.shape.rank;
    if (m.shape[r - 1] < 0) return refuse(why, name, ": known extents required, got ", m.shape);
    index_t& rows = m.shape[r - 2];
    rows = is_values(at) ? 1 : rows + 1;
    return m;
  }
  template <int = 0>
  static constexpr bool is_values(Attrs const& at) {
    return at.i[0] == 1;
  }
  template <class V>
  static constexpr V vectors_of(V const& y) {
    Shape const s = y.shape();
    return slice_axis(y, s.rank - 2, 0, s[s.rank - 1]);
  }
  // The values, repeated in each row: l_j in column j.
  template <class V>
  static constexpr V values_of(V const& y) {
    Shape const s = y.shape();
    return repeated(slice_axis(y, s.rank - 2, s[s.rank - 1], 1), s[s.rank - 1]);
  }
  template <class V>
  static constexpr V repeated(V const& row, index_t rows) {
    Shape s = row.shape();
    s[s.rank - 2] = rows;
    return bind_as<expand>(Meta{row.dtype(), s}, Attrs{}, row);
  }
  template <class V>
  static constexpr V diagonal(V const& x) {
    return tril(triu(x, 0), 0);
  }
  // f of the values.
  template <class V>
  static constexpr V gaps(V const& y) {
    V const l = values_of(y);
    return detail::reciprocal_beside(l - detail::turned(l), l);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if (is_values(s.attrs)) {
      V const q = vectors_of(bind<eigh>(Attrs{}, s.x[0]));
      return detail::product(q * repeated(ct, q.shape()[q.shape().rank - 1]), detail::turned(q));
    }
    V const q = vectors_of(s.y);
    V const m = gaps(s.y) * detail::product(detail::turned(q), vectors_of(ct)) + diagonal(values_of(ct));
    V const r = detail::product(detail::product(q, m), detail::turned(q));
    return (r + detail::turned(r)) * 0.5;
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    bool const alone = is_values(s.attrs);
    V const q = vectors_of(alone ? bind<eigh>(Attrs{}, s.x[0]) : s.y),
            tq = detail::product((t + detail::turned(t)) * 0.5, q);
    int const rows = s.y.shape().rank - 2;
    if (alone) return sum_axes(q * tq, index_t{1} << rows);
    V const m = detail::product(detail::turned(q), tq), dl = sum_axes(diagonal(m), index_t{1} << rows);
    return bind<concat>(Attrs{{rows}}, detail::product(q, gaps(s.y) * m), dl);
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    Operand const to = detail::turned(out);
    detail::Matrix a(in[0]), y(to, detail::Matrix::Whole{});
    detail::Eigen eigen(a.rows, !is_values(at));
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      a.read(in[0], o[0]);
      if (!eigen.of(a, y)) raise("eigh: no eigenvalues were found: is there a NaN?");
      y.write(to, o[1]);
    });
  }
};

}  // namespace dfdx::op
