// SPDX-License-Identifier: BSL-1.0
// Functions that change shape. Axes and extents of a Tensor are template arguments, so that the result is a type:
// reshape<6>(x), transpose<0, 1>(x); or function arguments, of an Array: reshape(a, {6}). All are views.
#pragma once

#include <limits>

#include <dfdx/vocabulary/call.hpp>

namespace dfdx {

/// reshape_to - the same elements in row-major order under another shape; one extent may be -1.
///
/// Shapes    x: [S...] -> [R...], with as many elements
/// Dtypes    any
/// Errors    "reshape: cannot view [2, 3] as [4]"
/// Source    elementary
template <class V>
constexpr V reshape_to(V const& x, Shape const& shape) {
  Shape const s = op::reshape::target(x.shape(), shape, nullptr);
  if (!s.valid()) {
    Text why;
    op::reshape::target(x.shape(), shape, &why);
    raise(why);
  }
  if (s == x.shape()) return x;
  return bind_as<op::reshape>(Meta{x.dtype(), s}, Attrs{}, x);
}
/// permute_axes - axes in another order, given as a packed permutation (op::pack_axes).
///
/// Shapes    x: [S...] -> [S permuted]
/// Dtypes    any
/// Source    elementary
template <class V>
constexpr V permute_axes(V const& x, index_t packed) {
  return bind<op::permute>(Attrs{{packed}}, x);
}
/// slice_axis - elements start, start + step, ... of one axis, `count` of them.
///
/// Shapes    x: [.., N, ..] -> [.., count, ..]
/// Dtypes    any
/// Errors    "slice: axis 2 out of range for [2, 3]"
/// Source    elementary
template <class V>
constexpr V slice_axis(V const& x, int axis, index_t start, index_t count, index_t step = 1) {
  return bind<op::slice>(Attrs{{detail::checked_axis("slice", axis, x.shape()) + 16 * step, start, count}},
                         x);
}
/// pad_axis - `before` and `after` constants at the ends of one axis and `gap` between neighbours.
///
/// Shapes    x: [.., N, ..] -> [.., before + N + gap (N - 1) + after, ..]
/// Dtypes    any
/// Source    elementary
template <class V>
constexpr V pad_axis(V const& x, int axis, index_t before, index_t after, index_t gap = 0, double value = 0) {
  if (before == 0 && after == 0 && gap == 0) return x;
  return bind<op::pad>(
      Attrs{{detail::checked_axis("pad", axis, x.shape()) + 16 * gap, before, after}, {value}}, x);
}

namespace detail {

// A rule whose result is a reshape of its operand.
struct Reshaped {
  template <class, class V>
  static constexpr V run(Meta const& y, V const& x) {
    if (y.shape == x.shape()) return x;
    return bind_as<op::reshape>(y, Attrs{}, x);
  }
};

struct Reshape : Reshaped {
  Shape to;
  constexpr explicit Reshape(Shape const& s) : to(s) {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    return Meta{in->dtype, op::reshape::target(in->shape, to, why)};
  }
};

struct Permute {
  Axes axes;
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (axes.n != in->shape.rank || axes.mask(axes.n) < 0)
      return refuse(why, "permute: axes must name each axis of ", in->shape, " once");
    return op::permute::infer(Attrs{{packed()}}, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return bind_as<op::permute>(y, Attrs{{packed()}}, x);
  }
  constexpr index_t packed() const {
    int a[max_rank] = {};
    for (int i = 0; i < axes.n; ++i) a[i] = normalize_axis(axes.v[i], axes.n);
    return op::pack_axes(a, axes.n);
  }
};

struct Transpose {
  int first, second;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("transpose", first, in->shape, why);
    int const b = a < 0 ? a : rule_axis("transpose", second, in->shape, why);
    if (b < 0) return refuse(nullptr);
    Meta r = *in;
    r.shape[a] = in->shape[b];
    r.shape[b] = in->shape[a];
    return r;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int axes[max_rank] = {}, rank = y.shape.rank;
    for (int i = 0; i < rank; ++i) axes[i] = i;
    int const a = normalize_axis(first, rank), b = normalize_axis(second, rank);
    axes[a] = b;
    axes[b] = a;
    return bind_as<op::permute>(y, Attrs{{op::pack_axes(axes, rank)}}, x);
  }
};

struct Squeeze : Reshaped {
  Axes axes;
  constexpr explicit Squeeze(Axes const& a) : axes(a) {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    index_t mask = axes.mask_or_all(s.rank);
    if (mask < 0) return refuse(why, "squeeze: axis ", axes.offender(mask), axes.fault(mask), s);
    for (int i = 0; i < s.rank; ++i) {
      if ((mask >> i & 1) != 0 && s[i] < 0)
        return refuse(why, "squeeze: axis ", i, " of ", s, " has no fixed extent");
      if (s[i] != 1) mask &= ~(index_t{1} << i);
    }
    return Meta{in->dtype, dropped(s, mask)};
  }
};

struct Unsqueeze : Reshaped {
  int axis;
  constexpr explicit Unsqueeze(int a) : axis(a) {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    int const at = normalize_axis(axis, s.rank + 1);
    if (at < 0 || s.rank == max_rank) return refuse(why, "unsqueeze: axis ", axis, " out of range for ", s);
    Shape r;
    for (int i = 0; i <= s.rank; ++i) r.push_back(i == at ? 1 : s[i < at ? i : i - 1]);
    return Meta{in->dtype, r};
  }
};

struct Expand {
  Shape to;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const t = target(in->shape), s = op::broadcast_shapes("expand", in->shape, t, nullptr);
    bool fits = s == t;
    for (int i = 0; fits && i < t.rank; ++i) {
      int const j = i - (t.rank - in->shape.rank);
      fits = op::is_extent(t[i]) && (t[i] != extent::unknown || (j >= 0 && in->shape[j] == t[i]));
    }
    if (!fits) return refuse(why, "expand: cannot expand ", in->shape, " to ", to);
    return Meta{in->dtype, s};
  }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& x) {
    return broadcast_to(x, y.shape);
  }
  // An extent of -1 keeps that of the operand.
  constexpr Shape target(Shape const& from) const {
    Shape r = to;
    for (int i = 0; i < r.rank; ++i) {
      int const j = i - (r.rank - from.rank);
      if (r[i] == extent::unknown && j >= 0) r[i] = from[j];
    }
    return r;
  }
};

struct Slice {
  int axis;
  index_t begin, end, step;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("slice", axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    if (step < 1) return refuse(why, "slice: step must be positive");
    if (in->shape[a] < 0 && (begin < 0 || end < 0 || end == std::numeric_limits<index_t>::max()))
      return refuse(why, "slice: axis ", a, " of ", in->shape, " has no fixed extent to count from");
    return op::slice::infer(attrs(in->shape, a), in, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const a = normalize_axis(axis, y.shape.rank);
    return bind_as<op::slice>(y, attrs(x.shape(), a < 0 ? 0 : a), x);  // g++ 12 warns of -1
  }
  constexpr Attrs attrs(Shape const& s, int a) const {
    index_t const n = s[a];
    index_t b = begin < 0 ? begin + n : begin, e = end < 0 ? end + n : end;
    b = b < 0 ? 0 : n >= 0 && b > n ? n : b;
    e = e < b ? b : n >= 0 && e > n ? n : e;
    index_t const count = e <= b ? 0 : (e - b - 1) / step + 1;
    return Attrs{{a + 16 * (count > 1 ? step : 1), b, count}};
  }
};

}  // namespace detail

/// reshape - the same elements in row-major order under another shape; one extent may be -1. No copy where strides
/// allow.
///
/// Shapes    x: [S...] -> [R...], with as many elements
/// Dtypes    any
/// Errors    "reshape: cannot view [2, 3] as [4]"
/// Source    elementary
template <index_t... Dims, operand X>
constexpr auto reshape(X const& x) {
  return detail::call(detail::Fixed<detail::Reshape{make_shape(Dims...)}>{}, x);
}
template <operand X>
constexpr auto reshape(X const& x, Extents const& shape) {
  return detail::call(detail::Reshape{shape.shape}, x);
}
/// view - reshape by another name, as in PyTorch; it may copy.
///
/// Shapes    x: [S...] -> [R...], with as many elements
/// Dtypes    any
/// Errors    "view: cannot view [2, 3] as [4]"
/// Source    PyTorch's view
template <index_t... Dims, operand X>
constexpr auto view(X const& x) {
  return detail::call(detail::named<"view">(detail::Fixed<detail::Reshape{make_shape(Dims...)}>{}), x);
}
template <operand X>
constexpr auto view(X const& x, Extents const& shape) {
  return detail::call(detail::named<"view">(detail::Reshape{shape.shape}), x);
}

/// permute<1, 0>(x), permute(x, {1, 0}) - axis i of the result is axis axes[i] of x. No copy.
///
/// Shapes    x: [S...] -> [S permuted]
/// Dtypes    any
/// Errors    "permute: axes must name each axis of [2, 3] once"
/// Source    elementary
template <int... A, operand X>
constexpr auto permute(X const& x) {
  return detail::call(detail::Fixed<detail::Permute{Axes{A...}}>{}, x);
}
template <operand X>
constexpr auto permute(X const& x, Axes const& axes) {
  return detail::call(detail::Permute{axes}, x);
}

/// transpose - two axes swapped, the last two by default. No copy.
///
/// Shapes    x: [.., M, .., N, ..] -> [.., N, .., M, ..]
/// Dtypes    any
/// Errors    "transpose: axis 2 out of range for [2, 3]"
/// Source    elementary
template <int A = -2, int B = -1, operand X>
constexpr auto transpose(X const& x) {
  return detail::call(detail::Fixed<detail::Transpose{A, B}>{}, x);
}
template <operand X>
constexpr auto transpose(X const& x, int a, int b) {
  return detail::call(detail::Transpose{a, b}, x);
}
/// swapaxes - transpose by another name.
///
/// Shapes    those of transpose
/// Dtypes    any
/// Source    NumPy's swapaxes
template <int A, int B, operand X>
constexpr auto swapaxes(X const& x) {
  return detail::call(detail::named<"swapaxes">(detail::Fixed<detail::Transpose{A, B}>{}), x);
}
template <operand X>
constexpr auto swapaxes(X const& x, int a, int b) {
  return detail::call(detail::named<"swapaxes">(detail::Transpose{a, b}), x);
}

/// squeeze - drops axes of extent 1; without arguments all of them. Axes of other extents stay. No copy.
///
/// Shapes    x: [.., 1, ..] -> [S... without the axes]
/// Dtypes    any
/// Errors    "squeeze: axis 0 of [dyn, 3] has no fixed extent"
/// Source    PyTorch's squeeze
template <int... A, operand X>
constexpr auto squeeze(X const& x) {
  return detail::call(detail::Fixed<detail::Squeeze{Axes{A...}}>{}, x);
}
template <operand X>
constexpr auto squeeze(X const& x, Axes const& axes) {
  return detail::call(detail::Squeeze{axes}, x);
}

/// unsqueeze - a new axis of extent 1 at that position of the result. No copy.
///
/// Shapes    x: [S...] -> [.., 1, ..]
/// Dtypes    any
/// Errors    "unsqueeze: axis 3 out of range for [2]"
/// Source    PyTorch's unsqueeze
template <int Axis, operand X>
constexpr auto unsqueeze(X const& x) {
  return detail::call(detail::Fixed<detail::Unsqueeze{Axis}>{}, x);
}
template <operand X>
constexpr auto unsqueeze(X const& x, int axis) {
  return detail::call(detail::Unsqueeze{axis}, x);
}

/// expand - repeated to a shape it broadcasts to; an extent of -1 stays. No copy.
///
/// Shapes    x: [S...] -> [R...]
/// Dtypes    any
/// Errors    "expand: cannot expand [2, 3] to [4, 3]"
/// Source    PyTorch's expand
template <index_t... Dims, operand X>
constexpr auto expand(X const& x) {
  return detail::call(detail::Fixed<detail::Expand{make_shape(Dims...)}>{}, x);
}
template <operand X>
constexpr auto expand(X const& x, Extents const& shape) {
  return detail::call(detail::Expand{shape.shape}, x);
}

/// slice<Axis, Begin, End, Step>(x) - Python's x[Begin:End:Step] along one axis; Begin and End may count from the
/// end. No copy.
///
/// Shapes    x: [.., N, ..] -> [.., M, ..]
/// Dtypes    any
/// Errors    "slice: step must be positive"
/// Source    Python's slices
template <int Axis, index_t Begin, index_t End = std::numeric_limits<index_t>::max(), index_t Step = 1,
          operand X>
constexpr auto slice(X const& x) {
  return detail::call(detail::Fixed<detail::Slice{Axis, Begin, End, Step}>{}, x);
}
template <operand X>
constexpr auto slice(X const& x, int axis, index_t begin, index_t end = std::numeric_limits<index_t>::max(),
                     index_t step = 1) {
  return detail::call(detail::Slice{axis, begin, end, step}, x);
}

namespace detail {

// x[i] on the tape: one node, and a gradient that is added to one place.
template <class V>
V vjp_of_at(V const& ct, Site<V> const& s, int) {
  index_t const i = s.attrs.i[0], n = s.x[0].shape()[0];
  return pad_axis(reshape_to(ct, with_first_axis(1, ct.shape())), 0, i, n - 1 - i);
}
inline unsigned reads_of_at(int) { return 0; }
template <class V>
inline constinit TapeRule const at_rule{"at", 1, &vjp_of_at<V>, nullptr, &reads_of_at, nullptr};

template <class V>
V part_in_memory(V const& x, index_t i) {
  V y = x.part(i);
  if (on_tape(x)) record_position(at_rule<V>, i, y, x);
  return y;
}

template <class V>
constexpr V at_position(V const& x, index_t i) {
  if constexpr (std::is_same_v<V, Array>)
    if (!x.recorded()) return part_in_memory(x, i);
  Shape rest;
  for (int a = 1; a < x.shape().rank; ++a) rest.push_back(x.shape()[a]);
  return bind_as<op::reshape>(Meta{x.dtype(), rest}, Attrs{}, slice_axis(x, 0, i, 1));
}

}  // namespace detail

/// select_first - the array at position i of the first axis, from the end if negative. No copy.
///
/// Shapes    x: [N, S...] -> [S...]
/// Dtypes    any
/// Errors    "at: index 2 out of range for axis 0 of [2, 3]"
/// Source    elementary
template <class V>
constexpr V select_first(V const& x, index_t i) {
  Shape const& s = x.shape();
  index_t const at = s.rank > 0 && i < 0 && s[0] >= 0 ? i + s[0] : i;
  if (s.rank == 0) raise("at: a scalar has no axes, so no index ", Position{i});
  if (at < 0 || (s[0] >= 0 && at >= s[0]))
    raise("at: index ", Position{i}, " out of range for axis 0 of ", s);
  return detail::at_position(x, at);
}

template <int Lazy>
constexpr Array Array::operator[](index_t i) const {
  return select_first(detail::lazy<Lazy>(*this), i);
}
template <int Lazy>
Array Array::at_on_tape(index_t i) const {
  return select_first(detail::lazy<Lazy>(*this), i);
}

}  // namespace dfdx
