// SPDX-License-Identifier: BSL-1.0
// index_copy: parts of a value replaced.
#pragma once

#include <dfdx/ops/index_copy.hpp>
#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

struct IndexCopy {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("index_copy", axis, in[0].shape, why);
    return a < 0 ? refuse(nullptr) : op::index_copy::infer(Attrs{{a}}, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index, V const& src) const {
    return bind<op::index_copy>(Attrs{{normalize_axis(axis, x.shape().rank)}}, x, index, src);
  }
};

}  // namespace detail

/// index_copy<Axis>(x, index, src), index_copy(x, axis, index, src) - x with the parts at a list of places along an
/// axis replaced by those of src. Of a state that `stateful` keeps, a program writes these parts only.
///
/// Math      y[.., index_i, ..] = src[.., i, ..], y = x elsewhere
/// Shapes    x: [S...], index: [I], src: [S...] with I on the axis -> [S...]
/// Errors    "index_copy: source [2, 4] does not fit [2, 3] at index [1]"; "index_copy: index 30 out of range for axis
///           1 of [2, 3]" (thrown, also by compiled programs)
template <int Axis, operand X, operand I, operand S>
constexpr auto index_copy(X const& x, I const& index, S const& src) {
  return detail::call(detail::Fixed<detail::IndexCopy{Axis}>{}, x, index, src);
}
template <operand X, operand I, operand S>
constexpr auto index_copy(X const& x, int axis, I const& index, S const& src) {
  return detail::call(detail::IndexCopy{axis}, x, index, src);
}

}  // namespace dfdx
