// SPDX-License-Identifier: BSL-1.0
// Reductions made of others: norm, normalize, any, all, count_nonzero, nansum, nanmean, amax,
// amin.
#pragma once

#include <limits>

#include <dfdx/vocabulary/activation.hpp>

namespace dfdx {

namespace detail {

// |x|^p and its inverse, without the derivative's pole at 0: it counts as 0 there, as in PyTorch.
template <operand X>
constexpr auto power(X const& x, double p) {
  auto const zero = x == 0.0;
  return where(zero, zeros_as(x), pow(where(zero, ones_as(x), x), p));
}
// Whether the compiler knows that axes of x have no elements.
template <class X, class P>
inline constexpr bool is_known_empty = [] {
  if constexpr (typed<X> && is_fixed<P>) return joined(X::static_shape, P::value.mask(X::static_rank)) == 0;
  else return false;
}();
// The norm of none is 0: the branches that look for the largest or smallest would not compile.
template <Literal Name, class P, operand X>
constexpr auto norm_of_none(X const& x, double p, P const& over) {
  if (p < 0 || p == std::numeric_limits<double>::infinity())
    raise(Name.text, ": no elements in ", x.shape(), " to be the largest or smallest");
  return reduce<op::sum, Name>(x, over);
}
template <Literal Name, class P, operand X>
constexpr auto real_norm(X const& x, double p, P const& over) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (p == 2) {
    auto const s = reduce<op::sum, Name>(square(x), over);
    auto const zero = s == 0.0;
    return where(zero, zeros_as(s), sqrt(where(zero, ones_as(s), s)));
  }
  if (p == 1) return reduce<op::sum, Name>(abs(x), over);
  if (p == inf) return extreme<op::max, Name>(abs(x), over);
  if (p == -inf) return extreme<op::min, Name>(abs(x), over);
  if (p == 0) return reduce<op::sum, Name>(where(x != 0.0, ones_as(x), zeros_as(x)), over);
  if (p < 0) {
    // Beside an element of 0 nothing matters: the norm is 0, and its gradient counts as 0.
    auto const zero = reduce<op::min, Name>(abs(x), kept(over)) == 0.0;
    auto const y = pow(reduce<op::sum, Name>(pow(where(zero, ones_as(x), abs(x)), p), kept(over)), 1 / p);
    return reduce<op::sum, Name>(where(zero, zeros_as(y), y), over);
  }
  return power(reduce<op::sum, Name>(power(abs(x), p), over), 1 / p);
}
template <Literal Name = "norm", class P, operand X>
constexpr auto norm_over(X const& x, double p, P const& over) {
  auto const checked = having<Name>(floating<Name>(x), over);
  if constexpr (refused<decltype(checked)>) return Refused{};
  else if constexpr (is_known_empty<X, P>) return rounded_as(norm_of_none<Name>(in_f32(checked), p, over), x);
  else return rounded_as(real_norm<Name>(in_f32(checked), p, over), x);
}
template <Literal Name = "count_nonzero", class P, operand X>
constexpr auto count_over(X const& x, P const& over) {
  return reduce<op::sum, Name>(cast<std::int64_t>(cast<bool>(x)), over);
}
template <Literal Name = "nansum", class P, operand X>
constexpr auto nansum_over(X const& x, P const& over) {
  return reduce<op::sum, Name>(summable(where(x == x, x, zeros_as(x))), over);
}
template <class P, operand X>
constexpr auto nanmean_over(X const& x, P const& over) {
  return nansum_over<"nanmean">(x, over) /
         reduce<op::sum, "nanmean">(summable(where(x == x, ones_as(x), zeros_as(x))), over);
}
template <class P, operand X>
constexpr auto any_over(X const& x, P const& over) {
  return count_over<"any">(x, over) != 0;
}
template <class P, operand X>
constexpr auto all_over(X const& x, P const& over) {
  return reduce<op::sum, "all">(cast<std::int64_t>(logical_not(cast<bool>(x))), over) == 0;
}
template <class P, operand X>
constexpr auto normalize_over(X const& x, double p, double eps, P const& over) {
  auto const v = in_f32(x);
  return rounded_as(v / clamp_min(norm_over<"normalize">(v, p, over), eps), x);
}

}  // namespace detail

/// norm<Axes...>(x, p), norm(x, p, axes, keep) - (sum |x|^p)^(1/p) over axes, all of them without arguments; for p
/// infinite the largest or smallest |x|, for p = 0 the number of nonzero elements. The gradient at 0 is 0.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "norm: floating dtype required, got i32"
/// Source    PyTorch's norm
template <int... A, operand X>
constexpr auto norm(X const& x, double p = 2) {
  return detail::norm_over(x, p, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto norm(X const& x, Keepdim, double p = 2) {
  return detail::norm_over(x, p, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto norm(X const& x, double p, Axes const& axes, bool keep = false) {
  return detail::norm_over(x, p, detail::Over{axes, keep});
}

/// normalize<Axis>(x, p, eps), normalize(x, p, axis, eps) - x / max(norm(x), eps) along an axis, 1 by default.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's normalize
template <int Axis = 1, operand X>
constexpr auto normalize(X const& x, double p = 2, double eps = 1e-12) {
  return detail::normalize_over(x, p, eps, detail::keeping<Axis>);
}
template <operand X>
constexpr auto normalize(X const& x, double p, int axis, double eps = 1e-12) {
  return detail::normalize_over(x, p, eps, detail::Over{axis, true});
}

/// count_nonzero - how many elements are not 0 over axes; i64.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    any; the result i64
/// Source    NumPy's count_nonzero
template <int... A, operand X>
constexpr auto count_nonzero(X const& x) {
  return detail::count_over(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto count_nonzero(X const& x, Keepdim) {
  return detail::count_over(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto count_nonzero(X const& x, Axes const& axes, bool keep = false) {
  return detail::count_over(x, detail::Over{axes, keep});
}

/// any, all - whether an element, every element is not 0 over axes; bool.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    any; the result bool
/// Source    NumPy's any and all
template <int... A, operand X>
constexpr auto any(X const& x) {
  return detail::any_over(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto any(X const& x, Keepdim) {
  return detail::any_over(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto any(X const& x, Axes const& axes, bool keep = false) {
  return detail::any_over(x, detail::Over{axes, keep});
}

template <int... A, operand X>
constexpr auto all(X const& x) {
  return detail::all_over(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto all(X const& x, Keepdim) {
  return detail::all_over(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto all(X const& x, Axes const& axes, bool keep = false) {
  return detail::all_over(x, detail::Over{axes, keep});
}

/// nansum, nanmean - sum and mean of those elements that are not NaN; the mean of none is NaN.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    all but bool; nansum of integers in i64, nanmean in f32
/// Source    NumPy's nansum and nanmean
template <int... A, operand X>
constexpr auto nansum(X const& x) {
  return detail::nansum_over(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto nansum(X const& x, Keepdim) {
  return detail::nansum_over(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto nansum(X const& x, Axes const& axes, bool keep = false) {
  return detail::nansum_over(x, detail::Over{axes, keep});
}

template <int... A, operand X>
constexpr auto nanmean(X const& x) {
  return detail::nanmean_over(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto nanmean(X const& x, Keepdim) {
  return detail::nanmean_over(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto nanmean(X const& x, Axes const& axes, bool keep = false) {
  return detail::nanmean_over(x, detail::Over{axes, keep});
}

/// amax, amin - max and min by their other names.
///
/// Shapes    those of max
/// Dtypes    all but bool
/// Source    NumPy's amax and amin
template <int... A, operand X>
constexpr auto amax(X const& x) {
  return detail::extreme<op::max, "amax">(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto amax(X const& x, Keepdim) {
  return detail::extreme<op::max, "amax">(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto amax(X const& x, Axes const& axes, bool keep = false) {
  return detail::extreme<op::max, "amax">(x, detail::Over{axes, keep});
}

template <int... A, operand X>
constexpr auto amin(X const& x) {
  return detail::extreme<op::min, "amin">(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto amin(X const& x, Keepdim) {
  return detail::extreme<op::min, "amin">(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto amin(X const& x, Axes const& axes, bool keep = false) {
  return detail::extreme<op::min, "amin">(x, detail::Over{axes, keep});
}

}  // namespace dfdx
