// SPDX-License-Identifier: BSL-1.0
// Functions that change shape. Axes and extents of a Tensor are template arguments, so that the result is a type:
// reshape<6>(x), transpose<0, 1>(x); for an Array they may be function arguments: reshape(a, {6}).
#pragma once

#include <dfdx/vocabulary/elementwise.hpp>

namespace dfdx {

namespace detail {

// How the functions below end: the rule's Tensor type around what `make` computes from the untyped value, or the
// untyped result itself.
template <class Rule, class X, class Make>
constexpr auto shaped(X const& x, Make make) {
  if constexpr (refused<X>) {
    return Refused{};
  } else if constexpr (typed<X>) {
    using R = typename decltype(result_type<Rule>())::type;
    if constexpr (refused<R>) return Refused{};
    else return wrap<R>(make(static_cast<Array const&>(x)));
  } else {
    return make(x);
  }
}

template <class X>
constexpr Meta static_meta_or_empty() {
  if constexpr (typed<X>) return X::static_meta;
  else return Meta{};
}

constexpr Shape checked_target(Shape const& from, Shape const& to) {
  Shape const s = op::reshape::target(from, to, nullptr);
  if (!s.valid()) {
    Text why;
    op::reshape::target(from, to, &why);
    raise(why);
  }
  return s;
}

constexpr int checked_axis(char const* name, int axis, Shape const& shape) {
  int const a = normalize_axis(axis, shape.rank);
  if (a < 0) raise(name, ": axis ", axis, " out of range for ", shape);
  return a;
}

// An axis that a rule met; refuses with the text of checked_axis.
constexpr int rule_axis(char const* name, int axis, Shape const& shape, Text* why) {
  int const a = normalize_axis(axis, shape.rank);
  if (a < 0) refuse(why, name, ": axis ", axis, " out of range for ", shape);
  return a;
}

}  // namespace detail

/// reshape - the same elements in row-major order under another shape; one extent may be -1. No copy where strides
/// allow.
template <class V>
constexpr V reshape_to(V const& x, Shape const& shape) {
  Shape const s = detail::checked_target(x.shape(), shape);
  return s == x.shape() ? x : bind_as<op::reshape>(Meta{x.dtype(), s}, Attrs{}, x);
}
template <index_t... Dims, operand X>
constexpr auto reshape(X const& x) {
  struct Rule {
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      return Meta{m.dtype, op::reshape::target(m.shape, make_shape(Dims...), why)};
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) { return reshape_to(v, make_shape(Dims...)); });
}
constexpr Array reshape(Array const& x, Shape const& shape) { return reshape_to(x, shape); }
inline Array reshape(Array const& x, std::initializer_list<index_t> shape) {
  Shape s;
  for (index_t d : shape) s.push_back(d);
  return reshape_to(x, s);
}

/// permute_axes - axes in another order, given as a packed permutation (op::pack_axes).
template <class V>
constexpr V permute_axes(V const& x, index_t packed) {
  return bind<op::permute>(Attrs{{packed}}, x);
}

/// permute<1, 0>(x) - axis i of the result is axis Axes[i] of x. No copy.
template <int... Axes, operand X>
constexpr auto permute(X const& x) {
  constexpr int axes[] = {Axes...};
  constexpr index_t packed = [&] {
    int a[sizeof...(Axes)] = {};
    for (std::size_t i = 0; i < sizeof...(Axes); ++i)
      a[i] = axes[i] < 0 ? axes[i] + static_cast<int>(sizeof...(Axes)) : axes[i];
    return op::pack_axes(a, sizeof...(Axes));
  }();
  struct Rule {
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      if (m.shape.rank != static_cast<int>(sizeof...(Axes)))
        return refuse(why, "permute: axes must name each axis of ", m.shape, " once");
      return op::permute::infer(Attrs{{packed}}, &m, why);
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) {
    if (v.shape().rank != static_cast<int>(sizeof...(Axes)))
      raise("permute: axes must name each axis of ", v.shape(), " once");
    return permute_axes(v, packed);
  });
}

namespace detail {
constexpr index_t swapped_axes(int rank, int a, int b) {
  int axes[max_rank] = {};
  for (int i = 0; i < rank; ++i) axes[i] = i;
  axes[a] = b;
  axes[b] = a;
  return op::pack_axes(axes, rank);
}
}  // namespace detail

/// transpose - two axes swapped, the last two by default. No copy.
template <class V>
constexpr V transpose_axes(V const& x, int a, int b) {
  Shape const s = x.shape();
  return permute_axes(x, detail::swapped_axes(s.rank, detail::checked_axis("transpose", a, s),
                                              detail::checked_axis("transpose", b, s)));
}
template <int A = -2, int B = -1, operand X>
constexpr auto transpose(X const& x) {
  struct Rule {
    static constexpr Meta infer(Text* why) {
      Meta m = detail::static_meta_or_empty<X>();
      int const a = detail::rule_axis("transpose", A, m.shape, why);
      int const b = a < 0 ? a : detail::rule_axis("transpose", B, m.shape, why);
      if (b < 0) return refuse(nullptr);
      index_t const t = m.shape[a];
      m.shape[a] = m.shape[b];
      m.shape[b] = t;
      return m;
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) { return transpose_axes(v, A, B); });
}
constexpr Array transpose(Array const& x, int a, int b) { return transpose_axes(x, a, b); }

/// squeeze<Axes...>(x) - drops axes of extent 1; without arguments all of them. No copy.
template <int... Axes, operand X>
constexpr auto squeeze(X const& x) {
  struct Rule {
    static constexpr Shape drop(Shape const& from, Text* why) {
      unsigned gone = 0;
      for (int i = 0; i < from.rank; ++i)
        if (sizeof...(Axes) == 0 && from[i] == 1) gone |= 1u << i;
      bool ok = true;
      auto const mark = [&](int axis) {
        int const a = detail::rule_axis("squeeze", axis, from, ok ? why : nullptr);
        if (a >= 0 && from[a] == 1) gone |= 1u << a;
        else if (a >= 0 && ok) refuse(why, "squeeze: axis ", a, " of ", from, " is not 1");
        ok = ok && a >= 0 && from[a] == 1;
      };
      (mark(Axes), ...);
      static_cast<void>(mark);
      Shape r;
      for (int i = 0; i < from.rank; ++i)
        if ((gone >> i & 1u) == 0) r.push_back(from[i]);
      if (!ok) r.rank = -1;
      return r;
    }
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      return Meta{m.dtype, drop(m.shape, why)};
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) {
    Text why;
    Shape const s = Rule::drop(v.shape(), &why);
    if (!s.valid()) raise(why);
    return reshape_to(v, s);
  });
}

/// unsqueeze<Axis>(x) - a new axis of extent 1 at Axis of the result. No copy.
template <int Axis, operand X>
constexpr auto unsqueeze(X const& x) {
  struct Rule {
    static constexpr Shape grow(Shape const& from, Text* why) {
      int const at = Axis < 0 ? Axis + from.rank + 1 : Axis;
      if (at < 0 || at > from.rank || from.rank == max_rank)
        return refuse(why, "unsqueeze: axis ", Axis, " out of range for ", from).shape;
      Shape r;
      for (int i = 0; i <= from.rank; ++i) r.push_back(i == at ? 1 : from[i < at ? i : i - 1]);
      return r;
    }
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      return Meta{m.dtype, grow(m.shape, why)};
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) {
    Text why;
    Shape const s = Rule::grow(v.shape(), &why);
    if (!s.valid()) raise(why);
    return reshape_to(v, s);
  });
}

/// expand<Dims...>(x) - repeated to a shape it broadcasts to. No copy.
template <index_t... Dims, operand X>
constexpr auto expand(X const& x) {
  struct Rule {
    static constexpr Shape grow(Shape const& from, Text* why) {
      constexpr Shape to = make_shape(Dims...);
      Shape const s = op::broadcast_shapes("expand", from, to, nullptr);
      return s == to ? s : refuse(why, "expand: cannot expand ", from, " to ", to).shape;
    }
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      return Meta{m.dtype, grow(m.shape, why)};
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) {
    Text why;
    if (!Rule::grow(v.shape(), &why).valid()) raise(why);
    return broadcast_to(v, make_shape(Dims...));
  });
}

/// slice_axis - elements start, start + step, ... of one axis, `count` of them. No copy.
template <class V>
constexpr V slice_axis(V const& x, int axis, index_t start, index_t count, index_t step = 1) {
  return bind<op::slice>(Attrs{{detail::checked_axis("slice", axis, x.shape()) + 16 * step, start, count}},
                         x);
}

template <class V>
constexpr V pad_axis(V const& x, int axis, index_t before, index_t after, index_t gap = 0, double value = 0);

namespace detail {

// x[i] on the tape: one node, and a gradient that is added to one place.
template <class V>
V vjp_of_at(V const& ct, Site<V> const& s, int) {
  index_t const i = s.attrs.i[0], n = s.x[0].shape()[0];
  Shape one = make_shape(1);
  for (int a = 0; a < ct.shape().rank; ++a) one.push_back(ct.shape()[a]);
  return pad_axis(reshape_to(ct, one), 0, i, n - 1 - i);
}
inline Array part_at(Attrs const& a, Meta const&, Array const& whole) { return whole.part(a.i[0]); }
inline unsigned reads_of_at(int) { return 0; }
template <class V>
inline constinit TapeRule const at_rule{"at", 1, &vjp_of_at<V>, nullptr, &reads_of_at, &part_at};

template <class V>
constexpr V at_position(V const& x, index_t i) {
  if constexpr (std::is_same_v<V, Array>)
    if (!x.recorded()) {
      Array y = x.part(i);
      Array const* const operands[] = {&x};
      if (on_tape(x)) record_on_tape(at_rule<V>, Attrs{{i}}, y, operands, 1);
      return y;
    }
  Shape rest;
  for (int a = 1; a < x.shape().rank; ++a) rest.push_back(x.shape()[a]);
  return bind_as<op::reshape>(Meta{x.dtype(), rest}, Attrs{}, slice_axis(x, 0, i, 1));
}

}  // namespace detail

/// select_first - the array at position i of the first axis, from the end if negative. No copy.
template <class V>
constexpr V select_first(V const& x, index_t i) {
  Shape const s = x.shape();
  index_t const at = s.rank > 0 && i < 0 && s[0] >= 0 ? i + s[0] : i;
  if (s.rank == 0) raise("at: a scalar has no axes, so no index ", Position{i});
  if (at < 0 || (s[0] >= 0 && at >= s[0]))
    raise("at: index ", Position{i}, " out of range for axis 0 of ", s);
  return detail::at_position(x, at);
}

template <int>
constexpr Array Array::operator[](index_t i) const {
  return select_first(*this, i);
}

/// slice<Axis, Begin, End, Step>(x) - Python's x[Begin:End:Step] along one axis; Begin and End may count from the
/// end. No copy.
template <int Axis, index_t Begin, index_t End, index_t Step = 1, operand X>
constexpr auto slice(X const& x) {
  static_assert(Step > 0, "slice: step must be positive");
  struct Rule {
    static constexpr Attrs attrs(Shape const& s, int axis) {
      index_t const n = s[axis];
      index_t b = Begin < 0 ? Begin + n : Begin, e = End < 0 ? End + n : End;
      b = b < 0 ? 0 : n >= 0 && b > n ? n : b;
      e = e < b ? b : n >= 0 && e > n ? n : e;
      return Attrs{{axis + 16 * Step, b, (e - b + Step - 1) / Step}};
    }
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      int const axis = detail::rule_axis("slice", Axis, m.shape, why);
      return axis < 0 ? refuse(nullptr) : op::slice::infer(attrs(m.shape, axis), &m, why);
    }
  };
  return detail::shaped<Rule>(x, [](auto const& v) {
    return bind<op::slice>(Rule::attrs(v.shape(), detail::checked_axis("slice", Axis, v.shape())), v);
  });
}

/// pad_axis - `before` and `after` constants at the ends of one axis and `gap` between neighbours.
template <class V>
constexpr V pad_axis(V const& x, int axis, index_t before, index_t after, index_t gap, double value) {
  if (before == 0 && after == 0 && gap == 0) return x;
  return bind<op::pad>(
      Attrs{{detail::checked_axis("pad", axis, x.shape()) + 16 * gap, before, after}, {value}}, x);
}

/// pad<Axis, Before, After>(x, value) - a constant before and after one axis.
template <int Axis, index_t Before, index_t After, operand X>
constexpr auto pad(X const& x, double value = 0) {
  struct Rule {
    static constexpr Meta infer(Text* why) {
      Meta const m = detail::static_meta_or_empty<X>();
      int const axis = detail::rule_axis("pad", Axis, m.shape, why);
      return axis < 0 ? refuse(nullptr) : op::pad::infer(Attrs{{axis, Before, After}}, &m, why);
    }
  };
  return detail::shaped<Rule>(x, [&](auto const& v) { return pad_axis(v, Axis, Before, After, 0, value); });
}

namespace detail {
template <int Axis, class X, class Y>
struct ConcatRule {
  static constexpr Meta infer(Text* why) {
    Meta const in[] = {static_meta_or_empty<X>(), static_meta_or_empty<Y>()};
    int const axis = rule_axis("concat", Axis, in[0].shape, why);
    return axis < 0 ? refuse(nullptr) : op::concat::infer(Attrs{{axis}}, in, why);
  }
};
}  // namespace detail

/// concat<Axis>(x, y, ...) - one after another along an axis.
template <int Axis = 0, operand X>
constexpr auto concat(X const& x) {
  return x;
}
template <int Axis = 0, operand X, operand Y, operand... Rest>
constexpr auto concat(X const& x, Y const& y, Rest const&... rest) {
  auto const joined = [&] {
    if constexpr (refused<X, Y>) {
      return Refused{};
    } else if constexpr (typed<X> && typed<Y>) {
      using R = typename decltype(detail::result_type<detail::ConcatRule<Axis, X, Y>>())::type;
      Attrs const attrs{{detail::checked_axis("concat", Axis, x.shape())}};
      if constexpr (refused<R>) return Refused{};
      else return detail::wrap<R>(bind<op::concat>(attrs, detail::untyped(x), detail::untyped(y)));
    } else {
      Attrs const attrs{{detail::checked_axis("concat", Axis, x.shape())}};
      return bind<op::concat>(attrs, detail::untyped(x), detail::untyped(y));
    }
  }();
  if constexpr (sizeof...(Rest) == 0) return joined;
  else return concat<Axis>(joined, rest...);
}

/// stack<Axis>(x, y, ...) - joined along a new axis.
template <int Axis = 0, operand... X>
constexpr auto stack(X const&... x) {
  return concat<Axis>(unsqueeze<Axis>(x)...);
}

}  // namespace dfdx
