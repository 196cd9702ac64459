// SPDX-License-Identifier: BSL-1.0
// Elements by their rank along an axis: kthvalue, median, quantile.
#pragma once

#include <vector>

#include <dfdx/vocabulary/argmax.hpp>
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
    if (x.shape().rank == 0) return x;
    return Select::template run<T>(y, x);
  }
};

/// Kth - where the element is that `before` others are before in ascending order; the axis stays, of extent 1.
struct Kth {
  int axis;
  index_t before = 0;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const s = lined(in->shape);
    int const a = normalize_axis(axis, s.rank);
    if (a < 0) return rule_axis("sort", axis, in->shape, why), refuse(nullptr);
    if (s[a] == 0) return refuse(why, "sort: empty axis ", a, " of ", in->shape);
    if (s[a] < 0) return refuse(why, "sort: axis ", a, " of ", in->shape, " has no fixed extent");
    if (before < 0 || before >= s[a])
      return refuse(why, "sort: element ", Position{before + 1}, " wanted along axis ", a, " of ", in->shape);
    return Meta{DType::i64, in->shape.rank == 0 ? in->shape : with_extent(s, a, 1)};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    if (y.shape.rank == 0) return full_as(x, y, 0);
    return bind<op::argsort>(Attrs{{normalize_axis(axis, y.shape.rank), 0, -(before + 1)}}, x);
  }
};

template <class P, operand X>
constexpr auto without_axis(X const& x, P const& axis) {
  if constexpr (is_fixed<P>) return squeeze<P::value>(x);
  else return squeeze(x, axis);
}
// The elements at places along an axis, one each.
template <class P, operand X, operand I>
constexpr auto chosen(X const& x, I const& place, P const& axis) {
  return without_axis(gather_along(x, place, axis), axis);
}
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
// Without sorting: the element with at(extent) others before it.
template <Literal Name, class P, operand X, class At>
constexpr auto kth(X const& x, P const& axis, At const& at) {
  Shape const s = lined(x.shape());
  int const a = normalize_axis(value_of(axis), s.rank);
  index_t const before = a >= 0 && s[a] > 0 ? at(s[a]) : 0;  // else the rule refuses
  auto const place = [&] {
    if constexpr (is_fixed<P>) return call(named<Name>(FixedType<Kth{P::value}>{{}, {P::value, before}}), x);
    else return call(named<Name>(Kth{axis, before}), x);
  }();
  return chosen(x, place, axis);
}
// The largest along an axis, a NaN if there is one.
template <class P, operand X>
constexpr auto largest_along(X const& x, P const& axis) {
  if constexpr (is_fixed<P>) return chosen(x, argmax<P::value>(x, keepdim), axis);
  else return chosen(x, argmax(x, {axis}, true), axis);
}
// NaN where the last element in order is.
template <operand X>
constexpr auto nan_of(X const& last, X const& y) {
  return where(last != last, last, y);
}
template <class P, operand X>
constexpr auto median_along(X const& x, P const& axis) {
  auto const middle = kth<"median">(x, axis, [](index_t n) { return (n - 1) / 2; });
  if constexpr (refused<decltype(middle)>) return Refused{};
  else return nan_of(largest_along(x, axis), middle);
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
    return chosen(sorted, floor_divide(maximum(numbers - 1, 0), 2), axis);
  }
}
// The element that a part q does not exceed, of those that element(at) gives; largest() is the last of them.
template <class Element, class Largest>
constexpr auto quantile_of(Element const& element, Largest const& largest, double q, Interpolation how) {
  if (!(q >= 0 && q <= 1)) raise("quantile: a number between 0 and 1 required");
  index_t below = 0, above = 0;
  double part = 0;
  auto const first = element([&](index_t n) {
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
  if (above == below) return nan_of(largest(), first);
  auto const low = in_f32(first), high = in_f32(element([above](index_t) { return above; }));
  // Between infinities, or too far apart for their difference, both are weighted: from -inf on it stays -inf.
  auto const step = high - low, weighted = low * (1 - part) + high * part;
  auto const near = abs(step) < std::numeric_limits<double>::infinity();
  return nan_of(largest(), rounded_as(where(near, low + step * part, weighted), first));
}
template <class P, operand X>
constexpr auto quantile_along(X const& x, double q, P const& axis, Interpolation how) {
  auto const real = floating<"quantile">(x);
  if constexpr (refused<decltype(real)>) {
    return Refused{};
  } else {
    auto const element = [&](auto const& at) { return kth<"quantile">(real, axis, at); };
    if constexpr (refused<decltype(element([](index_t) { return index_t{0}; }))>) return Refused{};
    else return quantile_of(element, [&] { return largest_along(real, axis); }, q, how);
  }
}
// Several, along a new first axis: of sorted ones.
template <class P, operand X>
constexpr auto sorted_reals(X const& x, P const& axis) {
  auto const real = floating<"quantile">(x);
  return std::get<0>(sort_along<"quantile">(real, axis, false));
}
template <class P, operand X>
constexpr auto quantile_of_sorted(X const& sorted, double q, P const& axis, Interpolation how) {
  return quantile_of([&](auto const& at) { return ranked<"quantile">(sorted, axis, at); },
                     [&] { return ranked<"quantile">(sorted, axis, [](index_t n) { return n - 1; }); }, q,
                     how);
}
template <class P, operand X, std::size_t N>
constexpr auto quantiles_along(X const& x, double const (&q)[N], P const& axis, Interpolation how) {
  auto const sorted = sorted_reals(x, axis);
  if constexpr (refused<decltype(sorted)>) return Refused{};
  else
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return stack<0>(quantile_of_sorted(sorted, q[I], axis, how)...);
    }(std::make_index_sequence<N>{});
}
template <class X>
Array quantiles_along(X const& x, std::vector<double> const& q, int axis, Interpolation how) {
  if (q.empty()) raise("quantile: no numbers between 0 and 1 given");
  auto const sorted = sorted_reals(untyped(x), axis);
  std::vector<Array> each;
  for (double p : q) each.push_back(quantile_of_sorted(sorted, p, axis, how));
  return stack(each);
}

}  // namespace detail

/// kthvalue<K, Axis>(x), kthvalue(x, k, axis) - the k-th smallest element along an axis, from 1 on, and where it is: a
/// tuple. Of equal elements the first is the smallest; NaN counts as the largest.
///
/// Shapes    x: [S...] -> [S... without the axis], [S... without the axis]
/// Dtypes    any; the positions i64
/// Errors    "kthvalue: element 6 wanted along axis 1 of [2, 5]"
/// Source    PyTorch's kthvalue
template <index_t K, int Axis = -1, operand X>
constexpr auto kthvalue(X const& x) {
  using namespace detail;
  constexpr Fixed<Axis> axis;
  auto const place = call(named<"kthvalue">(Fixed<Kth{Axis, K - 1}>{}), x);
  return std::tuple(chosen(x, place, axis), without_axis(place, axis));
}
template <operand X>
constexpr auto kthvalue(X const& x, index_t k, int axis = -1) {
  using namespace detail;
  auto const place = call(named<"kthvalue">(Kth{axis, k - 1}), x);
  return std::tuple(chosen(x, place, axis), without_axis(place, axis));
}

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
/// two elements as `how` says, from -infinity on that; over all without an axis. Of several q, {0.25, 0.75} or a
/// vector, along a new first axis.
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
