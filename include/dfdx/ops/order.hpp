// SPDX-License-Identifier: BSL-1.0
// Ops along one axis in which order matters: cumsum, and the positions that cummax, sort and searchsorted find. Not
// fused: each has its own kernel here.
#pragma once

#include <algorithm>

#include <dfdx/ops/index.hpp>

namespace dfdx::op {

namespace detail {

// Calls f(type, offsets) at the beginning of each line along an axis; offsets[k] counts elements of operand k.
template <int N, class F>
void for_lines(Shape shape, int axis, Operand const* const (&x)[N], DType dtype, F const& f) {
  if (shape.numel() == 0) return;
  shape[axis] = 1;
  Strides strides[N];
  for (int k = 0; k < N; ++k) strides[k] = x[k]->strides;
  dispatch(dtype, [&](auto type) { walk<N>(shape, strides, [&](index_t const(&o)[N]) { f(type, o); }); });
}

// NaN comes after all numbers, as if it were the largest.
template <class C>
constexpr bool before(C a, C b) {
  return a < b || (b != b && a == a);
}

}  // namespace detail

/// cumsum - sums of the elements up to each along axis attrs.i[0], or with attrs.i[1] = 1 from each on.
///
/// Math      y_i = sum_{j <= i} x_j, transpose: the sums from the other end
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool; floats are carried in double
/// Errors    "cumsum: axis 2 out of range for [2, 3]"
/// Source    elementary
struct cumsum : operation {
  static constexpr char const* name = "cumsum";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    if (in[0].dtype == DType::boolean) return refuse(why, name, ": numeric dtype required, got bool");
    return in[0];
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return bind<cumsum>(Attrs{{s.attrs.i[0], 1 - s.attrs.i[1]}}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<cumsum>(s.attrs, t);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    Shape const& s = out.meta.shape;
    Operand const* const x[] = {in, &out};
    detail::for_lines(s, axis, x, out.meta.dtype, [&](auto type, index_t const(&o)[2]) {
      using T = typename decltype(type)::type;
      using A = std::conditional_t<is_floating(dtype_v<T>), double, T>;
      auto const* from = static_cast<T const*>(in[0].data) + o[0];
      auto* to = static_cast<T*>(out.data) + o[1];
      A total(0);
      for (index_t k = 0; k < s[axis]; ++k) {
        index_t const i = a.i[1] != 0 ? s[axis] - 1 - k : k;
        total = static_cast<A>(math::plus(total, static_cast<A>(from[i * in[0].strides[axis]])));
        to[i * out.strides[axis]] = static_cast<T>(total);
      }
    });
  }
};

/// argcummax - position of the largest element up to each along axis attrs.i[0], the last if several; of a NaN from the
/// first on. With attrs.i[1] = 1 of the smallest.
///
/// Math      y_i = argmax_{j <= i} x_j; no gradient
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    x: any, y: i64
/// Errors    "cummax: axis 2 out of range for [2, 3]"
/// Source    PyTorch's cummax
struct argcummax : operation {
  static constexpr char const* name = "argcummax";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return Meta{DType::i64, in[0].shape}; }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    Shape const& s = out.meta.shape;
    Operand const* const x[] = {in, &out};
    detail::for_lines(s, axis, x, in[0].meta.dtype, [&](auto type, index_t const(&o)[2]) {
      using T = typename decltype(type)::type;
      auto const value = [&](index_t i) {
        return static_cast<compute_t<T>>(static_cast<T const*>(in[0].data)[o[0] + i * in[0].strides[axis]]);
      };
      index_t best = 0;
      for (index_t i = 0; i < s[axis]; ++i) {
        auto const b = value(best), c = value(i);
        if (c != c || (b == b && (a.i[1] != 0 ? c <= b : c >= b))) best = i;
        static_cast<std::int64_t*>(out.data)[o[1] + i * out.strides[axis]] = best;
      }
    });
  }
};

/// argsort - positions of the elements in ascending order along axis attrs.i[0], or with attrs.i[1] = 1 in descending
/// order. Equal elements stay in their order; NaN counts as the largest.
///
/// Math      x_{y_0} <= x_{y_1} <= ...; no gradient
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    x: any, y: i64
/// Errors    "sort: axis 2 out of range for [2, 3]"
/// Source    elementary
struct argsort : operation {
  static constexpr char const* name = "argsort";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 1000;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return Meta{DType::i64, in[0].shape}; }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    Shape const& s = out.meta.shape;
    index_t const n = s[axis];
    Array order(Meta{DType::i64, make_shape(n)});
    auto* const first = order.data<std::int64_t>();
    Operand const* const x[] = {in, &out};
    detail::for_lines(s, axis, x, in[0].meta.dtype, [&](auto type, index_t const(&o)[2]) {
      using T = typename decltype(type)::type;
      auto const value = [&](index_t i) {
        return static_cast<compute_t<T>>(static_cast<T const*>(in[0].data)[o[0] + i * in[0].strides[axis]]);
      };
      for (index_t i = 0; i < n; ++i) first[i] = i;
      // Ties by position: a stable sort that needs no buffer.
      std::sort(first, first + n, [&](auto i, auto j) {
        auto const u = value(i), v = value(j);
        bool const less = detail::before(u, v), more = detail::before(v, u);
        return less || more ? (a.i[1] != 0 ? more : less) : i < j;
      });
      for (index_t i = 0; i < n; ++i)
        static_cast<std::int64_t*>(out.data)[o[1] + i * out.strides[axis]] = first[i];
    });
  }
};

/// searchsorted - where values belong in ascending lists: before what is equal, or with attrs.i[0] = 1 behind it.
///
/// Math      y = the number of elements of the list that are < x (<= x); no gradient
/// Shapes    list: [N] and x: any, or list: [B..., N] and x: [B..., M] -> y: that of x
/// Dtypes    both one, any; y: i64
/// Errors    "searchsorted: lists [2, 5] do not fit values [3, 4]"
/// Source    elementary
struct searchsorted : operation {
  static constexpr char const* name = "searchsorted";
  static constexpr int arity = 2;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Shape const &list = in[0].shape, &x = in[1].shape;
    bool fits = list.rank == 1 || (list.rank > 1 && list.rank == x.rank);
    for (int i = 0; fits && i + 1 < list.rank; ++i) fits = extents_agree(list[i], x[i]);
    if (!fits) return refuse(why, name, ": lists ", list, " do not fit values ", x);
    if (in[0].dtype != in[1].dtype)
      return refuse(why, name, ": one dtype required, got ", in[0].dtype, " and ", in[1].dtype);
    return Meta{DType::i64, x};
  }
  template <class Require>
  static constexpr void require(Attrs const&, Meta const* in, Require const& must) {
    for (int i = 0; i + 1 < in[0].shape.rank; ++i) must(in[0].shape[i], in[1].shape[i], false);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    int const last = in[0].meta.shape.rank - 1;
    index_t const n = in[0].meta.shape[last], step = in[0].strides[last];
    // Where the list of each value begins; one list serves all.
    Strides lists = out.meta.shape;
    for (int i = 0; i < lists.rank; ++i) lists[i] = i < last ? in[0].strides[i] : 0;
    Strides const strides[3] = {lists, in[1].strides, out.strides};
    dispatch(in[0].meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      walk<3>(out.meta.shape, strides, [&](index_t const(&o)[3]) {
        auto const x = static_cast<compute_t<T>>(static_cast<T const*>(in[1].data)[o[1]]);
        index_t low = 0, high = n;
        while (low < high) {
          index_t const middle = low + (high - low) / 2;
          auto const v = static_cast<compute_t<T>>(static_cast<T const*>(in[0].data)[o[0] + middle * step]);
          if (a.i[0] != 0 ? !detail::before(x, v) : detail::before(v, x)) low = middle + 1;
          else high = middle;
        }
        static_cast<std::int64_t*>(out.data)[o[2]] = low;
      });
    });
  }
};

}  // namespace dfdx::op
