// SPDX-License-Identifier: BSL-1.0
// scatter_reduce: products and extremes of elements that meet at computed places.
#pragma once

#include <dfdx/core/scratch.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/reduce.hpp>

namespace dfdx::op {

/// scatter_reduce - x with the elements of src multiplied into it at places along axis attrs.i[0], or the extremes of
/// both put there. attrs.i[1] says which: 0 the product, 1 the largest, 2 the smallest; with 4 added the elements of x
/// do not count at the places that src has something for. Elements that attain an extreme share its gradient. (Sums,
/// which need no kernel of their own, are scatter's.)
///
/// Math      y = x, then y[.., index[i], ..] = join(y[.., index[i], ..], src[i])
/// Shapes    x: [S...], index: [I...] of equal rank, I <= S off the axis, src: [I...] -> [S...]
/// Dtypes    x, src: one, all but bool; index: i32 i64 u8
/// Errors    "scatter_reduce: index 30 out of range for axis 1 of [2, 3]"; second derivatives of products know nothing
///           of factors that are 0
/// Source    PyTorch's scatter_reduce
struct scatter_reduce : operation {
  static constexpr char const* name = "scatter_reduce";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::axis;
  static constexpr int arity = 3, cost = 100;
  template <int = 0>
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    char const* const by = detail::called(a, name);
    if (!gather::infer(a, in, why).valid()) return refuse(nullptr);
    bool same = in[1].shape.rank == in[2].shape.rank;
    for (int i = 0; same && i < in[1].shape.rank; ++i) same = extents_agree(in[1].shape[i], in[2].shape[i]);
    if (!same) return refuse(why, by, ": index ", in[1].shape, " does not fit source ", in[2].shape);
    if (in[0].dtype != in[2].dtype)
      return refuse(why, by, ": one dtype required, got ", in[0].dtype, " and ", in[2].dtype);
    if (in[0].dtype == DType::boolean) return refuse(why, by, ": numeric dtype required, got bool");
    return in[0];
  }
  template <class Require>
  static constexpr void require(Attrs const& a, Meta const* in, Require const& must) {
    gather::require(a, in, must);
    for (int i = 0; i < in[1].shape.rank; ++i) must(in[1].shape[i], in[2].shape[i], false);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) return ct * slope_of_x(s);
    else if constexpr (I == 2) return here(ct, s) * slope_of_src(s);
    else return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return t * slope_of_x(s);
    else if constexpr (I == 2) return added(t * slope_of_src(s), s);
    else return V{};
  }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    if (out.data != in[0].data) copy_elements(in[0], out);
    Shape const& index = in[1].meta.shape;
    if (index.numel() == 0) return;
    // Where each element goes, once for all that have the same index.
    Shape apart = index;
    for (int i = 0; i < index.rank; ++i)
      if (in[1].strides[i] == 0) apart[i] = 1;
    kernels::Scratch<index_t> const places(static_cast<std::size_t>(apart.numel()));
    Operand once = in[1];
    once.meta.shape = apart;
    index_t* next = places.get();
    index_t const extent = out.meta.shape[axis], along = out.strides[axis];
    detail::for_places(detail::called(a, name), once, out.meta.shape, extent, axis,
                       [&](detail::Places const& from, index_t n) {
                         for (index_t i = 0; i < n; ++i) *next++ = along * from[i];
                       });
    Strides to = contiguous(apart), others = out.strides;
    for (int i = 0; i < index.rank; ++i)
      if (apart[i] != index[i]) to[i] = 0;
    others[axis] = 0;
    Strides const strides[3] = {in[2].strides, to, others};
    auto const each = [&](auto const& join) {
      join_rows(index, strides, static_cast<T const*>(in[2].data), places.get(), static_cast<T*>(out.data),
                join);
    };
    bool const alone = (a.i[1] & 4) != 0;
    // An extreme begins with any of its elements, a product with one.
    if (alone && which(a) == 0) each([](T, T) { return T(1); });
    else if (alone) each([](T, T v) { return v; });
    if (which(a) == 0) each([](T u, T v) { return math::times(u, v); });
    // Choices without branches: of numbers that are none v by the second, u by the first.
    else if (which(a) == 1)
      each([](T u, T v) {
        T const most = v > u ? v : u;
        return v == v ? most : v;
      });
    else
      each([](T u, T v) {
        T const least = v < u ? v : u;
        return v == v ? least : v;
      });
  }

 private:
  // All elements joined to those at their places, by rows, in their order.
  template <class T, class Join>
  static void join_rows(Shape const& index, Strides const (&strides)[3], T const* x, index_t const* places,
                        T* y, Join const& join) {
    RowWalk row(index, strides, 3);
    index_t const from = row.step[0], next = row.step[1], to = row.step[2], n = row.size;
    do {
      T const* DFDX_RESTRICT const p = x + row.offset[0];
      index_t const* const place = places + row.offset[1];
      T* DFDX_RESTRICT const q = y + row.offset[2];
      auto const put = [&](T& r, T v) { r = static_cast<T>(join(r, v)); };
      if (next != 0) {
        for (index_t k = 0; k < n; ++k) put(q[k * to + place[k * next]], p[k * from]);
      } else if (from == 1 && to == 1) {  // one place for the row, as where an index was expanded
        T* DFDX_RESTRICT const r = q + *place;
        constexpr index_t block = 32 / static_cast<index_t>(sizeof(T));  // compilers make vectors for it
        index_t k = 0;
        for (; k + block <= n; k += block)
          for (index_t j = 0; j < block; ++j) put(r[k + j], p[k + j]);
        for (; k < n; ++k) put(r[k], p[k]);
      } else {
        for (index_t k = 0; k < n; ++k) put(q[k * to + *place], p[k * from]);
      }
    } while (row.next());
  }
  static constexpr index_t which(Attrs const& a) { return a.i[1] & 3; }
  // What stands in v at the places of src, and the sums of what is there.
  template <class V>
  static constexpr V here(V const& v, Site<V> const& s) {
    return bind<gather>(detail::attrs_for(Caller::itself, s.attrs.i[0]), v, s.x[1]);
  }
  template <class V>
  static constexpr V added(V const& v, Site<V> const& s) {
    return bind_as<scatter>(Meta{v.dtype(), s.y.shape()}, detail::attrs_for(Caller::itself, s.attrs.i[0]), v,
                            s.x[1]);
  }
  // 1 where the condition holds, else 0, in the dtype of y and the shape of v.
  template <class V>
  static constexpr V ones_where(V const& condition, V const& v) {
    return apply<where>(condition, full_as(v, 1.0), zeros_as(v));
  }
  template <class V>
  static constexpr V is_zero(V const& v) {
    return apply<equal>(v, zeros_as(v));
  }
  // Of x, 1 where it counts.
  template <class V>
  static constexpr V counts(Site<V> const& s) {
    V const one = full_as(s.y, 1.0);
    return (s.attrs.i[1] & 4) == 0 ? one : ones_where(is_zero(added(full_as(s.x[2], 1.0), s)), s.y);
  }
  // How many attain an extreme: at least 1, but where it is NaN.
  template <class V>
  static constexpr V ties(Site<V> const& s) {
    V const n = attains_x(s) + added(attains(s), s);
    return apply<maximum>(n, full_as(n, 1.0));
  }
  template <class V>
  static constexpr V attains_x(Site<V> const& s) {
    return ones_where(apply<equal>(s.x[0], s.y), s.y) * counts(s);
  }
  template <class V>
  static constexpr V attains(Site<V> const& s) {
    return ones_where(apply<equal>(s.x[2], here(s.y, s)), s.x[2]);
  }
  // Products of the factors that are not 0, and how many are.
  template <class V>
  static constexpr V others(Site<V> const& s) {
    auto const without = [](V const& v) { return apply<where>(is_zero(v), full_as(v, 1.0), v); };
    return bind<scatter_reduce>(s.attrs, without(s.x[0]), s.x[1], without(s.x[2]));
  }
  template <class V>
  static constexpr V zeros(Site<V> const& s) {
    return ones_where(is_zero(s.x[0]), s.y) * counts(s) + added(ones_where(is_zero(s.x[2]), s.x[2]), s);
  }
  // The product without one factor x, by that without zeros and the number of these.
  template <class V>
  static constexpr V without(V const& x, V const& product, V const& zeros) {
    V const none = zeros_as(x), one = full_as(x, 1.0);
    V const divided = product / apply<where>(is_zero(x), one, x);
    return apply<where>(is_zero(x), apply<where>(apply<equal>(zeros, one), product, none),
                        apply<where>(is_zero(zeros), divided, none));
  }
  template <class V>
  static constexpr V slope_of_x(Site<V> const& s) {
    if (which(s.attrs) != 0) return attains_x(s) / ties(s);
    V const all = counts(s);
    // Where x is all there is, its factor is 1.
    return (s.attrs.i[1] & 4) != 0 ? all : without(s.x[0], others(s), zeros(s));
  }
  template <class V>
  static constexpr V slope_of_src(Site<V> const& s) {
    if (which(s.attrs) != 0) return attains(s) / here(ties(s), s);
    return without(s.x[2], here(others(s), s), here(zeros(s), s));
  }
};

}  // namespace dfdx::op
