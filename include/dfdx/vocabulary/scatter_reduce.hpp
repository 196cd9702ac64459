// SPDX-License-Identifier: BSL-1.0
// scatter_reduce and index_reduce: what meets at a computed place is added, multiplied, averaged, or its extreme taken.
#pragma once

#include <dfdx/ops/rounding.hpp>
#include <dfdx/ops/scatter_reduce.hpp>
#include <dfdx/vocabulary/index_copy.hpp>

namespace dfdx {

/// Reduce - how scatter_reduce joins elements that meet.
enum class Reduce { sum, prod, mean, amax, amin };

namespace detail {

// x and src joined: extremes and products by a kernel(which, x, src), the rest by sums(src) and counts(dtype) of what
// comes to each place. (Sums onto x itself are those of scatter_add and index_add.)
template <class V, class Kernel, class Sums, class Counts>
constexpr V joined(Reduce how, bool include_self, V const& x, V const& src, Kernel const& kernel,
                   Sums const& sums, Counts const& counts) {
  if (how == Reduce::amax || how == Reduce::amin) return kernel(how == Reduce::amax ? 1 : 2, x, src);
  DType const given = x.dtype(), wide = is_floating(given) ? promote(given, DType::f32) : DType::i64;
  V const all = cast_to(x, wide), parts = cast_to(src, wide);  // rounded once, and counts are no bytes
  if (how == Reduce::prod) return cast_to(kernel(0, all, parts), given);
  V const total = sums(parts);
  V const n = counts(wide), one = full_as(n, 1.0);
  auto const over = [&](V const& sum, V const& count) {
    return is_floating(given) ? apply<op::div>(sum, count) : apply<op::floor_divide>(sum, count);
  };
  if (include_self) return cast_to(over(all + total, n + one), given);
  V const alone = how == Reduce::sum ? total : over(total, apply<op::maximum>(n, one));
  return cast_to(apply<op::where>(apply<op::equal>(n, zeros_as(n)), all, alone), given);
}

// The shapes are those of scatter_add: of a source that is larger than the index what fits is used.
struct ScatterReduce {
  int axis;
  Reduce how;
  bool include_self = true;

  template <int = 0>
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis(op::scatter_reduce::name, axis, in[0].shape, why);
    if (a < 0) return refuse(nullptr);
    Meta const all[] = {in[0], in[1], {in[2].dtype, used(in[2].shape, in[1].shape)}};
    return op::scatter_reduce::infer(Attrs{{a}}, all, why);
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index, V const& src) const {
    V part = src;
    Shape const fits = used(src.shape(), index.shape());
    for (int i = 0; i < fits.rank; ++i)
      if (fits[i] != src.shape()[i]) part = slice_axis(part, i, 0, fits[i]);
    Attrs const a = attrs_for(Caller::scatter_reduce, normalize_axis(axis, x.shape().rank));
    Meta const in[] = {x.meta(), index.meta(), part.meta()};
    bool const adds = how == Reduce::sum || how == Reduce::mean;  // by ops that ask less of shapes
    if (Graph* const g = recorder_of(x); g != nullptr && adds) require_same<op::scatter_reduce>(*g, a, in, 3);
    if (how == Reduce::sum && include_self) return bind<op::scatter_onto>(a, x, index, part);
    auto const kernel = [&](index_t which, V const& to, V const& from) {
      return bind<op::scatter_reduce>(Attrs{{a.i[0], which + (include_self ? 0 : 4), a.i[2]}}, to, index,
                                      from);
    };
    auto const sums = [&](V const& from) {
      return bind_as<op::scatter>(Meta{from.dtype(), x.shape()}, a, from, index);
    };
    auto const counts = [&](DType d) { return sums(full_as(part, Meta{d, part.shape()}, 1)); };
    return joined(how, include_self, x, part, kernel, sums, counts);
  }

 private:
  template <int = 0>
  static constexpr Shape used(Shape src, Shape const& index) {
    for (int i = 0; i < index.rank && index.rank == src.rank; ++i)
      if (index[i] >= 0 && src[i] > index[i]) src[i] = index[i];
    return src;
  }
};

// The same with a list of places: they are those of whole parts, which are counted but once.
struct IndexReduce {
  int axis;
  Reduce how;
  bool include_self = true;

  template <int = 0>
  constexpr Meta infer(Meta const* in, Text* why) const {
    return index_joined("index_reduce", axis, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index, V const& src) const {
    int const a = normalize_axis(axis, x.shape().rank);
    if (how == Reduce::sum && include_self) return with_parts_added(Caller::index_reduce, x, a, index, src);
    auto const narrow = [a](Shape const& s) { return with_extent(op::reduced_shape(s, -1), a, s[a]); };
    auto const sum = [&](Shape const& to, V const& from) {
      if (a <= 0) return bind<op::rows_add>(attrs_for(Caller::index_reduce, to[0]), from, index);
      return bind_as<op::scatter>(Meta{from.dtype(), to}, attrs_for(Caller::index_reduce, a), from,
                                  for_parts("index_reduce", index, from.shape(), a));
    };
    auto const kernel = [&](index_t which, V const& to, V const& from) {
      return bind<op::scatter_reduce>(attrs_for(Caller::index_reduce, a, which + (include_self ? 0 : 4)), to,
                                      for_parts("index_reduce", index, src.shape(), a), from);
    };
    auto const sums = [&](V const& from) { return sum(x.shape(), from); };
    auto const counts = [&](DType d) {
      return sum(narrow(x.shape()), full_as(src, Meta{d, narrow(src.shape())}, 1));
    };
    return joined(how, include_self, x, src, kernel, sums, counts);
  }
};

}  // namespace detail

/// scatter_reduce<Axis, Reduce::amax>(x, index, src), scatter_reduce(x, axis, index, src, Reduce::amax) - x with the
/// elements of src joined at given places along an axis: sums, products, means, largest or smallest. One more argument,
/// `false`, leaves the elements of x out where src has any (PyTorch's include_self). Elements that attain an extreme
/// share its gradient equally. Of a source that is larger than the index the rest does not count.
///
/// Math      y = x, then y[.., index[i], ..] = join(y[.., index[i], ..], src[i])
/// Shapes    x: [S...], index: [I...] of equal rank, I <= S off the axis, src: [J...] with J >= I -> [S...]
/// Dtypes    x, src: one, all but bool; means of integers are rounded down, 16 bits joined in f32; index: i32 i64 u8
/// Errors    "scatter_reduce: index [2, 4] does not fit source [2, 3]"; "scatter_reduce: index 30 out of range for axis
///           1 of [2, 3]" (thrown, also by compiled programs); second derivatives of products know nothing of factors
///           that are 0
/// Source    PyTorch's scatter_reduce
template <int Axis, Reduce How, bool IncludeSelf = true, operand X, operand I, operand S>
constexpr auto scatter_reduce(X const& x, I const& index, S const& src) {
  return detail::call(detail::Fixed<detail::ScatterReduce{Axis, How, IncludeSelf}>{}, x, index, src);
}
template <operand X, operand I, operand S>
constexpr auto scatter_reduce(X const& x, int axis, I const& index, S const& src, Reduce how,
                              bool include_self = true) {
  return detail::call(detail::ScatterReduce{axis, how, include_self}, x, index, src);
}

/// index_reduce<Axis, Reduce::amax>(x, index, src), index_reduce(x, axis, index, src, Reduce::amax) - the same of whole
/// parts, by a list of places: what the edges of a graph bring to its nodes, rows to the groups that they belong to.
///
/// Math      y = x, then y[.., index_i, ..] = join(y[.., index_i, ..], src[.., i, ..])
/// Shapes    x: [S...], index: [I], src: [S...] with I on the axis -> [S...]
/// Dtypes    those of scatter_reduce
/// Errors    "index_reduce: source [2, 4] does not fit [2, 3] at index [1]"
/// Source    PyTorch's index_reduce
template <int Axis, Reduce How, bool IncludeSelf = true, operand X, operand I, operand S>
constexpr auto index_reduce(X const& x, I const& index, S const& src) {
  return detail::call(detail::Fixed<detail::IndexReduce{Axis, How, IncludeSelf}>{}, x, index, src);
}
template <operand X, operand I, operand S>
constexpr auto index_reduce(X const& x, int axis, I const& index, S const& src, Reduce how,
                            bool include_self = true) {
  return detail::call(detail::IndexReduce{axis, how, include_self}, x, index, src);
}

}  // namespace dfdx
