// SPDX-License-Identifier: BSL-1.0
// Functions along an axis in which order matters: cumulative sums and products, sort, topk.
#pragma once

#include <tuple>

#include <dfdx/ops/exponential.hpp>
#include <dfdx/ops/order.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx {

namespace detail {

/// Along - what functions along one axis have for parameters.
struct Along {
  int axis;
  index_t which = 0;  // of the op: reversed, smallest, descending
};
// These functions take a scalar as a list of one, of which axis 0 and -1 are asked, as in PyTorch.
constexpr Shape lined(Shape const& s) { return s.rank == 0 ? make_shape(1) : s; }
// An op whose attributes are an axis and a choice, and whose result has its operand's shape.
template <class Op>
struct AlongAxis {
  Along along;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Meta const line{in->dtype, lined(in->shape)};
    int const a = normalize_axis(along.axis, line.shape.rank);
    if (a < 0) return rule_axis(Op::name, along.axis, in->shape, why), refuse(nullptr);
    Meta r = Op::infer(Attrs{{a, along.which}}, &line, why);
    if (r.valid()) r.shape = in->shape;
    return r;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Shape const s = lined(y.shape);
    Attrs const attrs{{normalize_axis(along.axis, s.rank), along.which}};
    return reshape_to(bind_as<Op>(Meta{y.dtype, s}, attrs, reshape_to(x, s)), y.shape);
  }
};
template <class Op, Literal Name, class P, operand X>
constexpr auto along_axis(X const& x, P const& axis, index_t which = 0) {
  if constexpr (is_fixed<P>)
    return call(named<Name>(FixedType<AlongAxis<Op>{{P::value}}>{{}, {{P::value, which}}}), x);
  else return call(named<Name>(AlongAxis<Op>{{axis, which}}), x);
}
struct GatherAlong {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (in->shape.rank == 0 && in[1].shape.rank == 0) return *in;
    return Gather{axis}.infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x, V const& index) const {
    if (y.shape.rank == 0) return x;
    return Gather{axis}.template run<T>(y, x, index);
  }
};
template <class P, operand X, operand I>
constexpr auto gather_along(X const& x, I const& index, P const& axis) {
  return call(made<GatherAlong>(axis), x, index);
}

// y_i = x_0 o ... o x_i for an associative o, in log2 n steps: each joins what lies 1, 2, 4, ... apart. So its
// derivatives are those of o, also where some x are zero. An o may know how it is done in order.
template <class Join>
struct Cumulative {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (in->shape.rank == 0 && normalize_axis(axis, 1) == 0) return Join::infer(in, why);
    int const a = rule_axis(Join::name, axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    if (in->shape[a] < 0)
      return refuse(why, Join::name, ": axis ", a, " of ", in->shape, " has no fixed extent");
    return Join::infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& m, V const& x) const {
    if (m.shape.rank == 0) return x;
    int const a = normalize_axis(axis, m.shape.rank);
    index_t const n = m.shape[a];
    if constexpr (requires { Join::in_order(x, a); })
      if (n > 1) return Join::in_order(x, a);
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
  // One element after another: the recurrence y_i = x_i y_{i-1} from y_0 = x_0 on, or, where nothing but numbers is
  // asked for, what it comes to.
  template <class V>
  static constexpr V in_order(V const& x, int axis) {
    if constexpr (std::is_same_v<V, Array>)
      if (!DFDX_IN_CONSTANT_EXPRESSION && wants_values(x)) {
        V const y(x.meta());
        op::detail::running_products(axis, x.operand(), y.operand());
        return y;
      }
    // To which -0 is added: 0 would take the sign of a product that is -0.
    V const first = pad_axis(slice_axis(x, axis, 0, 1), axis, 0, x.shape()[axis] - 1, 0, -0.0);
    return bind<op::recurrence>(Attrs{{axis}}, x, first);
  }
};
struct LogAdd {
  static constexpr char const* name = "logcumsumexp";
  static constexpr Meta infer(Meta const* in, Text* why) {
    if (!is_floating(in->dtype)) return refuse(why, name, ": floating dtype required, got ", in->dtype);
    return *in;
  }
  template <class T, class V>
  static constexpr V join(V const& x, V const& y) {
    return bind_element<op::logaddexp, T>(Attrs{}, x, y);
  }
};
// Rounded once: in 16 bits each of the log2 n steps would round.
template <class Join, class P, operand X>
constexpr auto cumulative(X const& x, P const& axis) {
  return rounded_as(call(made<Cumulative<Join>>(axis), in_f32(x)), x);
}

template <Literal Name, class P, operand X>
constexpr auto cummax_along(X const& x, P const& axis, bool smallest) {
  auto const index = along_axis<op::argcummax, Name>(x, axis, smallest);
  return std::tuple(gather_along(x, index, axis), index);
}
template <Literal Name, class P, operand X>
constexpr auto sort_along(X const& x, P const& axis, bool descending) {
  auto const index = along_axis<op::argsort, Name>(x, axis, descending);
  return std::tuple(gather_along(x, index, axis), index);
}

/// Top - the first k along an axis of what sort finds.
struct Top {
  index_t k;
  int axis;
  bool largest = true;
  constexpr Meta infer(Meta const* in, Text* why) const {
    // Of a scalar the one element, or none, which PyTorch gives as a scalar too.
    Shape const s = lined(in->shape);
    int const a = normalize_axis(axis, s.rank);
    if (a < 0) return rule_axis("topk", axis, in->shape, why), refuse(nullptr);
    if (k < 0 || (s[a] >= 0 && k > s[a]))
      return refuse(why, "topk: ", Position{k}, " elements wanted along axis ", a, " of ", in->shape);
    return Meta{DType::i64, in->shape.rank == 0 ? in->shape : with_extent(s, a, k)};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    if (y.shape.rank == 0) return full_as(x, y, 0);
    int const a = normalize_axis(axis, y.shape.rank);
    // Of an extent known at run time only slice asks whether there are as many.
    if (k == 0 || x.shape()[a] < 0) return slice_axis(bind<op::argsort>(Attrs{{a, largest}}, x), a, 0, k);
    return bind<op::argsort>(Attrs{{a, largest, k}}, x);
  }
};

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
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    all; integers and bool in i64
/// Errors    "cumsum: axis 2 out of range for [2, 3]"
/// Source    elementary
template <int Axis, operand X>
constexpr auto cumsum(X const& x) {
  return detail::along_axis<op::cumsum, "cumsum">(detail::summable(x), detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto cumsum(X const& x, int axis) {
  return detail::along_axis<op::cumsum, "cumsum">(detail::summable(x), axis);
}

/// cumprod<Axis>(x), cumprod(x, axis) - products of the elements up to each.
///
/// Math      y_i = prod_{j <= i} x_j
/// Shapes    x: [S...] -> [S...]
/// Dtypes    all; integers and bool in i64; 16 bits are computed in f32 and rounded at the end
/// Errors    "cumprod: axis 0 of [dyn, 3] has no fixed extent"
/// Source    elementary
template <int Axis, operand X>
constexpr auto cumprod(X const& x) {
  return detail::cumulative<detail::Times>(detail::summable(x), detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto cumprod(X const& x, int axis) {
  return detail::cumulative<detail::Times>(detail::summable(x), axis);
}

/// logcumsumexp<Axis>(x), logcumsumexp(x, axis) - log of the sum of e^x up to each.
///
/// Math      y_i = log sum_{j <= i} e^x_j
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "logcumsumexp: floating dtype required, got i32"
/// Source    PyTorch's logcumsumexp
template <int Axis, operand X>
constexpr auto logcumsumexp(X const& x) {
  return detail::cumulative<detail::LogAdd>(x, detail::Fixed<Axis>{});
}
template <operand X>
constexpr auto logcumsumexp(X const& x, int axis) {
  return detail::cumulative<detail::LogAdd>(x, axis);
}

/// cummax<Axis>(x), cummin<Axis>(x) and cummax(x, axis), cummin(x, axis) - the largest, smallest element up to each,
/// and its position: a tuple.
///
/// Math      y_i = max_{j <= i} x_j
/// Shapes    x: [S...] -> [S...], [S...]
/// Dtypes    any; the positions i64
/// Source    PyTorch's cummax and cummin
template <int Axis, operand X>
constexpr auto cummax(X const& x) {
  return detail::cummax_along<"cummax">(x, detail::Fixed<Axis>{}, false);
}
template <operand X>
constexpr auto cummax(X const& x, int axis) {
  return detail::cummax_along<"cummax">(x, axis, false);
}
template <int Axis, operand X>
constexpr auto cummin(X const& x) {
  return detail::cummax_along<"cummin">(x, detail::Fixed<Axis>{}, true);
}
template <operand X>
constexpr auto cummin(X const& x, int axis) {
  return detail::cummax_along<"cummin">(x, axis, true);
}

/// sort<Axis, Descending>(x), sort(x, axis, descending) - the elements in order and where each came from: a tuple.
/// Equal elements stay in their order; NaN counts as the largest. argsort gives the positions alone.
///
/// Shapes    x: [S...] -> [S...], [S...]
/// Dtypes    any; the positions i64
/// Source    PyTorch's sort and argsort, stable
template <int Axis = -1, bool Descending = false, operand X>
constexpr auto sort(X const& x) {
  return detail::sort_along<"sort">(x, detail::Fixed<Axis>{}, Descending);
}
template <operand X>
constexpr auto sort(X const& x, int axis, bool descending = false) {
  return detail::sort_along<"sort">(x, axis, descending);
}
template <int Axis = -1, bool Descending = false, operand X>
constexpr auto argsort(X const& x) {
  return detail::along_axis<op::argsort, "argsort">(x, detail::Fixed<Axis>{}, Descending);
}
template <operand X>
constexpr auto argsort(X const& x, int axis, bool descending = false) {
  return detail::along_axis<op::argsort, "argsort">(x, axis, descending);
}

/// topk<K, Axis, Largest>(x), topk(x, k, axis, largest) - the k largest elements, the largest first, and where they
/// are: a tuple; or the smallest.
///
/// Shapes    x: [.., N, ..] -> [.., K, ..], [.., K, ..]
/// Dtypes    any; the positions i64
/// Errors    "topk: 6 elements wanted along axis 1 of [2, 5]"
/// Source    PyTorch's topk
template <index_t K, int Axis = -1, bool Largest = true, operand X>
constexpr auto topk(X const& x) {
  auto const index = detail::call(detail::Fixed<detail::Top{K, Axis, Largest}>{}, x);
  return std::tuple(detail::gather_along(x, index, detail::Fixed<Axis>{}), index);
}
template <operand X>
constexpr auto topk(X const& x, index_t k, int axis = -1, bool largest = true) {
  auto const index = detail::call(detail::Top{k, axis, largest}, x);
  return std::tuple(detail::gather_along(x, index, axis), index);
}

/// searchsorted(list, x, right) - where elements of x belong in ascending lists; bucketize(x, list, right) likewise.
///
/// Shapes    list: [N], x: any, or list: [B..., N], x: [B..., M] -> that of x, i64
/// Dtypes    list, x: one, any; the result i64
/// Errors    "searchsorted: lists [2, 5] do not fit values [3, 4]"
/// Source    PyTorch's searchsorted and bucketize
template <operand L, operand X>
constexpr auto searchsorted(L const& list, X const& x, bool right = false) {
  return detail::call(detail::FixedType<detail::SearchSorted{}>{{}, {right}}, list, x);
}
template <operand X, operand L>
constexpr auto bucketize(X const& x, L const& boundaries, bool right = false) {
  using namespace detail;
  return call(named<"bucketize">(FixedType<SearchSorted{}>{{}, {right}}), boundaries, x);
}

}  // namespace dfdx
