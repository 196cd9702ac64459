// SPDX-License-Identifier: BSL-1.0
// Ops that lay elements out anew: concat, pad and flip. Not fused: each has its kernel here.
#pragma once

#include <cstdint>
#include <cstring>

#include <dfdx/core/convert.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/views.hpp>

namespace dfdx::op {

namespace detail {

/// Beyond - the place on an axis of n elements whose element stands at place i before or behind them.
using Beyond = index_t (*)(index_t i, index_t n);

/// Padding - an array in the middle of a larger, dense one, and around it what Beyond says, or without one a constant.
/// Axis by axis, the last first: what lies beyond the ends of an axis is copied from the result.
template <class E>
struct Padding {
  Operand const &in, &out;
  index_t const* before;
  Beyond beyond;
  E constant;

  void lay(int axis, E const* x, E* y) const {
    Shape const &from = in.meta.shape, &to = out.meta.shape;
    if (axis == from.rank) return static_cast<void>(*y = *x);
    index_t const n = from[axis], first = before[axis], behind = first + n, step = out.strides[axis];
    if (lies_as_one(axis)) std::memcpy(y + first * step, x, static_cast<std::size_t>(n * step) * sizeof(E));
    else if (axis + 1 == from.rank) dfdx::detail::copy_rows<E>(y + first, 0, 1, x, 0, in.strides[axis], 1, n);
    else
      for (index_t i = 0; i < n; ++i) lay(axis + 1, x + i * in.strides[axis], y + (first + i) * step);
    if (beyond == nullptr) {
      dfdx::detail::repeat(y, first * step, constant);
      return dfdx::detail::repeat(y + behind * step, (to[axis] - behind) * step, constant);
    }
    auto const copy = [&](index_t i) {
      E const* const source = y + (first + beyond(i - first, n)) * step;
      if (step == 1) y[i] = *source;
      else std::memcpy(y + i * step, source, static_cast<std::size_t>(step) * sizeof(E));
    };
    for (index_t i = 0; i < first; ++i) copy(i);
    for (index_t i = behind; i < to[axis]; ++i) copy(i);
  }

 private:
  // Whether all of the operand from an axis on lies side by side, as it does in the result.
  bool lies_as_one(int axis) const {
    bool r = in.strides[axis] == out.strides[axis] && in.meta.shape[axis] > 0;
    for (int a = axis + 1; r && a < in.meta.shape.rank; ++a)
      r = in.meta.shape[a] == out.meta.shape[a] && in.strides[a] == out.strides[a];
    return r;
  }
};

/// pad_all - Padding of any dtype, a constant `value` where there is no Beyond.
template <int = 0>
void pad_all(Operand const& in, Operand const& out, index_t const* before, Beyond beyond, double value) {
  if (out.meta.shape.numel() == 0) return;
  std::byte constant[sizeof(double)] = {};
  dispatch(out.meta.dtype, [&](auto type) {
    auto const c = math::convert_number<typename decltype(type)::type>(value);
    std::memcpy(constant, &c, sizeof c);
  });
  dispatch_bits(out.meta.dtype, [&](auto type) {
    typename decltype(type)::type element;
    std::memcpy(&element, constant, sizeof element);
    Padding<decltype(element)>{in, out, before, beyond, element}.lay(
        0, static_cast<decltype(element) const*>(in.data), static_cast<decltype(element)*>(out.data));
  });
}

}  // namespace detail

/// pad - a constant before, after and between the elements of one axis: attrs.i = {axis + 16 gap, before, after},
/// attrs.f[0] the constant. `gap` constants lie between neighbours. In the place of `after` may stand symbols: the
/// extent of the result, which the running program knows.
///
/// Math      y[.., before + (gap + 1) i, ..] = x[.., i, ..], elsewhere c; transpose: slice
/// Shapes    x: [.., N, ..] -> y: [.., before + N + gap (N - 1) + after, ..]
/// Dtypes    any
/// Errors    "pad: axis 2 out of range for [2, 3]"
/// Source    elementary
struct pad : operation {
  static constexpr char const* name = "pad";
  static constexpr Examples examples = Examples::axis;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr int cost = 100;
  static constexpr int axis(Attrs const& a) { return static_cast<int>(a.i[0] & 15); }
  static constexpr index_t gap(Attrs const& a) { return a.i[0] >> 4; }
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Meta r = in[0];
    index_t const n = r.shape[axis(a)];
    if (n < 0 && (a.i[1] != 0 || a.i[2] != 0 || gap(a) != 0))
      return refuse(why, name, ": axis ", axis(a), " of ", r.shape, " has no fixed extent");
    bool const is_open = a.i[2] < extent::unknown && is_extent(a.i[2]);
    if (a.i[1] < 0 || (a.i[2] < 0 && !is_open)) return refuse(why, name, ": negative padding");
    if (is_open) r.shape[axis(a)] = a.i[2];
    else if (n >= 0) r.shape[axis(a)] = a.i[1] + n + (n > 0 ? gap(a) * (n - 1) : 0) + a.i[2];
    return r;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    index_t const n = s.x[0].shape()[axis(s.attrs)];
    return bind<slice>(Attrs{{axis(s.attrs) + 16 * (gap(s.attrs) + 1), s.attrs.i[1], n}}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<pad>(Attrs{{s.attrs.i[0], s.attrs.i[1], s.attrs.i[2]}}, t);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    if (gap(a) == 0) {
      index_t before[max_rank] = {};
      before[axis(a)] = a.i[1];
      return detail::pad_all(in[0], out, before, nullptr, a.f[0]);
    }
    dispatch(out.meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* y = static_cast<T*>(out.data);
      dfdx::detail::repeat(y, out.meta.shape.numel(), math::convert_number<T>(a.f[0]));
    });
    Operand inner = part(out, a.i[1] * out.strides[axis(a)], 0);
    inner.meta.shape = in[0].meta.shape;
    inner.strides[axis(a)] *= gap(a) + 1;
    copy_elements(in[0], inner);
  }
};

/// concat - one array after another along axis attrs.i[0].
///
/// Math      z = [x; y]; dx, dy are the parts of dz
/// Shapes    x: [.., N, ..], y: [.., M, ..] -> z: [.., N + M, ..]
/// Dtypes    any one
/// Errors    "concat: shapes differ off axis 0: [2, 3] x [2, 4]"
/// Source    elementary
struct concat : operation {
  static constexpr char const* name = "concat";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::axis;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr int arity = 2;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &y = in[1].shape;
    auto const axis = static_cast<int>(a.i[0]);
    char const* const by = detail::called(a, name);
    bool fits = x.rank == y.rank;
    for (int i = 0; fits && i < x.rank; ++i) fits = i == axis || extents_agree(x[i], y[i]);
    if (!fits) return refuse(why, by, ": shapes differ off axis ", axis, ": ", x, " x ", y);
    if (in[0].dtype != in[1].dtype)
      return refuse(why, by, ": one dtype required, got ", in[0].dtype, " x ", in[1].dtype);
    if (x[axis] < 0 || y[axis] < 0)
      return refuse(why, by, ": axis ", axis, " of ", x, " x ", y, " has no fixed extent");
    if (x[axis] > INT64_MAX - y[axis])
      return refuse(why, by, ": size overflows: ", x, " x ", y, " along axis ", axis);
    Meta r = in[0];
    r.shape[axis] += y[axis];
    return r;
  }
  template <class Require>
  static constexpr void require(Attrs const& a, Meta const* in, Require const& must) {
    for (int i = 0; i < in[0].shape.rank; ++i)
      if (i != a.i[0]) must(in[0].shape[i], in[1].shape[i], false);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    auto const axis = static_cast<int>(s.attrs.i[0]);
    index_t const first = s.x[0].shape()[axis];
    return bind<slice>(Attrs{{axis + 16, I == 0 ? 0 : first, s.x[I].shape()[axis]}}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    auto const axis = static_cast<int>(s.attrs.i[0]);
    index_t const other = s.x[1 - I].shape()[axis];
    return pad_axis(t, axis, I == 0 ? 0 : other, I == 0 ? other : 0, 0);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    index_t at = 0;
    for (int k = 0; k < 2; ++k) {
      Operand to = part(out, at * out.strides[axis], 0);
      to.meta.shape = in[k].meta.shape;
      copy_elements(in[k], to);
      at += in[k].meta.shape[axis];
    }
  }
};

/// flip - axes walked from their ends; attrs.i[0] is the bit mask of the axes. A copy, for strides are positive.
///
/// Math      y[.., i, ..] = x[.., N - 1 - i, ..], transpose: itself
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    "flip: axis 2 out of range for [2, 3]"
/// Source    elementary
struct flip : operation {
  static constexpr char const* name = "flip";
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Examples examples = Examples::axes;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return bind<flip>(s.attrs, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<flip>(s.attrs, t);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    if (out.meta.shape.numel() == 0) return;
    Operand back = out;
    index_t last = 0;
    for (int i = 0; i < out.meta.shape.rank; ++i)
      if ((a.i[0] >> i & 1) != 0) {
        last += (out.meta.shape[i] - 1) * out.strides[i];
        back.strides[i] = -out.strides[i];
      }
    back.data = part(out, last, 0).data;
    copy_elements<true>(in[0], back);
  }
};

}  // namespace dfdx::op
