// SPDX-License-Identifier: BSL-1.0
// Functions along an axis in which order matters: cumulative sums and products, sort, topk, median, quantile.
#pragma once

#include <tuple>

#include <dfdx/ops/order.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx {

namespace detail {

/// Along - what functions along one axis have for parameters.
struct Along {
  int axis;
  index_t which = 0;  // of the op: reversed, smallest, descending
};
// An op whose attributes are an axis and a choice, and whose result has its operand's shape.
template <class Op>
struct AlongAxis {
  Along along;
  static constexpr char const* name() {
    if constexpr (std::is_same_v<Op, op::argsort>) return "sort";
    else if constexpr (std::is_same_v<Op, op::argcummax>) return "cummax";
    else return Op::name;
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis(name(), along.axis, in->shape, why);
    return a < 0 ? refuse(nullptr) : Op::infer(Attrs{{a, along.which}}, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return bind_as<Op>(y, Attrs{{normalize_axis(along.axis, y.shape.rank), along.which}}, x);
  }
};
template <class Op, class P, operand X>
constexpr auto along_axis(X const& x, P const& axis, index_t which = 0) {
  if constexpr (is_fixed<P>) return call(FixedType<AlongAxis<Op>{{P::value}}>{{}, {{P::value, which}}}, x);
  else return call(AlongAxis<Op>{{axis, which}}, x);
}
template <class P, operand X, operand I>
constexpr auto gather_along(X const& x, I const& index, P const& axis) {
  return call(made<Gather>(axis), x, index);
}

// y_i = x_0 o ... o x_i for an associative o, in log2 n steps: each joins what lies 1, 2, 4, ... apart. So its
// derivatives are those of o, also where some x are zero.
template <class Join>
struct Cumulative {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis(Join::name, axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    if (in->shape[a] < 0)
      return refuse(why, Join::name, ": axis ", a, " of ", in->shape, " has no fixed extent");
    return Join::infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& m, V const& x) const {
    int const a = normalize_axis(axis, m.shape.rank);
    index_t const n = m.shape[a];
    V y = x;
    for (index_t s = 1; s < n; s *= 2)
      y = bind<op::concat>(Attrs{{a}}, slice_axis(y, a, 0, s),
                           Join::template join<T>(slice_axis(y, a, 0, n - s), slice_axis(y, a, s, n - s)));
    return y;
  }
};
struct Times {
  static constexpr char const* name = "cumprod";
  static constexpr Meta infer(Meta const* in, Text* why) { return op::cumsum::infer(Attrs{}, in, why); }
  template <class T, class V>
  static constexpr V join(V const& x, V const& y) {
    return bind_element<op::mul, T>(Attrs{}, x, y);
  }
};
// log(e^x + e^y); where both are one infinity their difference counts as 0.
struct LogAdd {
  static constexpr char const* name = "logcumsumexp";
  static constexpr Meta infer(Meta const* in, Text* why) {
    if (!is_floating(in->dtype)) return refuse(why, name, ": floating dtype required, got ", in->dtype);
    return *in;
  }
  template <class, class V>
  static constexpr V join(V const& x, V const& y) {
    V const apart = where(x == y, zeros_like(x), x - y);
    return maximum(x, y) + log1p(exp(-abs(apart)));
  }
};

template <class P, operand X>
constexpr auto cummax_along(X const& x, P const& axis, bool smallest) {
  auto const index = along_axis<op::argcummax>(x, axis, smallest);
  return std::tuple(gather_along(x, index, axis), index);
}
template <class P, operand X>
constexpr auto sort_along(X const& x, P const& axis, bool descending) {
  auto const index = along_axis<op::argsort>(x, axis, descending);
  return std::tuple(gather_along(x, index, axis), index);
}

/// Top - the first k along an axis of what sort finds.
struct Top {
  index_t k;
  int axis;
  bool largest = true;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("topk", axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    if (k < 0 || (in->shape[a] >= 0 && k > in->shape[a]))
      return refuse(why, "topk: ", Position{k}, " elements wanted along axis ", a, " of ", in->shape);
    return Meta{DType::i64, with_extent(in->shape, a, k)};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const a = normalize_axis(axis, y.shape.rank);
    return slice_axis(bind<op::argsort>(Attrs{{a, largest}}, x), a, 0, k);
  }
};

// Sorted along an axis, the element at a position that the extent gives.
template <class P, operand X, class At>
constexpr auto ranked(X const& sorted, P const& axis, At const& at) {
  int const a = checked_axis("quantile", value_of(axis), sorted.shape());
  index_t const n = sorted.shape()[a];
  if (n == 0) raise("quantile: empty axis ", a, " of ", sorted.shape());
  if (n < 0) raise("quantile: axis ", a, " of ", sorted.shape(), " has no fixed extent");
  if constexpr (is_fixed<P>) return call(FixedType<Select{P::value, 0}>{{}, {P::value, at(n)}}, sorted);
  else return call(Select{axis, at(n)}, sorted);
}
// NaN where the axis has one: it is the last then.
template <class P, operand X, operand Y>
constexpr auto nan_of(X const& sorted, P const& axis, Y const& y) {
  auto const last = ranked(sorted, axis, [](index_t n) { return n - 1; });
  return where(last != last, last, y);
}
template <class P, operand X>
constexpr auto median_along(X const& x, P const& axis) {
  auto const sorted = std::get<0>(sort_along(x, axis, false));
  if constexpr (refused<decltype(sorted)>) return Refused{};
  else return nan_of(sorted, axis, ranked(sorted, axis, [](index_t n) { return (n - 1) / 2; }));
}
// NaN is sorted to the end, so the middle of the others is as far from the front as their number says; if there are
// none it is a NaN that stands there.
template <class P, operand X>
constexpr auto nanmedian_along(X const& x, P const& axis) {
  auto const sorted = std::get<0>(sort_along(x, axis, false));
  if constexpr (refused<decltype(sorted)>) {
    return Refused{};
  } else {
    static_cast<void>(ranked(sorted, axis, [](index_t) { return index_t{0}; }));  // refuses what is empty
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
template <class P, operand X>
constexpr auto quantile_along(X const& x, double q, P const& axis) {
  if (!(q >= 0 && q <= 1)) raise("quantile: a number between 0 and 1 required");
  auto const sorted = std::get<0>(sort_along(x, axis, false));
  if constexpr (refused<decltype(sorted)>) {
    return Refused{};
  } else {
    int const a = normalize_axis(value_of(axis), sorted.shape().rank);
    double const place = q * static_cast<double>(sorted.shape()[a] - 1);
    auto const floor = static_cast<index_t>(place);
    auto const low = ranked(sorted, axis, [floor](index_t) { return floor; });
    auto const high = ranked(sorted, axis, [floor](index_t n) { return floor + 1 < n ? floor + 1 : floor; });
    return nan_of(sorted, axis, low + (high - low) * (place - static_cast<double>(floor)));
  }
}

struct SearchSorted {
  bool right = false;
  constexpr Meta infer(Meta const* in, Text* why) const {
    return op::searchsorted::infer(Attrs{{right}}, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& list, V const& x) const {
    return bind<op::searchsorted>(Attrs{{right}}, list, x);
  }
};

}  // namespace detail

/// cumsum<Axis>(x), cumsum(x, axis) - sums of the elements up to each; of integers and truths in i64, as cumprod.
template <int Axis, operand X>
constexpr auto cumsum(X const& x) {
  return detail::along_axis<op::cumsum>(detail::summable(x), detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto cumsum(X const& x, int axis) {
  return detail::along_axis<op::cumsum>(detail::summable(x), axis);
}

/// cumprod<Axis>(x), cumprod(x, axis) - products of the elements up to each.
template <int Axis, operand X>
constexpr auto cumprod(X const& x) {
  return detail::call(detail::Fixed<detail::Cumulative<detail::Times>{Axis}>{}, detail::summable(x));
}
template <operand X>
constexpr auto cumprod(X const& x, int axis) {
  return detail::call(detail::Cumulative<detail::Times>{axis}, detail::summable(x));
}

/// logcumsumexp<Axis>(x), logcumsumexp(x, axis) - log of the sum of e^x up to each.
template <int Axis, operand X>
constexpr auto logcumsumexp(X const& x) {
  return detail::call(detail::Fixed<detail::Cumulative<detail::LogAdd>{Axis}>{}, x);
}
template <operand X>
constexpr auto logcumsumexp(X const& x, int axis) {
  return detail::call(detail::Cumulative<detail::LogAdd>{axis}, x);
}

/// cummax<Axis>(x), cummin<Axis>(x) and cummax(x, axis), cummin(x, axis) - the largest, smallest element up to each,
/// and its position: a tuple.
template <int Axis, operand X>
constexpr auto cummax(X const& x) {
  return detail::cummax_along(x, detail::Fixed<Axis>{}, false);
}
template <operand X>
constexpr auto cummax(X const& x, int axis) {
  return detail::cummax_along(x, axis, false);
}
template <int Axis, operand X>
constexpr auto cummin(X const& x) {
  return detail::cummax_along(x, detail::Fixed<Axis>{}, true);
}
template <operand X>
constexpr auto cummin(X const& x, int axis) {
  return detail::cummax_along(x, axis, true);
}

/// sort<Axis, Descending>(x), sort(x, axis, descending) - the elements in order and where each came from: a tuple.
/// Equal elements stay in their order; NaN counts as the largest. argsort gives the positions alone.
template <int Axis = -1, bool Descending = false, operand X>
constexpr auto sort(X const& x) {
  return detail::sort_along(x, detail::Fixed<Axis>{}, Descending);
}
template <operand X>
constexpr auto sort(X const& x, int axis, bool descending = false) {
  return detail::sort_along(x, axis, descending);
}
template <int Axis = -1, bool Descending = false, operand X>
constexpr auto argsort(X const& x) {
  return detail::along_axis<op::argsort>(x, detail::Fixed<Axis>{}, Descending);
}
template <operand X>
constexpr auto argsort(X const& x, int axis, bool descending = false) {
  return detail::along_axis<op::argsort>(x, axis, descending);
}

/// topk<K, Axis, Largest>(x), topk(x, k, axis, largest) - the k largest elements, the largest first, and where they
/// are: a tuple; or the smallest.
///
/// Errors    "topk: 6 elements wanted along axis 1 of [2, 5]"
template <index_t K, int Axis = -1, bool Largest = true, operand X>
constexpr auto topk(X const& x) {
  auto const index = detail::call(detail::Fixed<detail::Top{K, Axis, Largest}>{}, x);
  return std::tuple(gather<Axis>(x, index), index);
}
template <operand X>
constexpr auto topk(X const& x, index_t k, int axis = -1, bool largest = true) {
  auto const index = detail::call(detail::Top{k, axis, largest}, x);
  return std::tuple(gather(x, axis, index), index);
}

/// median<Axis>(x), median(x, axis) - the middle element along an axis, the lower one of two; over all without an axis.
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

/// quantile<Axis>(x, q), quantile(x, q, axis) - the element that a part q of an axis does not exceed, between two
/// elements by their distances; over all without an axis.
template <int Axis, operand X>
constexpr auto quantile(X const& x, double q) {
  return detail::quantile_along(x, q, detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto quantile(X const& x, double q, int axis) {
  return detail::quantile_along(x, q, axis);
}
template <operand X>
constexpr auto quantile(X const& x, double q) {
  return quantile<0>(reshape<-1>(x), q);
}

/// searchsorted(list, x, right) - where elements of x belong in ascending lists; bucketize(x, list, right) likewise.
///
/// Shapes    list: [N], x: any, or list: [B..., N], x: [B..., M] -> that of x, i64
template <operand L, operand X>
constexpr auto searchsorted(L const& list, X const& x, bool right = false) {
  return detail::call(detail::FixedType<detail::SearchSorted{}>{{}, {right}}, list, x);
}
template <operand X, operand L>
constexpr auto bucketize(X const& x, L const& boundaries, bool right = false) {
  return searchsorted(boundaries, x, right);
}

}  // namespace dfdx
