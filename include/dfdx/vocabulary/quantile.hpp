// SPDX-License-Identifier: BSL-1.0
// Elements by their rank along an axis: median, quantile.
#pragma once

#include <vector>

#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/order.hpp>

namespace dfdx {

/// Interpolation - what quantile gives between two elements: what lies between them by the distances, the lower, the
/// higher, the nearer (of even position, if none is), or their mean.
enum class Interpolation { linear, lower, higher, nearest, midpoint };

namespace detail {

struct SelectLined : Select {
  constexpr Meta infer(Meta const* in, Text* why) const {
    return in->shape.rank == 0 ? *in : Select::infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return x.shape().rank == 0 ? x : Select::template run<T>(y, x);
  }
};

// Sorted along an axis, the element at a position that the extent gives.
template <Literal Name, class P, operand X, class At>
constexpr auto ranked(X const& sorted, P const& axis, At const& at) {
  Shape const s = lined(sorted.shape());
  int const a = checked_axis(Name.text, value_of(axis), s);
  index_t const n = s[a];
  if (n == 0) raise(Name.text, ": empty axis ", a, " of ", sorted.shape());
  if (n < 0) raise(Name.text, ": axis ", a, " of ", sorted.shape(), " has no fixed extent");
  if constexpr (is_fixed<P>)
    return call(FixedType<SelectLined{{P::value, 0}}>{{}, {{P::value, at(n)}}}, sorted);
  else return call(SelectLined{{axis, at(n)}}, sorted);
}
// NaN where the axis has one: it is the last then.
template <Literal Name, class P, operand X, operand Y>
constexpr auto nan_of(X const& sorted, P const& axis, Y const& y) {
  auto const last = ranked<Name>(sorted, axis, [](index_t n) { return n - 1; });
  return where(last != last, last, y);
}
template <class P, operand X>
constexpr auto median_along(X const& x, P const& axis) {
  auto const sorted = std::get<0>(sort_along<"median">(x, axis, false));
  if constexpr (refused<decltype(sorted)>) return Refused{};
  else
    return nan_of<"median">(sorted, axis,
                            ranked<"median">(sorted, axis, [](index_t n) { return (n - 1) / 2; }));
}
// NaN is sorted to the end, so the middle of the others is as far from the front as their number says; if there are
// none it is a NaN that stands there.
template <class P, operand X>
constexpr auto nanmedian_along(X const& x, P const& axis) {
  auto const sorted = std::get<0>(sort_along<"nanmedian">(x, axis, false));
  if constexpr (refused<decltype(sorted)>) {
    return Refused{};
  } else {
    // Refuses what is empty.
    static_cast<void>(ranked<"nanmedian">(sorted, axis, [](index_t) { return index_t{0}; }));
    auto const numbers = [&] {
      auto const each = cast<std::int64_t>(x == x);
      if constexpr (is_fixed<P>) return sum<P::value>(each, keepdim);
      else return sum(each, axis, true);
    }();
    auto const middle = gather_along(sorted, floor_divide(maximum(numbers - 1, 0), 2), axis);
    if constexpr (is_fixed<P>) return squeeze<P::value>(middle);
    else return squeeze(middle, axis);
  }
}
// The element of sorted ones that a part q does not exceed.
template <class P, operand X>
constexpr auto quantile_of(X const& sorted, double q, P const& axis, Interpolation how) {
  if (!(q >= 0 && q <= 1)) raise("quantile: a number between 0 and 1 required");
  index_t below = 0, above = 0;
  double part = 0;
  auto const first = ranked<"quantile">(sorted, axis, [&](index_t n) {
    double const place = q * static_cast<double>(n - 1);
    below = static_cast<index_t>(place);
    part = place - static_cast<double>(below);
    above = part > 0 ? below + 1 : below;
    if (how == Interpolation::nearest)
      below = above = part > 0.5 || (part == 0.5 && below % 2 == 1) ? above : below;
    if (how == Interpolation::higher) below = above;
    if (how == Interpolation::lower) above = below;
    if (how == Interpolation::midpoint) part = 0.5;
    return below;
  });
  if (above == below) return nan_of<"quantile">(sorted, axis, first);
  auto const second = ranked<"quantile">(sorted, axis, [above](index_t) { return above; });
  auto const low = in_f32(first);
  return nan_of<"quantile">(sorted, axis, rounded_as(low + (in_f32(second) - low) * part, first));
}
template <class P, operand X>
constexpr auto sorted_reals(X const& x, P const& axis) {
  auto const real = floating<"quantile">(x);
  return std::get<0>(sort_along<"quantile">(real, axis, false));
}
template <class P, operand X>
constexpr auto quantile_along(X const& x, double q, P const& axis, Interpolation how) {
  auto const sorted = sorted_reals(x, axis);
  if constexpr (refused<decltype(sorted)>) return Refused{};
  else return quantile_of(sorted, q, axis, how);
}
// Several, along a new first axis.
template <class P, operand X, std::size_t N>
constexpr auto quantiles_along(X const& x, double const (&q)[N], P const& axis, Interpolation how) {
  auto const sorted = sorted_reals(x, axis);
  if constexpr (refused<decltype(sorted)>) return Refused{};
  else
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return stack<0>(quantile_of(sorted, q[I], axis, how)...);
    }(std::make_index_sequence<N>{});
}
template <class X>
Array quantiles_along(X const& x, std::vector<double> const& q, int axis, Interpolation how) {
  if (q.empty()) raise("quantile: no numbers between 0 and 1 given");
  auto const sorted = sorted_reals(untyped(x), axis);
  std::vector<Array> each;
  for (double p : q) each.push_back(quantile_of(sorted, p, axis, how));
  return stack(each);
}

}  // namespace detail

/// median<Axis>(x), median(x, axis) - the middle element along an axis, the lower one of two; over all without an axis.
///
/// Shapes    x: [S...] -> [S... without the axis]
/// Dtypes    any
/// Errors    "median: empty axis 0 of [0, 3]"
/// Source    PyTorch's median
template <int Axis, operand X>
constexpr auto median(X const& x) {
  return detail::median_along(x, detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto median(X const& x, int axis) {
  return detail::median_along(x, axis);
}
template <operand X>
constexpr auto median(X const& x) {
  return median<0>(reshape<-1>(x));
}

/// nanmedian - the same among the elements that are not NaN; NaN only if all are.
///
/// Shapes    x: [S...] -> [S... without the axis]
/// Dtypes    any
/// Errors    "nanmedian: empty axis 0 of [0, 3]"
/// Source    PyTorch's nanmedian
template <int Axis, operand X>
constexpr auto nanmedian(X const& x) {
  return detail::nanmedian_along(x, detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto nanmedian(X const& x, int axis) {
  return detail::nanmedian_along(x, axis);
}
template <operand X>
constexpr auto nanmedian(X const& x) {
  return nanmedian<0>(reshape<-1>(x));
}

/// quantile<Axis>(x, q, how), quantile(x, q, axis, how) - the element that a part q of an axis does not exceed, between
/// two elements as `how` says; over all without an axis. Of several q, {0.25, 0.75} or a vector, along a new first
/// axis.
///
/// Shapes    x: [S...], q: a number -> [S... without the axis]; q: N numbers -> [N, S... without the axis]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "quantile: a number between 0 and 1 required"; "quantile: floating dtype required, got i64"
/// Source    NumPy's quantile
template <int Axis, operand X>
constexpr auto quantile(X const& x, double q, Interpolation how = Interpolation::linear) {
  return detail::quantile_along(x, q, detail::Fixed<Axis>{}, how);
}
template <operand X>
constexpr auto quantile(X const& x, double q, int axis, Interpolation how = Interpolation::linear) {
  return detail::quantile_along(x, q, axis, how);
}
template <operand X>
constexpr auto quantile(X const& x, double q, Interpolation how = Interpolation::linear) {
  return quantile<0>(reshape<-1>(x), q, how);
}
template <int Axis, operand X, std::size_t N>
constexpr auto quantile(X const& x, double const (&q)[N], Interpolation how = Interpolation::linear) {
  return detail::quantiles_along(x, q, detail::Fixed<Axis>{}, how);
}
template <operand X, std::size_t N>
constexpr auto quantile(X const& x, double const (&q)[N], int axis,
                        Interpolation how = Interpolation::linear) {
  return detail::quantiles_along(x, q, axis, how);
}
template <operand X, std::size_t N>
constexpr auto quantile(X const& x, double const (&q)[N], Interpolation how = Interpolation::linear) {
  return quantile<0>(reshape<-1>(x), q, how);
}
template <operand X>
Array quantile(X const& x, std::vector<double> const& q, int axis,
               Interpolation how = Interpolation::linear) {
  return detail::quantiles_along(x, q, axis, how);
}

}  // namespace dfdx
