// SPDX-License-Identifier: BSL-1.0
// scatter_onto and rows_onto: elements and rows added to those of a value, or put in their place. A program whose state
// they change writes what they reach and nothing else.
#pragma once

#include <dfdx/ops/index.hpp>

namespace dfdx::op {

namespace detail {

// What both ops make, and refuse.
constexpr Meta onto(char const* by, Meta const* in, bool fits, Text* why) {
  if (fits && is_index(in[1].dtype) && in[0].dtype == in[2].dtype) return in[0];
  return refuse(why, by, ": source ", in[2].dtype, " ", in[2].shape, " at index ", in[1].dtype, " ",
                in[1].shape, " does not fit ", in[0].dtype, " ", in[0].shape);
}

}  // namespace detail

/// scatter_onto - x with elements of src added at places along axis attrs.i[0]; with attrs.i[1] = 1 they replace those
/// of x and what came before them, and where a place comes twice derivatives are not defined.
///
/// Math      y = x, then y[.., index[i], ..] += src[i]; dsrc[i] = dy[.., index[i], ..]
/// Shapes    x: [S...], index, src: [I...] with I <= S off the axis -> y: [S...]
/// Dtypes    x, src: one, any that can be added, 16 bits in f32; index: i32 i64 u8
/// Errors    "scatter_add: index 30 out of range for axis 1 of [2, 3]"
/// Source    PyTorch's scatter_add and scatter
struct scatter_onto : operation {
  static constexpr char const* name = "scatter_onto";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::axis;
  static constexpr int takes_over = 0;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 3, cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &index = in[1].shape, &src = in[2].shape;
    bool fits = x.rank == index.rank && a.i[0] < x.rank && index.rank == src.rank;
    for (int i = 0; fits && i < x.rank; ++i)
      fits = (i == a.i[0] || index[i] <= x[i] || x[i] < 0) && extents_agree(index[i], src[i]);
    return detail::onto(detail::called(a, name), in, fits, why);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) return kept(ct, s);
    else if constexpr (I == 2) return bind<gather>(Attrs{{s.attrs.i[0], 0, s.attrs.i[2]}}, ct, s.x[1]);
    else return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return kept(t, s);
    else if constexpr (I == 2) return bind_as<scatter>(Meta{t.dtype(), s.y.shape()}, s.attrs, t, s.x[1]);
    else return V{};
  }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    Shape const& s = out.meta.shape;
    bool const in_place = out.data == in[0].data;
    if (in_place) detail::check_places(detail::called(a, name), in[1], s, s[axis], axis);
    auto const put = [&](auto type, Operand const& x, Operand const& y) {
      detail::put_elements<typename decltype(type)::type>(a, x, in[1], y, in_place);
    };
    if (a.i[1] == 0) return detail::summed_wide<T>(in[2], &in[0], out, put);
    if (!in_place) copy_elements(in[0], out);
    put(std::type_identity<T>{}, in[2], out);
  }

 private:
  // What of x has not been replaced.
  template <class V>
  static constexpr V kept(V const& d, Site<V> const& s) {
    if (s.attrs.i[1] == 0) return d;
    return bind<scatter_onto>(s.attrs, d, s.x[1], full_as(d, Meta{d.dtype(), s.x[2].shape()}, 0));
  }
};

/// rows_onto - x with rows of src added to those that the index names. An error says that they were axis attrs.i[1]
/// when they were given.
///
/// Math      y_r = x_r + sum_{i: index_i = r} src_i, dsrc_i = dy_{index_i}
/// Shapes    x: [N, R...], index: [I...], src: [I..., R...] -> y: [N, R...]
/// Dtypes    x, src: one, all but bool, 16 bits in f32; index: i32 i64 u8
/// Errors    "index_add: index 30 out of range for axis 0 of [27, 10]"
/// Source    elementary
struct rows_onto : operation {
  static constexpr char const* name = "rows_onto";
  static constexpr bool has_caller = true;
  static constexpr int takes_over = 0;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 3, cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &index = in[1].shape, &src = in[2].shape;
    bool fits = x.rank > 0 && x.rank + index.rank == src.rank + 1;
    for (int i = 0; fits && i < src.rank; ++i)
      fits = extents_agree(i < index.rank ? index[i] : x[i - index.rank + 1], src[i]);
    return detail::onto(detail::called(a, name), in, fits, why);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) return ct;
    else if constexpr (I == 2) return bind<take>(Attrs{{0, s.attrs.i[1], s.attrs.i[2]}}, ct, s.x[1]);
    else return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return t;
    else if constexpr (I == 2)
      return bind<rows_add>(Attrs{{s.y.shape()[0], s.attrs.i[1], s.attrs.i[2]}}, t, s.x[1]);
    else return V{};
  }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[1]);
    char const* const by = detail::called(a, name);
    Shape const& s = out.meta.shape;
    if (out.data == in[0].data) detail::check_places(by, in[1], detail::as_given(s, a.i[1]), s[0], axis);
    detail::summed_wide<T>(in[2], &in[0], out, [&](auto type, Operand const& x, Operand const& y) {
      detail::add_rows<typename decltype(type)::type>(by, axis, x, in[1], y);
    });
  }
};

}  // namespace dfdx::op
