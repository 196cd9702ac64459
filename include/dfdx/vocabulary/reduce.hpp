// SPDX-License-Identifier: BSL-1.0
// Reductions: sum(x) over everything, sum<0, 1>(x) over axes, sum<1>(x, keepdim) keeping them with extent 1; for an
// Array also sum(a, {1}). Composites mean, var, std are here too.
#pragma once

#include <dfdx/vocabulary/shape.hpp>

namespace dfdx {

/// keepdim - tag: reduced axes stay, with extent 1.
struct Keepdim {};
inline constexpr Keepdim keepdim{};

namespace detail {

// Bit mask of axes; all of them for none. Negative: the position of an axis that is out of range.
constexpr index_t axes_mask(int const* axes, int n, int rank) {
  index_t mask = n == 0 ? (index_t{1} << rank) - 1 : 0;
  for (int i = 0; i < n; ++i) {
    int const a = normalize_axis(axes[i], rank);
    if (a < 0) return -1 - i;
    mask |= index_t{1} << a;
  }
  return mask;
}

// Which of the axes made the mask negative.
constexpr index_t offender(index_t mask) { return mask < 0 ? -1 - mask : 0; }

constexpr Shape dropped(Shape const& s, index_t mask) {
  Shape r;
  for (int i = 0; i < s.rank; ++i)
    if ((mask >> i & 1) == 0) r.push_back(s[i]);
  return r;
}

template <int... Axes>
struct AxisList {
  static constexpr int n = sizeof...(Axes);
  static constexpr int values[sizeof...(Axes) + 1] = {Axes..., 0};
};

template <class Op, bool Keep, class Axes, class X>
struct ReduceRule {
  static constexpr Meta infer(Text* why) {
    Meta const m = static_meta_or_empty<X>();
    index_t const mask = axes_mask(Axes::values, Axes::n, m.shape.rank);
    if (mask < 0)
      return refuse(why, Op::name, ": axis ", Axes::values[offender(mask)], " out of range for ", m.shape);
    Meta r = Op::infer(Attrs{{mask}}, &m, why);
    if (r.valid() && !Keep) r.shape = dropped(r.shape, mask);
    return r;
  }
};

template <class Op, class T, class V>
constexpr V reduce_mask(V const& x, index_t mask, bool keep) {
  V const y = [&] {
    if constexpr (std::is_same_v<V, Sym>) return bind<Op>(Attrs{{mask}}, x);
    else return bind<Op, T>(Attrs{{mask}}, x);
  }();
  return keep ? y : reshape_to(y, dropped(x.shape(), mask));
}

template <class Op, class T, class V>
constexpr V reduce_untyped(V const& x, int const* axes, int n, bool keep) {
  index_t const mask = axes_mask(axes, n, x.shape().rank);
  if (mask < 0) raise(Op::name, ": axis ", axes[offender(mask)], " out of range for ", x.shape());
  return reduce_mask<Op, T>(x, mask, keep);
}

template <class Op, bool Keep, class Axes, class X>
constexpr auto reduce(X const& x) {
  if constexpr (refused<X>) {
    return Refused{};
  } else if constexpr (typed<X>) {
    using R = typename decltype(result_type<ReduceRule<Op, Keep, Axes, X>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return wrap<R>(reduce_untyped<Op, typename X::value_type>(untyped(x), Axes::values, Axes::n, Keep));
  } else {
    return reduce_untyped<Op, void>(x, Axes::values, Axes::n, Keep);
  }
}

template <class Op>
Array reduce_list(Array const& x, std::initializer_list<int> axes, bool keep) {
  return reduce_untyped<Op, void>(x, axes.begin(), static_cast<int>(axes.size()), keep);
}

// Number of elements that a reduction over the mask joins.
constexpr index_t joined(Shape const& s, index_t mask) {
  index_t n = 1;
  for (int i = 0; i < s.rank; ++i)
    if ((mask >> i & 1) != 0) n = extent::mul(n, s[i]);
  return n;
}

}  // namespace detail

/// sum_axes - sum over a bit mask of axes, which stay with extent 1; nothing to do for no axes.
template <class V>
constexpr V sum_axes(V const& x, index_t mask) {
  return mask == 0 ? x : bind<op::sum>(Attrs{{mask}}, x);
}

template <int... Axes, operand X>
constexpr auto sum(X const& x) {
  return detail::reduce<op::sum, false, detail::AxisList<Axes...>>(x);
}
template <int... Axes, operand X>
constexpr auto sum(X const& x, Keepdim) {
  return detail::reduce<op::sum, true, detail::AxisList<Axes...>>(x);
}
inline Array sum(Array const& x, std::initializer_list<int> axes, bool keep = false) {
  return detail::reduce_list<op::sum>(x, axes, keep);
}

template <int... Axes, operand X>
constexpr auto prod(X const& x) {
  return detail::reduce<op::prod, false, detail::AxisList<Axes...>>(x);
}
template <int... Axes, operand X>
constexpr auto prod(X const& x, Keepdim) {
  return detail::reduce<op::prod, true, detail::AxisList<Axes...>>(x);
}
inline Array prod(Array const& x, std::initializer_list<int> axes, bool keep = false) {
  return detail::reduce_list<op::prod>(x, axes, keep);
}

template <int... Axes, operand X>
constexpr auto max(X const& x) {
  return detail::reduce<op::max, false, detail::AxisList<Axes...>>(x);
}
template <int... Axes, operand X>
constexpr auto max(X const& x, Keepdim) {
  return detail::reduce<op::max, true, detail::AxisList<Axes...>>(x);
}
inline Array max(Array const& x, std::initializer_list<int> axes, bool keep = false) {
  return detail::reduce_list<op::max>(x, axes, keep);
}

template <int... Axes, operand X>
constexpr auto min(X const& x) {
  return detail::reduce<op::min, false, detail::AxisList<Axes...>>(x);
}
template <int... Axes, operand X>
constexpr auto min(X const& x, Keepdim) {
  return detail::reduce<op::min, true, detail::AxisList<Axes...>>(x);
}
inline Array min(Array const& x, std::initializer_list<int> axes, bool keep = false) {
  return detail::reduce_list<op::min>(x, axes, keep);
}

/// argmax<Axis>(x), argmin<Axis>(x) - position of the largest, smallest element along an axis; i64, the axis
/// dropped.
namespace detail {
template <int Axis, bool Smallest, bool Keep, class X>
constexpr auto arg_extremum(X const& x) {
  constexpr char const* name = Smallest ? "argmin" : "argmax";
  struct Rule {
    static constexpr Meta infer(Text* why) {
      Meta const m = static_meta_or_empty<X>();
      int const axis = rule_axis(name, Axis, m.shape, why);
      if (axis < 0) return refuse(nullptr);
      Meta r = op::argmax::infer(Attrs{{axis, Smallest}}, &m, why);
      if (r.valid() && !Keep) r.shape = dropped(r.shape, index_t{1} << axis);
      return r;
    }
  };
  return shaped<Rule>(x, [](auto const& v) {
    int const axis = checked_axis(name, Axis, v.shape());
    auto const y = bind<op::argmax>(Attrs{{axis, Smallest}}, v);
    return Keep ? y : reshape_to(y, dropped(v.shape(), index_t{1} << axis));
  });
}
}  // namespace detail
template <int Axis = -1, operand X>
constexpr auto argmax(X const& x) {
  return detail::arg_extremum<Axis, false, false>(x);
}
template <int Axis = -1, operand X>
constexpr auto argmax(X const& x, Keepdim) {
  return detail::arg_extremum<Axis, false, true>(x);
}
template <int Axis = -1, operand X>
constexpr auto argmin(X const& x) {
  return detail::arg_extremum<Axis, true, false>(x);
}
template <int Axis = -1, operand X>
constexpr auto argmin(X const& x, Keepdim) {
  return detail::arg_extremum<Axis, true, true>(x);
}

namespace detail {
// total / (number of elements joined - correction). A number known only at run time is a sum of ones.
template <bool Keep, class Axes, class X, class Y>
constexpr auto over_count(X const& x, Y const& total, int correction) {
  Shape const s = x.shape();
  index_t const n = joined(s, axes_mask(Axes::values, Axes::n, s.rank));
  if (n < 0) return total / (reduce<op::sum, Keep, Axes>(ones_like(x)) - static_cast<double>(correction));
  return total * (1.0 / static_cast<double>(n - correction));
}
}  // namespace detail

/// mean<Axes...>(x) - arithmetic mean: sum / count.
template <int... Axes, operand X>
constexpr auto mean(X const& x) {
  return detail::over_count<false, detail::AxisList<Axes...>>(x, sum<Axes...>(x), 0);
}
template <int... Axes, operand X>
constexpr auto mean(X const& x, Keepdim) {
  return detail::over_count<true, detail::AxisList<Axes...>>(x, sum<Axes...>(x, keepdim), 0);
}

/// var<Axes...>(x, correction) - variance: sum((x - mean)^2) / (count - correction); 1 by default as in PyTorch.
template <int... Axes, operand X>
constexpr auto var(X const& x, int correction = 1) {
  return detail::over_count<false, detail::AxisList<Axes...>>(
      x, sum<Axes...>(square(x - mean<Axes...>(x, keepdim))), correction);
}
template <int... Axes, operand X>
constexpr auto var(X const& x, Keepdim, int correction = 1) {
  return detail::over_count<true, detail::AxisList<Axes...>>(
      x, sum<Axes...>(square(x - mean<Axes...>(x, keepdim)), keepdim), correction);
}

/// std<Axes...>(x, correction) - standard deviation, the square root of var.
template <int... Axes, operand X>
constexpr auto std(X const& x, int correction = 1) {
  return sqrt(var<Axes...>(x, correction));
}

}  // namespace dfdx
