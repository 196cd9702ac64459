// SPDX-License-Identifier: BSL-1.0
// index_copy and index_add: parts of a value, at a list of places, replaced or added to.
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

// x, if the parts of src along an axis have a place each in a list, and join what has their shape and dtype.
template <int = 0>
constexpr Meta index_joined(char const* name, int axis, Meta const* in, Text* why) {
  Meta const &x = in[0], &index = in[1], &src = in[2];
  int const a = rule_axis(name, axis, x.shape, why);
  if (a < 0) return refuse(nullptr);
  if (index.shape.rank != 1 || !op::detail::is_index(index.dtype))
    return refuse(why, name, ": a list of integers required, got ", index.dtype, " ", index.shape);
  bool same = x.shape.rank == src.shape.rank;
  for (int i = 0; same && i < src.shape.rank; ++i)
    same = op::extents_agree(i == a ? index.shape[0] : x.shape[i], src.shape[i]);
  if (!same)
    return refuse(why, name, ": source ", src.shape, " does not fit ", x.shape, " at index ", index.shape);
  if (x.dtype != src.dtype)
    return refuse(why, name, ": one dtype required, got ", x.dtype, " and ", src.dtype);
  if (x.dtype == DType::boolean) return refuse(why, name, ": numeric dtype required, got bool");
  return x;
}

// x and the parts of src along an axis, added at their places.
template <class V>
constexpr V with_parts_added(Caller by, V const& x, int axis, V const& index, V const& src) {
  return either(
      axis <= 0, [&] { return bind<op::rows_onto>(attrs_for(by), x, index, src); },
      [&] {
        V const places = for_parts("index_add", index, src.shape(), axis);
        return bind<op::scatter_onto>(attrs_for(by, axis), x, places, src);
      });
}
struct IndexSum {
  int axis;
  template <int = 0>
  constexpr Meta infer(Meta const* in, Text* why) const {
    return index_joined("index_add", axis, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index, V const& src) const {
    return with_parts_added(Caller::index_add, x, normalize_axis(axis, x.shape().rank), index, src);
  }
};
template <class P, operand X, operand I, operand S>
constexpr auto index_add_over(X const& x, I const& index, S const& src, P const& axis, double alpha) {
  auto const sum = [&](auto const& parts) { return call(made<IndexSum>(axis), x, index, parts); };
  return alpha == 1 ? sum(src) : sum(src * full_as(src, alpha));
}

}  // namespace detail

/// index_copy<Axis>(x, index, src), index_copy(x, axis, index, src) - x with the parts at a list of places along an
/// axis replaced by those of src. Of a state that `stateful` keeps, a program writes these parts only.
///
/// Math      y[.., index_i, ..] = src[.., i, ..], y = x elsewhere
/// Shapes    x: [S...], index: [I], src: [S...] with I on the axis -> [S...]
/// Dtypes    x, src: one, any; index: i32 i64 u8
/// Errors    "index_copy: source [2, 4] does not fit [2, 3] at index [1]"; "index_copy: index 30 out of range for axis
///           1 of [2, 3]" (thrown, also by compiled programs)
/// Source    PyTorch's index_copy
template <int Axis, operand X, operand I, operand S>
constexpr auto index_copy(X const& x, I const& index, S const& src) {
  return detail::call(detail::Fixed<detail::IndexCopy{Axis}>{}, x, index, src);
}
template <operand X, operand I, operand S>
constexpr auto index_copy(X const& x, int axis, I const& index, S const& src) {
  return detail::call(detail::IndexCopy{axis}, x, index, src);
}

/// index_add<Axis>(x, index, src, alpha), index_add(x, axis, index, src, alpha) - x plus alpha times the parts of src,
/// each added at its place along an axis. Of a state that `stateful` keeps, a program writes these parts only.
///
/// Math      y = x, then y[.., index_i, ..] += alpha src[.., i, ..]
/// Shapes    x: [S...], index: [I], src: [S...] with I on the axis -> [S...]
/// Dtypes    x, src: one, all but bool; alpha is cast to it; index: i32 i64 u8
/// Errors    "index_add: source [2, 4] does not fit [2, 3] at index [1]"
/// Source    PyTorch's index_add
template <int Axis, operand X, operand I, operand S>
constexpr auto index_add(X const& x, I const& index, S const& src, double alpha = 1) {
  return detail::index_add_over(x, index, src, detail::Fixed<Axis>{}, alpha);
}
template <operand X, operand I, operand S>
constexpr auto index_add(X const& x, int axis, I const& index, S const& src, double alpha = 1) {
  return detail::index_add_over(x, index, src, axis, alpha);
}

}  // namespace dfdx
