// SPDX-License-Identifier: BSL-1.0
// Ops that only rename positions (reshape, permute, expand, slice) and the two sources that hold no memory
// (constant, iota). In a graph they are index maps; on memory they are strides: none of them copies.
#pragma once

#include <dfdx/ops/rules.hpp>

namespace dfdx::op {

/// input - a value that a program is called with; attrs.i[0] is its position.
///
/// Math      y = x
/// Shapes    any
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct input : operation {
  static constexpr char const* name = "input";
  static constexpr Code code = Code::input;
  static constexpr int arity = 0;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
};

/// constant - every element is attrs.f[0].
///
/// Math      y = c
/// Shapes    any
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct constant : operation {
  static constexpr char const* name = "constant";
  static constexpr Code code = Code::constant;
  static constexpr int arity = 0;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
};

/// iota - position along axis attrs.i[0].
///
/// Math      y[.., i, ..] = i
/// Shapes    any
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct iota : operation {
  static constexpr char const* name = "iota";
  static constexpr Code code = Code::iota;
  static constexpr int arity = 0;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
};

/// reshape - the same elements in row-major order under another shape.
///
/// Math      y = x, transpose: reshape back
/// Shapes    x: [S...] -> y: [R...], with as many elements
/// Dtypes    any
/// Errors    "reshape: cannot view [2, 3] as [4]"
/// Source    elementary
struct reshape : operation {
  static constexpr char const* name = "reshape";
  static constexpr Examples examples = Examples::same;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::reshape;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  /// The shape rule proper: the target's one extent of -1 (if any) is worked out.
  static constexpr Shape target(Shape const& from, Shape to, Text* why) {
    index_t known = 1;
    int open = -1;
    for (int i = 0; i < to.rank; ++i) {
      if (!is_extent(to[i]) || (to[i] == extent::unknown && open >= 0)) return mismatch(from, to, why);
      if (to[i] == extent::unknown) open = i;
      else known = extent::mul(known, to[i]);
      if (!is_extent(known)) return mismatch(from, to, why);
    }
    index_t const n = from.numel();
    if (open < 0) return extents_agree(n, known) ? to : mismatch(from, to, why);
    index_t const rest = divide(n, known);
    if (rest == -2) return mismatch(from, to, why);
    to[open] = rest;
    return to;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return bind_as<reshape>(Meta{ct.dtype(), s.x[0].shape()}, Attrs{}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<reshape>(Meta{t.dtype(), s.y.shape()}, Attrs{}, t);
  }

 private:
  // The target is quoted as the caller wrote it, with -1 rather than dyn.
  static constexpr Shape mismatch(Shape const& from, Shape const& to, Text* why) {
    refuse(why, name, ": cannot view ", from, " as [");
    for (int i = 0; i < to.rank; ++i) {
      if (i != 0) refuse(why, ", ");
      if (to[i] >= 0 || (to[i] != extent::unknown && is_extent(to[i]))) refuse(why, to[i]);
      else refuse(why, Position{to[i]});
    }
    return refuse(why, "]").shape;
  }
  // n / known where that is an extent, else -2; symbols cancel against equal powers.
  static constexpr index_t divide(index_t n, index_t known) {
    if (n == extent::unknown || known == extent::unknown) return extent::unknown;
    if (n >= 0 && known >= 0) return known != 0 && n % known == 0 ? n / known : -2;
    if (n >= 0) return -2;
    index_t const factor = n & extent::factor_mask;
    index_t const by = known >= 0 ? known : known & extent::factor_mask;
    index_t const powers = (n & ~extent::symbol_flag) >> extent::factor_bits;
    index_t const less = known >= 0 ? 0 : (known & ~extent::symbol_flag) >> extent::factor_bits;
    if (by == 0 || factor % by != 0 || less > powers) return -2;
    if (powers == less) return factor / by;
    return extent::symbol_flag | ((powers - less) << extent::factor_bits) | (factor / by);
  }
};

/// permute - axes in another order: axis i of the result is axis axis_of(attrs.i[0], i) of the operand.
///
/// Math      y[i...] = x[permuted i...], transpose: the inverse permutation
/// Shapes    x: [S...] -> y: [S permuted]
/// Dtypes    any
/// Errors    "permute: axes must name each axis of [2, 3] once"
/// Source    elementary
struct permute : operation {
  static constexpr char const* name = "permute";
  static constexpr Examples examples = Examples::order;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::permute;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Meta r = in[0];
    unsigned seen = 0;
    for (int i = 0; i < r.shape.rank; ++i) {
      int const from = axis_of(a.i[0], i);
      if (from >= r.shape.rank || (seen >> from & 1u) != 0)
        return refuse(why, name, ": axes must name each axis of ", in[0].shape, " once");
      seen |= 1u << from;
      r.shape[i] = in[0].shape[from];
    }
    return r;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    int inverse[max_rank] = {};
    for (int i = 0; i < ct.shape().rank; ++i) inverse[axis_of(s.attrs.i[0], i)] = i;
    return bind<permute>(Attrs{{pack_axes(inverse, ct.shape().rank)}}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<permute>(s.attrs, t);
  }
};

/// expand - repeats along axes of extent 1; the rank stays.
///
/// Math      y[.., i, ..] = x[.., 0, ..], transpose: the sum over the repeated axes
/// Shapes    x: [S...] with ones -> y: [R...]
/// Dtypes    any
/// Errors    "expand: cannot expand [2, 3] to [4, 3]"
/// Source    elementary
struct expand : operation {
  static constexpr char const* name = "expand";
  static constexpr Examples examples = Examples::same;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::expand;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  static constexpr index_t repeated_axes(Shape const& from, Shape const& to) {
    index_t r = 0;
    for (int i = 0; i < to.rank; ++i)
      if (from[i] == 1 && to[i] != 1) r |= index_t{1} << i;
    return r;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return sum_axes(ct, repeated_axes(s.x[0].shape(), s.y.shape()));
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<expand>(Meta{t.dtype(), s.y.shape()}, Attrs{}, t);
  }
};

/// slice - every step-th element of one axis: attrs.i = {axis + 16 step, start, count}.
///
/// Math      y[.., i, ..] = x[.., start + step i, ..], transpose: pad with zeros
/// Shapes    x: [.., N, ..] -> y: [.., count, ..]
/// Dtypes    any
/// Errors    "slice: 2 to 9 out of range for axis 0 of [5, 3]"
/// Source    elementary
struct slice : operation {
  static constexpr char const* name = "slice";
  static constexpr Examples examples = Examples::axis;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::slice;
  static constexpr int axis(Attrs const& a) { return static_cast<int>(a.i[0] & 15); }
  static constexpr index_t step(Attrs const& a) { return a.i[0] >> 4; }
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Meta r = in[0];
    index_t const n = r.shape[axis(a)], last = a.i[2] == 0 ? a.i[1] : a.i[1] + step(a) * (a.i[2] - 1) + 1;
    if (a.i[1] < 0 || a.i[2] < 0 || step(a) < 1 || (n >= 0 && last > n))
      return refuse(why, name, ": ", a.i[1], " to ", last, " out of range for axis ", axis(a), " of ",
                    r.shape);
    r.shape[axis(a)] = a.i[2];
    return r;
  }
  /// part - the view of x in memory.
  static Array part(Attrs const& a, Meta const& result, Array const& x) {
    Strides t = x.strides();
    t[axis(a)] *= step(a);
    return x.view(result.shape, t, a.i[1] * x.strides()[axis(a)]);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    index_t const n = s.x[0].shape()[axis(s.attrs)], start = s.attrs.i[1];
    index_t const used = s.attrs.i[2] == 0 ? 0 : step(s.attrs) * (s.attrs.i[2] - 1) + 1;
    return pad_axis(ct, axis(s.attrs), start, n < 0 ? n : n - start - used, step(s.attrs) - 1);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<slice>(s.attrs, t);
  }
};

/// windows - parts of an axis that may overlap, their elements along a new last axis: attrs.i = {axis, size, step}.
///
/// Math      y[.., i, .., k] = x[.., step i + k, ..]
/// Shapes    x: [.., N, ..] -> [.., (N - size) / step + 1, .., size]
/// Dtypes    any
/// Errors    "unfold: windows of 5 by steps of 1 do not fit axis 0 of [4]"; "unfold: axis 0 of [dyn] has no fixed
///           extent"
/// Source    PyTorch's Tensor.unfold
struct windows : operation {
  static constexpr char const* name = "windows";
  static constexpr Examples examples = Examples::axis;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::windows;
  static constexpr int axis(Attrs const& a) { return static_cast<int>(a.i[0]); }
  static constexpr index_t step(Attrs const& a) { return a.i[2]; }
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Meta r = in[0];
    index_t& n = r.shape[axis(a)];
    index_t const size = a.i[1];
    if (n < 0) return refuse(why, "unfold: axis ", axis(a), " of ", r.shape, " has no fixed extent");
    if (r.shape.rank == max_rank || size < 0 || step(a) < 1 || n < size)
      return refuse(why, "unfold: windows of ", Position{size}, " by steps of ", Position{step(a)},
                    " do not fit axis ", axis(a), " of ", r.shape);
    n = (n - size) / step(a) + 1;
    r.shape.push_back(size);
    return r;
  }
  /// part - the view of x in memory.
  static Array part(Attrs const& a, Meta const& result, Array const& x) {
    Strides t = x.strides();
    t.push_back(t[axis(a)]);
    t[axis(a)] *= step(a);
    return x.view(result.shape, t);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return windows_added(ct, s.x[0].shape(), s.attrs);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<windows>(s.attrs, t);
  }
};

}  // namespace dfdx::op
