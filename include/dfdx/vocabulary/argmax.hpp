// SPDX-License-Identifier: BSL-1.0
// Positions of the largest and the smallest elements: argmax(x), argmax<1>(x), argmax(a, {1}).
#pragma once

#include <dfdx/ops/argmax.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx {

namespace detail {

template <bool Smallest>
struct ArgExtremum {
  static constexpr char const* name = Smallest ? "argmin" : "argmax";
  Over over;  // one axis; none for the position in the flattened value
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    if (over.axes.n > 1) return refuse(why, name, ": one axis or none required");
    if (flattens(s)) {
      Meta const flat{in->dtype, make_shape(s.numel())};
      Meta r = op::argmax::infer(Attrs{{0, Smallest}}, &flat, why);
      if (r.valid()) r.shape = over.keep ? op::reduced_shape(s, over.mask(s.rank)) : Shape{};
      return r;
    }
    int const axis = rule_axis(name, over.axes.v[0], s, why);
    if (axis < 0) return refuse(nullptr);
    Meta r = op::argmax::infer(Attrs{{axis, Smallest}}, in, why);
    if (r.valid() && !over.keep) r.shape = dropped(r.shape, index_t{1} << axis);
    return r;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    bool const all = flattens(x.shape());
    V const from =
        either(all, [&] { return reshape_to(x, make_shape(x.shape().numel())); }, [&] { return x; });
    int const axis = all ? 0 : normalize_axis(over.axes.v[0], x.shape().rank);
    if (Graph* const g = recorder_of(x);
        g != nullptr && from.shape()[axis] < 0 && from.shape()[axis] != extent::unknown)
      g->requirements.push_back(SameExtent{name, from.shape()[axis], 1, true});
    return reshape_to(bind<op::argmax>(Attrs{{axis, Smallest}}, from), y.shape);
  }

 private:
  constexpr bool flattens(Shape const& s) const {
    return over.axes.n == 0 || (s.rank == 0 && over.mask(0) == 0);
  }
};
template <bool Smallest, class P, class X>
constexpr auto arg_extremum(X const& x, P const& over) {
  return call(made<ArgExtremum<Smallest>>(over), x);
}

}  // namespace detail

/// argmax, argmin - position of the largest, smallest element along an axis, the first if several; without an axis that
/// in the flattened value.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    any; the result i64
/// Errors    "argmax: one axis or none required"
/// Source    PyTorch's argmax and argmin
template <int... A, operand X>
constexpr auto argmax(X const& x) {
  return detail::arg_extremum<false>(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto argmax(X const& x, Keepdim) {
  return detail::arg_extremum<false>(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto argmax(X const& x, Axes const& axes, bool keep = false) {
  return detail::arg_extremum<false>(x, detail::Over{axes, keep});
}

template <int... A, operand X>
constexpr auto argmin(X const& x) {
  return detail::arg_extremum<true>(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto argmin(X const& x, Keepdim) {
  return detail::arg_extremum<true>(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto argmin(X const& x, Axes const& axes, bool keep = false) {
  return detail::arg_extremum<true>(x, detail::Over{axes, keep});
}

}  // namespace dfdx
