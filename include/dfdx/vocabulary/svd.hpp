// SPDX-License-Identifier: BSL-1.0
// Singular values by PyTorch's names, and what is made of them: svd, pinv, ranks and norms of matrices.
#pragma once

#include <limits>
#include <string_view>

#include <dfdx/ops/svd.hpp>
#include <dfdx/vocabulary/linalg.hpp>
#include <dfdx/vocabulary/measure.hpp>

namespace dfdx {

namespace detail {
template <Literal Name, operand A>
constexpr auto singular_values(A const& a) {
  return squeeze<-2>(call(named<Name>(Fixed<Plain<op::svd>{Attrs{{1}}}>{}), a));
}
}  // namespace detail

/// svd(a) - u, s and vt for which u diag(s) vt = a: the singular values s, descending, and the vectors that belong to
/// them, columns of u and rows of vt, of length 1 and orthogonal (thin: no others); a tuple. svdvals(a) - s alone. The
/// signs of a column of u and a row of vt together are any.
///
/// Where values are equal, or 0, derivatives leave out what the vectors of one value do to each other: those of
/// functions of u and vt are right where values are distinct, if the functions do not depend on signs (ops/svd.hpp).
///
/// Shapes    a: [B..., M, N], K = min(M, N) -> u: [B..., M, K], s: [B..., K], vt: [B..., K, N]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "svd: finite elements required"; "svd: matrices required, got [3]"
/// Source    Townsend 2016, for the gradient; PyTorch's linalg.svd with full_matrices=False
template <operand A>
constexpr auto svd(A const& a) {
  auto const all = detail::call(detail::Fixed<detail::Plain<op::svd>{}>{}, a);
  if constexpr (refused<decltype(all)>) {
    return std::tuple(all, all, all);
  } else if constexpr (typed<A>) {
    constexpr index_t m = A::static_shape[A::static_rank - 2], n = A::static_shape[A::static_rank - 1];
    return std::tuple(slice<-2, 0, m>(all), select<-2, m>(all),
                      transpose<-2, -1>(slice<-2, m + 1, m + 1 + n>(all)));
  } else {
    index_t const m = a.shape()[a.shape().rank - 2];
    return std::tuple(slice(all, -2, 0, m), select(all, -2, m), transpose(slice(all, -2, m + 1), -2, -1));
  }
}
template <operand A>
constexpr auto svdvals(A const& a) {
  return detail::singular_values<"svdvals">(a);
}

/// pinv(a, rtol) - the pseudoinverse of Moore and Penrose: pinv(a) b is the shortest x for which the length of
/// a x - b is least. Singular values up to rtol times the largest count as 0, by default up to max(M, N) eps.
/// Derivatives need a rank that stays the same near a.
///
/// Shapes    a: [B..., M, N] -> [B..., N, M]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "pinv: finite elements required"; "pinv: matrices required, got [3]"
/// Source    Penrose 1955; Golub, Pereyra 1973, for the gradient
template <operand A>
constexpr auto pinv(A const& a, double rtol = -1) {
  return detail::call(detail::FixedType<detail::Plain<op::pinv>{}>{{}, {Attrs{{}, {rtol}}}}, a);
}

namespace detail {
template <operand S>
constexpr auto count_above(S const& s, double part) {
  return count_nonzero<-1>(s > amax<-1>(s, keepdim) * part);
}
}  // namespace detail

/// matrix_rank(a, rtol) - how many singular values are larger than rtol times the largest, by default than max(M, N)
/// eps.
///
/// Shapes    a: [B..., M, N] -> [B...]
/// Dtypes    f32 f64 f16 bf16 -> i64; computed in double
/// Errors    "matrix_rank: matrices required, got [3]"
/// Source    PyTorch's linalg.matrix_rank
template <operand A>
constexpr auto matrix_rank(A const& a, double rtol = -1) {
  auto const s = detail::singular_values<"matrix_rank">(a);
  if constexpr (refused<decltype(s)>) {
    return Refused{};
  } else {
    Shape const& shape = a.shape();
    index_t const m = shape[shape.rank - 2], n = shape[shape.rank - 1];
    double const part =
        rtol < 0 ? static_cast<double>(m < n ? n : m) * op::detail::epsilon_of(a.dtype()) : rtol;
    if constexpr (typed<A>) {
      if constexpr (decltype(s)::static_shape[decltype(s)::static_rank - 1] == 0) return count_nonzero<-1>(s);
      else return detail::count_above(s, part);
    } else {
      if (m == 0 || n == 0) return count_nonzero<-1>(s);
      return detail::count_above(s, part);
    }
  }
}

namespace detail {
inline constexpr char const* no_matrix_norm = "matrix_norm: fro, nuc, 1, -1, 2, -2 or an infinity required";
}  // namespace detail

/// matrix_norm(a, p), matrix_norm(a, name) - a norm of matrices: for p = 2 and -2 the largest and least singular value,
/// for 1 and -1 the largest and least sum of absolute values of a column, for infinities of a row; for "nuc" the sum of
/// the singular values, for "fro", which is what there is without, the root of the sum of squares.
///
/// Shapes    a: [B..., M, N] -> [B...]
/// Dtypes    f32 f64 f16 bf16; 16 bits in f32
/// Errors    "matrix_norm: fro, nuc, 1, -1, 2, -2 or an infinity required"; "matrix_norm: matrices required, got [3]"
/// Source    PyTorch's linalg.matrix_norm
template <operand A>
constexpr auto matrix_norm(A const& a, std::string_view name = "fro") {
  auto const checked = detail::call(detail::Fixed<detail::Rectangular<"matrix_norm">{}>{}, a, a);
  if constexpr (refused<decltype(checked)>) {
    return Refused{};
  } else {
    if (name == "nuc") return sum<-1>(svdvals(a));
    if (name != "fro") raise(detail::no_matrix_norm);
    return norm<-2, -1>(a);
  }
}
template <operand A>
constexpr auto matrix_norm(A const& a, double p) {
  auto const checked = detail::call(detail::Fixed<detail::Rectangular<"matrix_norm">{}>{}, a, a);
  if constexpr (refused<decltype(checked)>) {
    return Refused{};
  } else {
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (p == 2) return amax<-1>(svdvals(a));
    if (p == -2) return amin<-1>(svdvals(a));
    if (p == 1) return amax<-1>(norm<-2>(a, 1));
    if (p == -1) return amin<-1>(norm<-2>(a, 1));
    if (p == -inf) return amin<-1>(norm<-1>(a, 1));
    if (p != inf) raise(detail::no_matrix_norm);
    return amax<-1>(norm<-1>(a, 1));
  }
}

/// cond(a) - how much larger the largest singular value is than the least: what systems of a make of relative errors.
/// (For other norms it is matrix_norm(a, p) * matrix_norm(inverse(a), p).)
///
/// Shapes    a: [B..., M, N] -> [B...]
/// Dtypes    f32 f64 f16 bf16; computed in double
/// Errors    "cond: matrices required, got [3]"
/// Source    PyTorch's linalg.cond
template <operand A>
constexpr auto cond(A const& a) {
  auto const s = detail::singular_values<"cond">(a);
  if constexpr (refused<decltype(s)>) return Refused{};
  else return amax<-1>(s) / amin<-1>(s);
}

}  // namespace dfdx
