// SPDX-License-Identifier: BSL-1.0
// index_copy: parts of a value replaced at computed places along an axis. A program whose state it changes writes the
// parts and nothing else.
#pragma once

#include <dfdx/ops/index.hpp>
#include <dfdx/ops/views.hpp>

namespace dfdx::op {

/// index_copy - x with its parts at places along axis attrs.i[0] replaced by those of src. Where a place comes twice
/// the last part counts, and derivatives are not defined.
///
/// Math      y[.., index_i, ..] = src[.., i, ..], y = x elsewhere
/// Shapes    x: [S...], index: [I], src: [S...] with I on the axis -> y: [S...]
/// Dtypes    x, src: one, any; index: i32 i64 u8
/// Errors    "index_copy: index 30 out of range for axis 1 of [2, 3]"
/// Source    PyTorch's index_copy
struct index_copy : operation {
  static constexpr char const* name = "index_copy";
  static constexpr int takes_over = 0;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 3;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &index = in[1].shape, &src = in[2].shape;
    auto const axis = static_cast<int>(a.i[0]);
    if (!detail::is_index(in[1].dtype) || index.rank != 1)
      return refuse(why, name, ": a list of integers required, got ", in[1].dtype, " ", index);
    if (in[0].dtype != in[2].dtype)
      return refuse(why, name, ": one dtype required, got ", in[0].dtype, " and ", in[2].dtype);
    bool fits = x.rank == src.rank && axis < x.rank;
    for (int i = 0; fits && i < x.rank; ++i) fits = extents_agree(i == axis ? index[0] : x[i], src[i]);
    if (!fits) return refuse(why, name, ": source ", src, " does not fit ", x, " at index ", index);
    return in[0];
  }
  template <class Require>
  static constexpr void require(Attrs const& a, Meta const* in, Require const& must) {
    for (int i = 0; i < in[0].shape.rank; ++i)
      must(i == a.i[0] ? in[1].shape[0] : in[0].shape[i], in[2].shape[i], false);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) return bind<index_copy>(s.attrs, ct, s.x[1], nothing(ct, s.x[2]));
    else if constexpr (I == 2) return parts(ct, s);
    else return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return bind<index_copy>(s.attrs, t, s.x[1], nothing(t, s.x[2]));
    else if constexpr (I == 2) return bind<index_copy>(s.attrs, nothing(t, s.x[0]), s.x[1], t);
    else return V{};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    detail::check_places(name, in[1], out.meta.shape, out.meta.shape[axis], axis);
    if (out.data != in[0].data) copy_elements(in[0], out);
    Operand from = in[2], to = out;
    from.meta.shape[axis] = to.meta.shape[axis] = 1;
    auto const move = [&](Operand& x, void* base, index_t i) {
      x.data =
          static_cast<std::byte*>(base) + i * x.strides[axis] * static_cast<index_t>(size_of(x.meta.dtype));
    };
    for (index_t k = 0; k < in[1].meta.shape[0]; ++k) {
      move(to, out.data, read_index(in[1], k * in[1].strides[0]));
      move(from, in[2].data, k);
      copy_elements(from, to);
    }
  }

 private:
  template <class V>
  static constexpr V nothing(V const& d, V const& like) {
    return full_as(d, Meta{d.dtype(), like.shape()}, 0);
  }
  // Those of x that src stands for.
  template <class V>
  static constexpr V parts(V const& x, Site<V> const& s) {
    auto const axis = static_cast<int>(s.attrs.i[0]);
    V const rows = bind<take>(detail::attrs_for(Caller::itself), swapped(x, axis), s.x[1]);
    return swapped(rows, axis);
  }
  template <class V>
  static constexpr V swapped(V const& x, int axis) {
    int axes[max_rank];
    for (int i = 0; i < max_rank; ++i) axes[i] = i == 0 ? axis : i == axis ? 0 : i;
    return bind<permute>(Attrs{{pack_axes(axes, x.shape().rank)}}, x);
  }
};

}  // namespace dfdx::op
