// SPDX-License-Identifier: BSL-1.0
// Singular values and vectors, and the pseudoinverse that they make.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/ops/eigh.hpp>
#include <dfdx/ops/singular.hpp>

namespace dfdx::op {

namespace detail {

// The matrix a of floating numbers, or why it is none.
template <int = 0>
constexpr Meta matrices(char const* name, Meta const& a, Text* why) {
  if (!is_floating(a.dtype)) return refuse(why, name, ": floating dtype required, got ", a.dtype);
  if (a.shape.rank < 2) return refuse(why, name, ": matrices required, got ", a.shape);
  return a;
}

/// DecomposedOf - matrices of a batch in turn, and rows [u s v] of each: s descending, or rows [s].
template <int = 0>
class DecomposedOf {
 public:
  DecomposedOf(char const* name, Operand const& a, bool with_vectors)
      : DecomposedOf(name, a, with_vectors, extent(a, 2), extent(a, 1)) {}
  index_t rows() const { return a_.rows; }
  void of(index_t offset, Matrix& y) {
    a_.read(from_, offset);
    if (!all_.of(a_, y, to_)) raise(name_, ": finite elements required");
  }

 private:
  DecomposedOf(char const* name, Operand const& a, bool with_vectors, index_t m, index_t n)
      : name_(name),
        from_(m >= n ? turned(a) : a),
        a_(from_),
        all_(a_.rows, a_.columns, with_vectors, a.meta.dtype == DType::f64),
        to_(!with_vectors ? Singular::Places{0, 0, 0}
            : m >= n      ? Singular::Places{0, m, m + 1}
                          : Singular::Places{m + 1, m, 0}) {}
  static index_t extent(Operand const& x, int from_end) { return x.meta.shape[x.meta.shape.rank - from_end]; }

  char const* name_;
  Operand from_;
  Matrix a_;
  Singular all_;
  Singular::Places to_;
};

}  // namespace detail

/// svd - singular values s, descending, between the vectors u and v that belong to them, which are columns, of length 1
/// and orthogonal; with attrs.i[0] = 1 the values alone. The signs of u and v together are any.
///
/// Small values are as accurate as columns over many orders of magnitude tell them; of more than a few columns of like
/// size they are accurate beside the largest, as those of LAPACK.
///
/// Where values are equal, or 0, vectors are no functions of a: derivatives leave out what the vectors of one value do
/// to each other, as those of eigh do. Gaps and values below 4 eps |s| count as there.
///
/// Math      a = u diag(s) v^T; with p = u^T da v = y + z, symmetric and not: ds = diag(p),
///           du = u (g o y + h o z) + (1 - u u^T) da v / s, dv = v (g o y - h o z) + (1 - v v^T) da^T u / s;
///           g_ij = 1 / (s_j - s_i), g_ii = 0, h_ij = 1 / (s_j + s_i)
/// Shapes    a: [B..., M, N], K = min(M, N) -> [u; s; v]: [B..., M + 1 + N, K], or s: [B..., 1, K]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "svd: finite elements required"; "svd: matrices required, got [3]"
/// Source    Townsend, Differentiating the singular value decomposition, 2016
struct svd : operation {
  static constexpr char const* name = "svd";
  static constexpr Examples examples = Examples::same;
  static constexpr int cost = 1000;
  template <int = 0>  // (as kernels: programs without linear algebra do not compile it)
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Meta m = detail::matrices(name, in[0], why);
    if (!m.valid()) return m;
    index_t &rows = m.shape[m.shape.rank - 2], &columns = m.shape[m.shape.rank - 1];
    if (rows < 0 || columns < 0) return refuse(why, name, ": known extents required, got ", m.shape);
    index_t const all = rows + 1 + columns;
    columns = std::min(rows, columns);
    rows = is_values(a) ? 1 : all;
    return m;
  }
  template <int = 0>
  static constexpr bool is_values(Attrs const& a) {
    return a.i[0] == 1;
  }
  /// Parts - of a result or what stands for one; s is repeated in so many rows.
  template <class V>
  struct Parts {
    V y;
    index_t m, n, k;
    constexpr Parts(V const& all, Shape const& a)
        : y(all), m(a[a.rank - 2]), n(a[a.rank - 1]), k(std::min(m, n)) {}
    constexpr V u() const { return slice_axis(y, y.shape().rank - 2, 0, m); }
    constexpr V v() const { return slice_axis(y, y.shape().rank - 2, m + 1, n); }
    constexpr V row() const { return slice_axis(y, y.shape().rank - 2, m, 1); }
    constexpr V s(index_t rows) const { return eigh::repeated(row(), rows); }
  };
  // x / s for the columns of x.
  template <class V>
  static constexpr V over(V const& x, V const& s) {
    return x * eigh::repeated(detail::reciprocal_beside(s, s), x.shape()[x.shape().rank - 2]);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& site) {
    using detail::product, detail::turned;
    Shape const& a = site.x[0].shape();
    if (is_values(site.attrs)) {
      Parts<V> const f(bind<svd>(Attrs{}, site.x[0]), a);
      return product(f.u() * eigh::repeated(ct, f.m), turned(f.v()));
    }
    Parts<V> const f(site.y, a), d(ct, a);
    V const u = f.u(), v = f.v(), s = f.s(f.k), du = d.u(), dv = d.v();
    V const pu = product(turned(u), du), pv = product(turned(v), dv);
    V const y = detail::reciprocal_beside(s - turned(s), s) * (pu + pv);
    V const z = detail::reciprocal_beside(s + turned(s), s) * (pu - pv);
    V const p = (y + turned(y) + z - turned(z)) * 0.5 + tril(triu(d.s(f.k), 0), 0);
    V left = product(u, p);
    if (f.m > f.k) left = left + over(du - product(u, pu), f.row());
    V const r = product(left, turned(v));
    return f.n > f.k ? r + product(u, turned(over(dv - product(v, pv), f.row()))) : r;
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& site) {
    using detail::product, detail::turned;
    Shape const& a = site.x[0].shape();
    bool const alone = is_values(site.attrs);
    Parts<V> const f(alone ? bind<svd>(Attrs{}, site.x[0]) : site.y, a);
    V const u = f.u(), v = f.v(), tv = product(t, v);
    int const rows = a.rank - 2;
    if (alone) return sum_axes(u * tv, index_t{1} << rows);
    V const p = product(turned(u), tv), s = f.s(f.k);
    V const y = detail::reciprocal_beside(s - turned(s), s) * ((p + turned(p)) * 0.5);
    V const z = detail::reciprocal_beside(s + turned(s), s) * ((p - turned(p)) * 0.5);
    V du = product(u, y + z), dv = product(v, y - z);
    if (f.m > f.k) du = du + over(tv - product(u, p), f.row());
    if (f.n > f.k) dv = dv + over(product(turned(t), u) - product(v, turned(p)), f.row());
    V const ds = sum_axes(tril(triu(p, 0), 0), index_t{1} << rows);
    return bind<concat>(Attrs{{rows}}, bind<concat>(Attrs{{rows}}, du, ds), dv);
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    Operand const to = detail::turned(out);
    detail::DecomposedOf<> all(name, in[0], !is_values(at));
    detail::Matrix y(to);
    detail::for_matrices(x, [&](index_t const(&o)[2]) { all.of(o[0], y), y.write(to, o[1]); });
  }
};

/// pinv - the pseudoinverse of Moore and Penrose. Singular values up to attrs.f[0] times the largest count as 0, if
/// that is negative up to max(M, N) eps times it; derivatives need a rank that stays.
///
/// Math      p = v diag(1 / s) u^T; dp = -p da p + p p^T da^T (1 - a p) + (1 - p a) da^T p^T p
/// Shapes    a: [B..., M, N] -> [B..., N, M]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "pinv: finite elements required"; "pinv: matrices required, got [3]"
/// Source    Golub, Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
///           variables separate, 1973
struct pinv : operation {
  static constexpr char const* name = "pinv";
  static constexpr Examples examples = Examples::same;
  static constexpr int cost = 1000;
  template <int = 0>
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta m = detail::matrices(name, in[0], why);
    if (m.valid()) std::swap(m.shape[m.shape.rank - 2], m.shape[m.shape.rank - 1]);
    return m;
  }
  // Whether a has more columns than rows: then rules are those of the transposes, whose products are small.
  template <class V>
  static constexpr bool wide(V const& a) {
    Shape const& s = a.shape();
    return s[s.rank - 2] >= 0 && s[s.rank - 2] < s[s.rank - 1];
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    using detail::turned;
    if (wide(s.x[0])) return turned(pulled_back(turned(s.x[0]), turned(s.y), turned(ct)));
    return pulled_back(s.x[0], s.y, ct);
  }
  template <class V>
  static constexpr V pulled_back(V const& a, V const& p, V const& ct) {
    using detail::product, detail::turned;
    V const pt = turned(p), m = product(ct, pt);
    V const one = product(turned(ct), product(p, pt)), other = product(pt, turned(m));
    return one - product(a, product(p, one)) + other - product(other, product(p, a)) - product(pt, m);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    using detail::turned;
    if (wide(s.x[0])) return turned(pushed(turned(s.x[0]), turned(s.y), turned(t)));
    return pushed(s.x[0], s.y, t);
  }
  template <class V>
  static constexpr V pushed(V const& a, V const& p, V const& t) {
    using detail::product, detail::turned;
    V const tt = turned(t), pt = turned(p), one = tt - product(product(tt, a), p);
    V const other = product(product(tt, pt), p);
    return product(product(p, pt), one) + other - product(product(p, a), other) - product(product(p, t), p);
  }
  template <int = 0>
  static void run(Attrs const& at, Operand const* in, Operand const& out) {
    Operand const* const x[] = {&in[0], &out};
    Shape const& s = in[0].meta.shape;
    index_t const m = s[s.rank - 2], n = s[s.rank - 1];
    double const part =
        at.f[0] < 0 ? static_cast<double>(std::max(m, n)) * detail::epsilon_of(out.meta.dtype) : at.f[0];
    detail::DecomposedOf<> all(name, in[0], true);
    detail::Matrix f(all.rows(), m + 1 + n), y(out);
    detail::for_matrices(x, [&](index_t const(&o)[2]) {
      all.of(o[0], f);
      index_t rank = 0;
      for (; rank < f.rows && f(rank, m) > part * f(0, m); ++rank)
        detail::divide_row(f.row(rank), -f(rank, m), m);
      y.clear();
      if (rank > 0)
        detail::subtract_product(n, m, rank, {f.row(0) + m + 1, 1, f.pitch}, {f.row(0), f.pitch, 1}, y.row(0),
                                 y.pitch);
      y.write(out, o[1]);
    });
  }
};

}  // namespace dfdx::op
