// SPDX-License-Identifier: BSL-1.0
// Linear algebra by PyTorch's names: cholesky, solve, inverse, determinants, qr, least squares; all for batches of
// matrices.
#pragma once

#include <dfdx/ops/eigh.hpp>
#include <dfdx/ops/linalg.hpp>
#include <dfdx/ops/matrix_exp.hpp>
#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/parts.hpp>
#include <dfdx/vocabulary/run_linalg.hpp>

namespace dfdx {

namespace detail {

// An op that takes what it is given.
template <class Op>
struct Plain {
  Attrs attrs{};
  constexpr Meta infer(Meta const* in, Text* why) const { return Op::infer(attrs, in, why); }
  template <class, class... V>
  constexpr auto run(Meta const& y, V const&... x) const {
    return bind_as<Op>(y, attrs, x...);
  }
};

// A system whose right side is matrices, or vectors if it has the shape of a without the last axis (PyTorch's rule);
// leading axes broadcast.
template <class Op>
struct System {
  bool upper = false;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shapes const s = shapes(in);
    if (!s.batch.valid() || (in[0].shape.rank < 2))
      return refuse(why, Op::name, ": matrices ", in[0].shape, " do not fit right sides ", in[1].shape);
    Meta r = op::detail::system(Op::name, {in[0].dtype, s.a}, {in[1].dtype, s.b}, why);
    if (r.valid() && s.vectors) --r.shape.rank;
    return r;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& a, V const& b) const {
    Meta const in[] = {a.meta(), b.meta()};
    Shapes const s = shapes(in);
    V const right = either(s.vectors, [&] { return unsqueeze(b, -1); }, [&] { return b; });
    auto const solved = [&](auto const&... matrices) {
      return reshape_to(bind<Op>(Attrs{{upper}}, matrices..., broadcast_to(right, s.b, Op::name)), y.shape);
    };
    V const wide = broadcast_to(a, s.a, Op::name);
    if constexpr (Op::arity == 2) {
      return solved(wide);
    } else {
      // Factors of what is there: as many as there are matrices, not as right sides.
      V const factors = bind<op::lu>(Attrs{}, a);
      Shape f = s.a;
      f[f.rank - 2] = factors.shape()[factors.shape().rank - 2];
      return solved(wide, broadcast_to(factors, f, Op::name));
    }
  }

 private:
  struct Shapes {
    Shape a{}, b{}, batch{};
    bool vectors = false;
  };
  static constexpr Shapes shapes(Meta const* in) {
    Shapes r{in[0].shape, in[1].shape};
    bool fits = r.b.rank == r.a.rank - 1;
    for (int i = 0; fits && i < r.b.rank; ++i) fits = op::extents_agree(r.a[i], r.b[i]);
    r.vectors = fits || r.b.rank == 1;
    if (r.vectors && r.b.rank < max_rank) r.b.push_back(1);
    Shape a = r.a, b = r.b;
    a.rank = a.rank < 2 ? 0 : a.rank - 2;
    b.rank = b.rank < 2 ? 0 : b.rank - 2;
    r.batch = op::broadcast_shapes(Op::name, a, b, nullptr);
    if (!r.batch.valid() || r.a.rank < 2 || r.b.rank < 2) return r;
    Shape const old_a = r.a, old_b = r.b;
    r.a = r.b = r.batch;
    for (int i = 2; i > 0; --i) r.a.push_back(old_a[old_a.rank - i]), r.b.push_back(old_b[old_b.rank - i]);
    return r;
  }
};

}  // namespace detail

/// cholesky(a) - the lower triangular l with l l^T = a.
///
/// Shapes    a: [B..., N, N] -> [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "cholesky: the matrix is not positive definite"
/// Source    Murray 2016, for the gradient
template <operand A>
constexpr auto cholesky(A const& a) {
  return detail::call(detail::Fixed<detail::Plain<op::cholesky>{}>{}, a);
}

/// solve(a, b) - x for which a x = b. solve_triangular(a, b, upper) - the same for a triangular matrix.
///
/// Shapes    a: [B..., N, N], b: [B..., N, K], [B..., N] or [N] -> that of b, broadcast
/// Dtypes    one: f32 f64 f16 bf16; computed in double
/// Errors    "solve: the matrix is singular"; "solve: matrices [2, 2] do not fit right sides [3, 1]"
/// Source    Giles 2008, for the gradient
template <operand A, operand B>
constexpr auto solve(A const& a, B const& b) {
  return detail::call(detail::Fixed<detail::System<op::solve>{}>{}, a, b);
}
template <operand A, operand B>
constexpr auto solve_triangular(A const& a, B const& b, bool upper = false) {
  return detail::call(detail::FixedType<detail::System<op::solve_triangular>{}>{{}, {upper}}, a, b);
}

namespace detail {
template <Literal Name, operand A>
constexpr auto factors_for(A const& a) {
  return call(named<Name>(Fixed<Plain<op::lu>{}>{}), a);
}
constexpr bool takes_cofactors(Shape const& s) {
  index_t const n = s.rank < 2 ? -1 : s[s.rank - 1];
  return n >= 0 && n <= op::detail::most_by_cofactors && s[s.rank - 2] == n;
}
// f(what inverses and determinants are made by).
template <Literal Name, operand A, class F>
constexpr auto by_factors(A const& a, F const& f) {
  if constexpr (typed<A>) {
    if constexpr (takes_cofactors(A::static_shape)) return f(a);
    else return f(factors_for<Name>(a));
  } else {
    if (takes_cofactors(a.shape())) return f(a);
    return f(factors_for<Name>(a));
  }
}
template <Literal Name, op::Caller By, operand A>
constexpr auto inverse_as(A const& a) {
  return by_factors<Name>(a, [&](auto const& factors) {
    return call(Fixed<Plain<op::inverse>{op::detail::attrs_for(By)}>{}, a, factors);
  });
}
template <Literal Name, index_t Which, operand A, operand F>
constexpr auto determinant_of(A const& a, F const& factors) {
  return squeeze<-2, -1>(call(named<Name>(Fixed<Plain<op::determinant>{Attrs{{Which}}}>{}), a, factors));
}
template <Literal Name, operand A>
constexpr auto slogdet_as(A const& a) {
  using op::determinant;
  auto const factors = factors_for<Name>(a);
  return std::tuple(determinant_of<Name, determinant::sign>(a, factors),
                    determinant_of<Name, determinant::logarithm>(a, factors));
}
}  // namespace detail

/// inverse(a), inv(a) - the inverse matrices.
///
/// Shapes    a: [B..., N, N] -> [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "inverse: square matrices required, got [2, 3]"
/// Source    Giles 2008, for the gradient
template <operand A>
constexpr auto inverse(A const& a) {
  return detail::inverse_as<"inverse", op::Caller::itself>(a);
}
template <operand A>
constexpr auto inv(A const& a) {
  return detail::inverse_as<"inv", op::Caller::inv>(a);
}

/// slogdet(a) - the sign of the determinant and the logarithm of its absolute value: a tuple. logdet(a), det(a) - the
/// logarithm of a determinant, NaN if that is negative, and the determinant itself. Derivatives need a matrix that is
/// not singular, but for the first two of det: its gradient is the matrix of cofactors, which all matrices have.
///
/// Shapes    a: [B..., N, N] -> [B...], [B...]; logdet, det: [B...]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "slogdet: square matrices required, got [2, 3]"
/// Source    Giles 2008, for the gradient
template <operand A>
constexpr auto slogdet(A const& a) {
  return detail::slogdet_as<"slogdet">(a);
}
template <operand A>
constexpr auto logdet(A const& a) {
  auto const [sign, value] = detail::slogdet_as<"logdet">(a);
  return where(sign < 0.0, std::numeric_limits<double>::quiet_NaN(), value);
}
template <operand A>
constexpr auto det(A const& a) {
  return detail::by_factors<"det">(a, [&](auto const& factors) {
    return detail::determinant_of<"det", op::determinant::value>(a, factors);
  });
}

namespace detail {
template <class A>
constexpr auto qr_of_known(A const& a) {
  auto const both = call(Fixed<Plain<op::qr>{}>{}, a);
  if constexpr (refused<decltype(both)>) {
    return std::tuple(both, both);
  } else if constexpr (typed<A>) {
    constexpr index_t m = A::static_shape[A::static_rank - 2], n = A::static_shape[A::static_rank - 1];
    return std::tuple(slice<-2, 0, m>(both), slice<-2, m, m + n>(both));
  } else {
    index_t const m = a.shape()[a.shape().rank - 2];
    return std::tuple(slice(both, -2, 0, m), slice(both, -2, m));
  }
}
// Of as many rows as a program learns when it is called: q, and what it makes of a.
template <class A>
constexpr auto qr_of_rows(A const& a) {
  auto const q = call(Fixed<Plain<op::qr>{Attrs{{1}}}>{}, a);
  if constexpr (refused<decltype(q)>) return std::tuple(q, q);
  else return std::tuple(q, triu(matmul(transpose<-2, -1>(q), a)));
}
template <class A>
constexpr auto tall_qr(A const& a) {
  if constexpr (typed<A>) {
    constexpr int rank = A::static_rank;
    if constexpr (rank >= 2 && A::static_shape[rank < 2 ? 0 : rank - 2] < 0) return qr_of_rows(a);
    else return qr_of_known(a);
  } else {
    Shape const& s = a.shape();
    return s.rank >= 2 && s[s.rank - 2] < 0 ? qr_of_rows(a) : qr_of_known(a);
  }
}
// r of what stands to the right of the first columns.
template <class T, class A, class Join>
constexpr auto wide_qr(T const& first, A const& others, Join const& join) {
  auto const& [q, r] = first;
  return std::tuple(q, join(r, matmul(transpose(q), others)));
}
}  // namespace detail

/// qr(a) - q with orthogonal columns and an upper triangular r with q r = a: a tuple. Derivatives need the first min(M,
/// N) columns to be independent.
///
/// Shapes    a: [B..., M, N], K = min(M, N) -> q: [B..., M, K], r: [B..., K, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Source    Walter, Lehmann, Lamour 2012, for the gradient
template <operand A>
constexpr auto qr(A const& a) {
  if constexpr (typed<A>) {
    constexpr int rank = A::static_rank;
    constexpr index_t m = rank < 2 ? 0 : A::static_shape[rank < 2 ? 0 : rank - 2],
                      n = rank < 2 ? 0 : A::static_shape[rank < 2 ? 0 : rank - 1];
    if constexpr (m >= 0 && m < n)
      return detail::wide_qr(detail::tall_qr(slice<-1, 0, m>(a)), slice<-1, m, n>(a),
                             [](auto const& x, auto const& y) { return concat<-1>(x, y); });
    else return detail::tall_qr(a);
  } else {
    Shape const s = a.shape();
    index_t const m = s.rank < 2 ? 0 : s[s.rank - 2], n = s.rank < 2 ? 0 : s[s.rank - 1];
    if (s.rank < 2 || m < 0 || n <= m) return detail::tall_qr(a);
    return detail::wide_qr(detail::tall_qr(slice(a, -1, 0, m)), slice(a, -1, m),
                           [](auto const& x, auto const& y) { return concat<-1>(x, y); });
  }
}

/// eigh(a) - the eigenvalues of symmetric matrices, ascending, and eigenvectors, which are columns: a tuple.
/// eigvalsh(a) - the values alone. The lower triangle of a is looked at; a vector's sign is any. Where eigenvalues are
/// equal derivatives leave out what the vectors of one value do to each other (ops/eigh.hpp).
///
/// Shapes    a: [B..., N, N] -> values: [B..., N], vectors: [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "eigh: no eigenvalues were found: is there a NaN?"; "eigh: square matrices required, got [2, 3]"
/// Source    Giles 2008, for the gradient; PyTorch's linalg.eigh
template <operand A>
constexpr auto eigh(A const& a) {
  auto const both = detail::call(detail::Fixed<detail::Plain<op::eigh>{}>{}, a);
  if constexpr (refused<decltype(both)>) {
    return std::tuple(both, both);
  } else if constexpr (typed<A>) {
    constexpr index_t n = A::static_shape[A::static_rank - 1];
    return std::tuple(select<-2, n>(both), slice<-2, 0, n>(both));
  } else {
    index_t const n = a.shape()[a.shape().rank - 1];
    return std::tuple(select(both, -2, n), slice(both, -2, 0, n));
  }
}
template <operand A>
constexpr auto eigvalsh(A const& a) {
  constexpr detail::Fixed<detail::Plain<op::eigh>{Attrs{{1}}}> values{};
  return squeeze<-2>(detail::call(detail::named<"eigvalsh">(values), a));
}

/// matrix_exp(a) - the exponentials of matrices: 1 + a + a^2 / 2! + a^3 / 3! + ...
///
/// Shapes    a: [B..., N, N] -> [B..., N, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "matrix_exp: square matrices required, got [2, 3]"
/// Source    Higham 2005; Mathias 1996, for the gradient
template <operand A>
constexpr auto matrix_exp(A const& a) {
  return detail::call(detail::Fixed<detail::Plain<op::matrix_exp>{}>{}, a);
}

namespace detail {
// The operand a, if right sides b fit it: matrices, or vectors, which have an axis less than a.
template <Literal Name>
struct Rectangular {
  static constexpr Meta infer(Meta const* in, Text* why) {
    Shape const &a = in[0].shape, &b = in[1].shape;
    if (!is_floating(in[0].dtype))
      return refuse(why, Name.text, ": floating dtype required, got ", in[0].dtype);
    if (a.rank < 2) return refuse(why, Name.text, ": matrices required, got ", a);
    bool const fits =
        (b.rank == a.rank || b.rank == a.rank - 1) && op::extents_agree(b[a.rank - 2], a[a.rank - 2]);
    if (!fits) return refuse(why, Name.text, ": matrices ", a, " do not fit right sides ", b);
    return in[0];
  }
  template <class, class V>
  static constexpr V run(Meta const&, V const& a, V const&) {
    return a;
  }
};
// Whether matrices have more columns than rows, in f(that) as a constant if the type says so.
template <class A, class F>
constexpr auto by_width(A const&, F const& f) {
  constexpr int rank = A::static_rank;
  return f(std::bool_constant<(A::static_shape[rank - 2] >= 0 &&
                               A::static_shape[rank - 2] < A::static_shape[rank - 1])>{});
}
template <class A, class F>
  requires(!typed<A>)
constexpr auto by_width(A const& a, F const& f) {
  Shape const& s = a.shape();
  if (s.rank >= 2 && s[s.rank - 2] >= 0 && s[s.rank - 2] < s[s.rank - 1]) return f(std::true_type{});
  return f(std::false_type{});
}
// (Not in the lambdas: clang would make both, for what these call does not depend on their parameters.)
template <bool Wide, operand A, operand B>
constexpr auto least_squares_by(A const& a, B const& b) {
  if constexpr (Wide) {
    auto const [q, r] = tall_qr(transpose(a));
    return matmul(q, solve_triangular(transpose(r), b));
  } else {
    auto const [q, r] = tall_qr(a);
    return solve_triangular(r, matmul(transpose(q), b), true);
  }
}
template <operand A, operand B>
constexpr auto least_squares(A const& a, B const& b) {
  return by_width(a, [&](auto is_wide) { return least_squares_by<is_wide()>(a, b); });
}
}  // namespace detail

/// lstsq(a, b) - x for which the length of a x - b is least; where a has more columns than rows, of those with a x = b
/// the shortest. The columns, or the rows, must be independent (by qr; pinv(a) b takes any matrix).
///
/// Math      a = q r: x = r^-1 q^T b; a^T = q r: x = q r^-T b
/// Shapes    a: [B..., M, N], b: [B..., M, K] or [B..., M] -> [B..., N, K] or [B..., N]
/// Dtypes    one: f32 f64 f16 bf16; 16 bits in f32
/// Errors    "lstsq: matrices [3, 2] do not fit right sides [2, 1]"
/// Source    Golub 1965; PyTorch's linalg.lstsq
template <operand A, operand B>
constexpr auto lstsq(A const& a, B const& b) {
  auto const checked = detail::call(detail::Fixed<detail::Rectangular<"lstsq">{}>{}, a, b);
  if constexpr (refused<decltype(checked)>) {
    return Refused{};
  } else {
    auto const x = detail::in_f32(checked);
    auto const y = detail::in_f32(b);
    if constexpr (typed<A> && typed<B>) {
      if constexpr (A::static_rank == B::static_rank)
        return detail::rounded_as(detail::least_squares(x, y), a);
      else return detail::rounded_as(squeeze<-1>(detail::least_squares(x, unsqueeze<-1>(y))), a);
    } else {
      if (x.shape().rank == y.shape().rank)
        return detail::rounded_as(detail::untyped(detail::least_squares(x, y)), a);
      return detail::rounded_as(detail::untyped(squeeze(detail::least_squares(x, unsqueeze(y, -1)), -1)), a);
    }
  }
}

}  // namespace dfdx
