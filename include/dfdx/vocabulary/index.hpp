// SPDX-License-Identifier: BSL-1.0
// Elements at computed places: take, gather, scatter and their kin, embeddings.
#pragma once

#include <algorithm>

#include <dfdx/kernels/rvv/gather.hpp>
#include <dfdx/ops/onto.hpp>
#include <dfdx/vocabulary/argmax.hpp>

namespace dfdx {

namespace op::detail {

#if defined(__riscv_vector)
template <class E>
index_t run_gather_row([[maybe_unused]] Operand const& index, [[maybe_unused]] GatherRow<E> const& row) {
#if defined(DFDX_RVV)
  if constexpr (sizeof(E) == 4 || sizeof(E) == 8) {
    using F = std::conditional_t<sizeof(E) == 4, float, double>;  // moves of bits
    auto const by = [&](auto const* places) {
      return kernels::rvv::gather_row(reinterpret_cast<F const*>(row.x), row.along, row.x_step,
                                      places + row.first, row.step, row.extent, reinterpret_cast<F*>(row.y),
                                      row.y_step, row.n);
    };
    switch (index.meta.dtype) {
      case DType::i32: return by(static_cast<std::int32_t const*>(index.data));
      case DType::u8: return by(static_cast<std::uint8_t const*>(index.data));
      default: return by(static_cast<std::int64_t const*>(index.data));
    }
  }
#endif
  return 0;
}
#endif

}  // namespace op::detail

namespace detail {

using op::Caller;
using op::detail::attrs_for;

struct Take {
  Caller by = Caller::itself;
  constexpr Meta infer(Meta const* in, Text* why) const { return op::take::infer(attrs_for(by), in, why); }
  template <class, class V>
  constexpr V run(Meta const& y, V const& table, V const& index) const {
    return bind_as<op::take>(y, attrs_for(by), table, index);
  }
};
template <Caller By, operand X, operand I>
constexpr auto take_for(X const& table, I const& index) {
  return call(Fixed<Take{By}>{}, table, index);
}

struct Gather {
  int axis;
  Caller by = Caller::itself;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("gather", axis, in[0].shape, why);
    return a < 0 ? refuse(nullptr) : op::gather::infer(attrs_for(by, a), in, why);
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index) const {
    return bind<op::gather>(attrs_for(by, normalize_axis(axis, x.shape().rank)), x, index);
  }
};

struct TakeAlong {
  int axis;
  // The shape of x or of the index, with the other axes as both have them.
  constexpr Shape shape(Meta const* in, int which, Text* why) const {
    int const a = rule_axis("take_along", axis, in[0].shape, why);
    if (a < 0) return Shape::none();
    if (in[0].shape.rank != in[1].shape.rank)
      return refuse(why, "take_along: index ", in[1].shape, " does not fit ", in[0].shape).shape;
    Shape const x = with_extent(in[0].shape, a, 1), index = with_extent(in[1].shape, a, 1);
    Shape const both = op::broadcast_shapes("take_along", x, index, why);
    return both.valid() ? with_extent(both, a, in[which].shape[a]) : both;
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    Meta const both[] = {{in[0].dtype, shape(in, 0, why)}, {in[1].dtype, shape(in, 1, nullptr)}};
    if (!both[0].valid()) return both[0];
    return op::gather::infer(attrs_for(Caller::take_along, normalize_axis(axis, both[0].shape.rank)), both,
                             why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x, V const& index) const {
    Meta const in[] = {x.meta(), index.meta()};
    return bind<op::gather>(attrs_for(Caller::take_along, normalize_axis(axis, y.shape.rank)),
                            broadcast_to(x, shape(in, 0, nullptr), "take_along"),
                            broadcast_to(index, shape(in, 1, nullptr), "take_along"));
  }
};

// A list of places along an axis as the index of each element of the parts that it names.
template <class V>
constexpr V for_parts(char const* by, V const& index, Shape const& parts, int axis) {
  Shape const list = with_extent(op::reduced_shape(parts, -1), axis, parts[axis]);
  return broadcast_to(reshape_to(index, list), parts, by);
}

struct IndexSelect {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("index_select", axis, in[0].shape, why);
    if (a < 0) return refuse(nullptr);
    if (in[1].shape.rank != 1 || !op::detail::is_index(in[1].dtype))
      return refuse(why, "index_select: a list of integers required, got ", in[1].dtype, " ", in[1].shape);
    return Meta{in[0].dtype, with_extent(in[0].shape, a, in[1].shape[0])};
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index) const {
    int const a = normalize_axis(axis, x.shape().rank);
    Attrs const of_rows = attrs_for(Caller::index_select), of_parts = attrs_for(Caller::index_select, a);
    return either(
        a <= 0, [&] { return bind<op::take>(of_rows, x, index); },
        [&] {
          V const places = for_parts("index_select", index, with_extent(x.shape(), a, index.shape()[0]), a);
          return bind<op::gather>(of_parts, x, places);
        });
  }
};

// x and what is added to it: the index fits as gather has it, and each of its elements has one of src; the rest of src
// does not count. With `set` elements are replaced instead.
struct Scattered {
  int axis;
  bool set = false;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Meta const &x = in[0], &index = in[1], &src = in[2];
    char const* const name = set ? "scatter" : "scatter_add";
    int const a = rule_axis(name, axis, x.shape, why);
    if (a < 0 ||
        !op::gather::infer(attrs_for(set ? Caller::scatter : Caller::scatter_add, a), in, why).valid())
      return refuse(nullptr);
    bool same = index.shape.rank == src.shape.rank;
    for (int i = 0; same && i < src.shape.rank; ++i)
      same = index.shape[i] < 0 || src.shape[i] < 0 || index.shape[i] <= src.shape[i];
    if (!same) return refuse(why, name, ": index ", index.shape, " is larger than source ", src.shape);
    if (x.dtype != src.dtype)
      return refuse(why, name, ": one dtype required, got ", x.dtype, " and ", src.dtype);
    if (!set && x.dtype == DType::boolean) return refuse(why, name, ": numeric dtype required, got bool");
    return x;
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& index, V const& src) const {
    Attrs const attrs =
        attrs_for(set ? Caller::scatter : Caller::scatter_add, normalize_axis(axis, x.shape().rank), set);
    Meta const in[] = {x.meta(), index.meta()};
    if (Graph* const g = recorder_of(x)) {
      require_same<op::gather>(*g, attrs, in, 2);
      // Of a source whose extent only the running program knows no more than a number of elements can be left out.
      for (int i = 0; i < src.shape().rank; ++i) {
        index_t const wanted = index.shape()[i], given = src.shape()[i];
        if (wanted != given && (wanted < 0 || given < 0))
          g->requirements.push_back(SameExtent{set ? "scatter" : "scatter_add", wanted < 0 ? wanted : given,
                                               wanted < 0 ? given : wanted, wanted >= 0});
      }
    }
    V used = src;
    for (int i = 0; i < src.shape().rank; ++i)
      if (index.shape()[i] >= 0 && (src.shape()[i] < 0 || index.shape()[i] < src.shape()[i]))
        used = slice_axis(used, i, 0, index.shape()[i]);
    return bind<op::scatter_onto>(attrs, x, index, used);
  }
};
struct Positions {
  int axis;
  index_t n;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("positions", axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    if (n < 0 && !op::is_extent(n)) return refuse(why, "positions: ", Position{n}, " of them wanted");
    if (n == extent::unknown) return refuse(why, "positions: a known number of them required");
    return Meta{in->dtype, with_extent(op::reduced_shape(in->shape, -1), a, n)};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return iota_as(x, y, normalize_axis(axis, y.shape.rank));
  }
};
// As many as another operand has along the axis.
struct PositionsIn {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("positions", axis, in[1].shape, why);
    if (a < 0) return refuse(nullptr);
    return Meta{in[0].dtype, with_extent(op::reduced_shape(in[0].shape, -1), a, in[1].shape[a])};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x, V const&) const {
    return iota_as(x, y, normalize_axis(axis, y.shape.rank));
  }
};
}  // namespace detail

/// take - rows of a table by index, as an embedding does.
///
/// Shapes    table: [N, R...], index: [I...] -> [I..., R...]
/// Dtypes    table: any; index: i32 i64 u8
/// Errors    "take: index 30 out of range for axis 0 of [27, 10]" (thrown, also by compiled programs)
/// Source    NumPy's take
template <operand X, operand I>
constexpr auto take(X const& table, I const& index) {
  return detail::call(detail::Fixed<detail::Take{}>{}, table, index);
}

/// gather<Axis>(x, index), gather(x, axis, index) - elements at given places along an axis.
///
/// Shapes    x: [S...], index: [I...] of equal rank, I <= S off the axis -> [I...]
/// Dtypes    x: any; index: i32 i64 u8
/// Errors    "gather: index [4, 3] does not fit [2, 3] along axis 1"; "gather: index 30 out of range for axis 1 of [2,
///           3]"
/// Source    PyTorch's gather
template <int Axis, operand X, operand I>
constexpr auto gather(X const& x, I const& index) {
  return detail::call(detail::Fixed<detail::Gather{Axis}>{}, x, index);
}
template <operand X, operand I>
constexpr auto gather(X const& x, int axis, I const& index) {
  return detail::call(detail::Gather{axis}, x, index);
}

/// take_along<Axis>(x, index), take_along(x, index, axis) - gather with NumPy's order of arguments; the other axes of x
/// and index broadcast.
///
/// Shapes    x: [S...], index: [I...] of equal rank -> [I...], broadcast off the axis
/// Dtypes    x: any; index: i32 i64 u8
/// Errors    "take_along: index [4] does not fit [2, 3]"
/// Source    NumPy's take_along_axis
template <int Axis, operand X, operand I>
constexpr auto take_along(X const& x, I const& index) {
  return detail::call(detail::Fixed<detail::TakeAlong{Axis}>{}, x, index);
}
template <operand X, operand I>
constexpr auto take_along(X const& x, I const& index, int axis) {
  return detail::call(detail::TakeAlong{axis}, x, index);
}

/// index_select<Axis>(x, index), index_select(x, axis, index) - the parts of x at a list of places along an axis.
///
/// Math      y[.., i, ..] = x[.., index_i, ..]
/// Shapes    x: [S...], index: [I] -> [S...] with I on the axis
/// Dtypes    x: any; index: i32 i64 u8
/// Errors    "index_select: a list of integers required, got f32 [2]"
/// Source    PyTorch's index_select
template <int Axis, operand X, operand I>
constexpr auto index_select(X const& x, I const& index) {
  return detail::call(detail::Fixed<detail::IndexSelect{Axis}>{}, x, index);
}
template <operand X, operand I>
constexpr auto index_select(X const& x, int axis, I const& index) {
  return detail::call(detail::IndexSelect{axis}, x, index);
}

/// scatter_add<Axis>(x, index, src), scatter_add(x, axis, index, src) - x plus the elements of src added at given
/// places along an axis. Of a source that is larger than the index the rest does not count. Of a state that `stateful`
/// keeps, a program writes these elements only.
///
/// Math      y = x, then y[.., index[i], ..] += src[i]
/// Shapes    x: [S...], index: [I...] of equal rank, I <= S off the axis, src: [J...] with J >= I -> [S...]
/// Dtypes    x, src: one, all but bool; index: i32 i64 u8
/// Errors    "scatter_add: index [2, 4] is larger than source [2, 3]"
/// Source    PyTorch's scatter_add
template <int Axis, operand X, operand I, operand S>
constexpr auto scatter_add(X const& x, I const& index, S const& src) {
  return detail::call(detail::Fixed<detail::Scattered{Axis}>{}, x, index, src);
}
template <operand X, operand I, operand S>
constexpr auto scatter_add(X const& x, int axis, I const& index, S const& src) {
  return detail::call(detail::Scattered{axis}, x, index, src);
}

/// scatter<Axis>(x, index, src), scatter(x, axis, index, src) - x with elements replaced by those of src. Where an
/// index occurs twice the last counts, and derivatives are not defined.
///
/// Math      y = x, then y[.., index[i], ..] = src[i]
/// Shapes    those of scatter_add
/// Dtypes    x, src: one, any; index: i32 i64 u8
/// Errors    "scatter: index [2, 4] is larger than source [2, 3]"
/// Source    PyTorch's scatter
template <int Axis, operand X, operand I, operand S>
constexpr auto scatter(X const& x, I const& index, S const& src) {
  return detail::call(detail::Fixed<detail::Scattered{Axis, true}>{}, x, index, src);
}
template <operand X, operand I, operand S>
constexpr auto scatter(X const& x, int axis, I const& index, S const& src) {
  return detail::call(detail::Scattered{axis, true}, x, index, src);
}

/// positions<Axis, N>(like) - 0 .. N-1 along an axis, of the dtype and rank of `like`, extent 1 elsewhere: what a
/// one-hot mask compares an index with.
///
/// Shapes    like: [S...] -> [1, .., N, .., 1], of its rank
/// Dtypes    any
/// Errors    "positions: a known number of them required"
/// Source    elementary
template <int Axis, index_t N, operand I>
constexpr auto positions(I const& like) {
  return detail::call(detail::Fixed<detail::Positions{Axis, N}>{}, like);
}
template <operand I>
constexpr auto positions(I const& like, int axis, index_t n) {
  return detail::call(detail::Positions{axis, n}, like);
}

/// embedding(index, weight, padding) - rows of a table; the row `padding`, from the end if negative, gets no gradient.
///
/// Shapes    index: [I...], weight: [N, D] -> [I..., D]
/// Dtypes    index: i32 i64 u8, weight: any
/// Errors    "embedding: index 30 out of range for axis 0 of [27, 10]" (also thrown by compiled programs)
/// Source    PyTorch's embedding
template <operand I, operand W>
constexpr auto embedding(I const& index, W const& weight) {
  return detail::take_for<detail::Caller::embedding>(weight, index);
}
template <operand I, operand W>
constexpr auto embedding(I const& index, W const& weight, index_t padding) {
  auto const rows = detail::take_for<detail::Caller::embedding>(weight, index);
  if constexpr (refused<decltype(rows)>) {
    return rows;
  } else {
    index_t const n = weight.shape()[0];
    if (n >= 0 && (padding < -n || padding >= n))
      raise("embedding: padding ", Position{padding}, " out of range for axis 0 of ", weight.shape());
    auto const pads = index == (padding < 0 ? padding + n : padding);
    return where(unsqueeze<-1>(pads), stop_gradient(rows), rows);
  }
}

}  // namespace dfdx
