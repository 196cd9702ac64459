// SPDX-License-Identifier: BSL-1.0
// Ops that move elements to computed places (take, gather and their transposes) or choose among them (argmax): not
// fused, each with a kernel of its own, `run`, over strided memory.
#pragma once

#include <dfdx/ops/binary.hpp>
#include <dfdx/ops/comparison.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::op {

namespace detail {

// Where a function has brought an axis to the front: the shape that it was given.
constexpr Shape as_given(Shape s, index_t axis) {
  std::swap(s.dims[0], s.dims[axis]);
  return s;
}
inline index_t checked_index(char const* name, index_t i, index_t n, int axis, Shape const& shape) {
  if (i < 0 || i >= n) raise(name, ": index ", Position{i}, " out of range for axis ", axis, " of ", shape);
  return i;
}

// dst += src for one dtype, f16 and bf16 rounded once an addition.
template <int = 0>
void add_elements(Operand const& from, Operand const& to) {
  dispatch(from.meta.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    auto const* src = static_cast<T const*>(from.data);
    auto* dst = static_cast<T*>(to.data);
    Strides const strides[2] = {from.strides, to.strides};
    walk<2>(from.meta.shape, strides,
            [&](index_t const(&o)[2]) { dst[o[1]] = static_cast<T>(math::plus(dst[o[1]], src[o[0]])); });
  });
}

inline void set_zero(Operand const& x) {
  std::memset(x.data, 0, static_cast<std::size_t>(x.meta.shape.numel()) * size_of(x.meta.dtype));
}

constexpr bool is_index(DType d) { return d == DType::i32 || d == DType::i64 || d == DType::u8; }

/// GatherRow - y[k * y_step] = x[index_k * along + k * x_step] for k < n, where index_k are elements of `index` from
/// `first` on, `step` apart, and less than `extent`.
template <class E>
struct GatherRow {
  E const* x;
  E* y;
  index_t along, x_step, extent, first, step, y_step, n;
};
/// RISC-V has a kernel, defined where kernels are known: how many elements, from the first on, it has done.
template <class E>
index_t run_gather_row(Operand const& index, GatherRow<E> const& row);

}  // namespace detail

/// rows_add - sums the rows of x that share an index: the transpose of take. attrs.i[0] is the number of rows made.
/// An error says that they were axis attrs.i[1] when they were given.
///
/// Math      y_r = sum_{i: index_i = r} x_i, dx_i = dy_{index_i}
/// Shapes    x: [I..., R...], index: [I...] -> y: [attrs.i[0], R...]
/// Dtypes    x: all but bool, index: i32 i64 u8
/// Errors    "take: index 30 out of range for axis 0 of [27, 10]"
/// Source    elementary
struct rows_add : operation {
  static constexpr char const* name = "rows_add";
  static constexpr bool has_caller = true;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 2;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &index = in[1].shape;
    if (!detail::is_index(in[1].dtype))
      return refuse(why, name, ": integer index required, got ", in[1].dtype);
    if (index.rank > x.rank) return refuse(why, name, ": index ", index, " has more axes than ", x);
    Meta r{in[0].dtype, make_shape(a.i[0])};
    for (int i = index.rank; i < x.rank; ++i) r.shape.push_back(x[i]);
    return r;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s);
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return bind<rows_add>(s.attrs, t, s.x[1]);
    else return V{};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::set_zero(out);
    char const* const by = detail::called(a, "take");
    Shape const given = detail::as_given(out.meta.shape, a.i[1]);
    int const axes = in[1].meta.shape.rank;
    Strides rows = in[0].strides;
    rows.rank = axes;
    Strides const strides[2] = {in[1].strides, rows};
    Operand const row = part(in[0], 0, axes);
    index_t const n = row.meta.shape.numel();
    bool const dense = is_contiguous(row.meta.shape, row.strides);
    dispatch(out.meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      walk<2>(in[1].meta.shape, strides, [&](index_t const(&o)[2]) {
        index_t const r = detail::checked_index(by, read_index(in[1], o[0]), out.meta.shape[0],
                                                static_cast<int>(a.i[1]), given);
        if (!dense) return detail::add_elements(part(in[0], o[1], axes), part(out, r * out.strides[0], 1));
        T const* DFDX_RESTRICT x = static_cast<T const*>(in[0].data) + o[1];
        T* DFDX_RESTRICT y = static_cast<T*>(out.data) + r * out.strides[0];
        for (index_t i = 0; i < n; ++i) y[i] = static_cast<T>(math::plus(y[i], x[i]));
      });
    });
  }
};

/// take - rows of a table by index: an embedding, or PyTorch's index_select along axis 0. attrs.i[1] as of rows_add.
///
/// Math      y_i = table_{index_i}, dtable_r = sum_{i: index_i = r} dy_i
/// Shapes    table: [N, R...], index: [I...] -> y: [I..., R...]
/// Dtypes    table: any, index: i32 i64 u8
/// Errors    "take: index 30 out of range for axis 0 of [27, 10]"
/// Source    elementary
struct take : operation {
  static constexpr char const* name = "take";
  static constexpr bool has_caller = true;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 2;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    char const* const by = detail::called(a, name);
    if (in[0].shape.rank < 1) return refuse(why, by, ": a table with rows required, got ", in[0].shape);
    if (!detail::is_index(in[1].dtype)) return refuse(why, by, ": integer index required, got ", in[1].dtype);
    Meta r{in[0].dtype, in[1].shape};
    if (r.shape.rank + in[0].shape.rank - 1 > max_rank) return refuse(why, by, ": too many axes");
    for (int i = 1; i < in[0].shape.rank; ++i) r.shape.push_back(in[0].shape[i]);
    return r;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0)
      return bind<rows_add>(Attrs{{s.x[0].shape()[0], s.attrs.i[1], s.attrs.i[2]}}, ct, s.x[1]);
    else return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return bind<take>(s.attrs, t, s.x[1]);
    else return V{};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    char const* const by = detail::called(a, name);
    int const axes = in[1].meta.shape.rank;
    Strides rows = out.strides;
    rows.rank = axes;
    Strides const strides[2] = {in[1].strides, rows};
    Shape const &table = in[0].meta.shape, given = detail::as_given(table, a.i[1]);
    Operand const row = part(in[0], 0, 1);
    auto const size = static_cast<index_t>(size_of(out.meta.dtype));
    auto const bytes = static_cast<std::size_t>(row.meta.shape.numel() * size);
    bool const dense = is_contiguous(row.meta.shape, row.strides);
    walk<2>(in[1].meta.shape, strides, [&](index_t const(&o)[2]) {
      index_t const r =
          detail::checked_index(by, read_index(in[1], o[0]), table[0], static_cast<int>(a.i[1]), given);
      if (dense)
        std::memcpy(static_cast<std::byte*>(out.data) + o[1] * size,
                    static_cast<std::byte const*>(in[0].data) + r * in[0].strides[0] * size, bytes);
      else copy_elements(part(in[0], r * in[0].strides[0], 1), part(out, o[1], axes));
    });
  }
};

template <int I, class V>
constexpr V rows_add::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind<take>(Attrs{{0, s.attrs.i[1], s.attrs.i[2]}}, ct, s.x[1]);
  else return V{};
}

/// check_label - labels as they are, if each is one of attrs.i[0] classes, or attrs.i[1]: programs look at their labels
/// with it. (It is an op, for what needs the labels must wait until they have been looked at.)
///
/// Math      y = x
/// Shapes    x: [I...] -> y: [I...]
/// Dtypes    i32 i64
/// Errors    "cross_entropy: label 10 out of range for 10 classes"
/// Source    elementary
struct check_label : operation {
  static constexpr char const* name = "check_label";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::same;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    if (in->dtype != DType::i32 && in->dtype != DType::i64)
      return refuse(why, name, ": labels of dtype i32 or i64 required, got ", in->dtype);
    return *in;
  }
  template <int, class V>
  static constexpr V vjp(V const&, Site<V> const&) {
    return V{};
  }
  template <int, class V>
  static constexpr V jvp(V const&, Site<V> const&) {
    return V{};
  }
  static constexpr void check(char const* by, index_t label, index_t classes, index_t ignored) {
    if (label != ignored && (label < 0 || label >= classes))
      raise(by, ": label ", Position{label}, " out of range for ", classes, " classes");
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    char const* const by = detail::called(a, name);
    Strides const strides[1] = {in->strides};
    walk<1>(in->meta.shape, strides,
            [&](index_t const(&o)[1]) { check(by, read_index(*in, o[0]), a.i[0], a.i[1]); });
    copy_elements(*in, out);
  }
};

/// scatter - adds elements into zeros at places along one axis: the transpose of gather. attrs.i[0] is the axis;
/// with attrs.i[1] = 1 an element replaces what came before it. The result's shape is given with bind_as.
///
/// Math      y[.., index[i], ..] += x[i], dx[i] = dy[.., index[i], ..]
/// Shapes    x: [I...], index: [I...] -> y: [S...] with S >= I off the axis
/// Dtypes    x: all but bool, index: i32 i64 u8
/// Errors    "gather: index 30 out of range for axis 1 of [2, 3]"
/// Source    elementary
struct scatter : operation {
  static constexpr char const* name = "scatter";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::axis;
  static constexpr Moves moves = Moves::scatter;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 2, cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s);
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return bind_as<scatter>(Meta{t.dtype(), s.y.shape()}, s.attrs, t, s.x[1]);
    else return V{};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::set_zero(out);
    auto const axis = static_cast<int>(a.i[0]);
    Strides others = out.strides;
    others[axis] = 0;
    Strides const strides[3] = {in[0].strides, in[1].strides, others};
    RowWalk row(in[1].meta.shape, strides, 3);
    if (row.empty()) return;
    Shape const& s = out.meta.shape;
    bool const replace = a.i[1] != 0;
    char const* const by = detail::called(a, "gather");
    dispatch(out.meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      index_t const step[] = {row.step[0], row.step[1], row.step[2]}, extent = s[axis],
                    along = out.strides[axis];
      do {
        T const* DFDX_RESTRICT const x = static_cast<T const*>(in[0].data) + row.offset[0];
        T* DFDX_RESTRICT const y = static_cast<T*>(out.data) + row.offset[2];
        for (index_t k = 0; k < row.size; ++k) {
          index_t const i =
              detail::checked_index(by, read_index(in[1], row.offset[1] + k * step[1]), extent, axis, s);
          T& to = y[k * step[2] + i * along];
          to = replace ? x[k * step[0]] : static_cast<T>(math::plus(to, x[k * step[0]]));
        }
      } while (row.next());
    });
  }
};

/// gather - elements at given places along one axis, attrs.i[0].
///
/// Math      y[i, j] = x[index[i, j], j] for axis 0 and likewise for others; dx by scatter
/// Shapes    x: [S...], index: [I...] of equal rank, I <= S off the axis -> y: [I...]
/// Dtypes    x: any, index: i32 i64 u8
/// Errors    "gather: index [4, 3] does not fit [2, 3] along axis 1"
/// Source    PyTorch's gather
struct gather : operation {
  static constexpr char const* name = "gather";
  static constexpr bool has_caller = true;
  static constexpr Examples examples = Examples::axis;
  static constexpr Moves moves = Moves::gather;
  static constexpr unsigned reads(int) { return 2; }
  static constexpr int arity = 2, cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &index = in[1].shape;
    auto const axis = static_cast<int>(a.i[0]);
    char const* const by = detail::called(a, name);
    if (!detail::is_index(in[1].dtype)) return refuse(why, by, ": integer index required, got ", in[1].dtype);
    bool fits = x.rank == index.rank && axis < x.rank;
    for (int i = 0; fits && i < x.rank; ++i) fits = i == axis || index[i] <= x[i] || x[i] < 0 || index[i] < 0;
    if (!fits) return refuse(why, by, ": index ", index, " does not fit ", x, " along axis ", axis);
    return Meta{in[0].dtype, index};
  }
  template <class Require>
  static constexpr void require(Attrs const& a, Meta const* in, Require const& must) {
    for (int i = 0; i < in[0].shape.rank; ++i)
      if (i != a.i[0]) must(in[0].shape[i], in[1].shape[i], true);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) return bind_as<scatter>(Meta{ct.dtype(), s.x[0].shape()}, s.attrs, ct, s.x[1]);
    else return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return bind<gather>(s.attrs, t, s.x[1]);
    else return V{};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    switch (size_of(out.meta.dtype)) {  // the dtype only matters for its size
      case 1: return copy<std::uint8_t>(a, in, out);
      case 2: return copy<std::uint16_t>(a, in, out);
      case 4: return copy<std::uint32_t>(a, in, out);
      default: return copy<std::uint64_t>(a, in, out);
    }
  }

 private:
  template <class E>
  static void copy(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    char const* const by = detail::called(a, name);
    Shape const &s = in[0].meta.shape, &index = in[1].meta.shape;
    Strides others = in[0].strides;
    others[axis] = 0;
    Strides const strides[3] = {others, in[1].strides, out.strides};
    RowWalk row(index, strides, 3);
    if (row.empty()) return;
    index_t const step = row.step[0], index_step = row.step[1], to_step = row.step[2];
    do {
      E* const y = static_cast<E*>(out.data) + row.offset[2];
      E const* const x = static_cast<E const*>(in[0].data) + row.offset[0];
      auto const source = [&](index_t at) {
        return x + detail::checked_index(by, read_index(in[1], at), s[axis], axis, s) * in[0].strides[axis];
      };
      if (index_step != 0) {
        index_t k = 0;
#if defined(__riscv_vector)
        index_t const along = in[0].strides[axis], first = row.offset[1];
        k = detail::run_gather_row<E>(in[1],
                                      {x, y, along, step, s[axis], first, index_step, to_step, row.size});
#endif
        for (; k < row.size; ++k) y[k * to_step] = source(row.offset[1] + k * index_step)[k * step];
        continue;
      }
      // One index for the row, as where an index was expanded.
      E const* const from = source(row.offset[1]);
      if (step == 1 && to_step == 1) std::memcpy(y, from, static_cast<std::size_t>(row.size) * sizeof(E));
      else
        for (index_t k = 0; k < row.size; ++k) y[k * to_step] = from[k * step];
    } while (row.next());
  }
};

template <int I, class V>
constexpr V scatter::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind<gather>(Attrs{{s.attrs.i[0], 0, s.attrs.i[2]}}, ct, s.x[1]);
  else return V{};
}

/// argmax - position of the largest element along axis attrs.i[0], the first if several; of a NaN if there is one.
/// With attrs.i[1] = 1 the smallest: argmin.
///
/// Math      y = argmax_i x_i; no gradient
/// Shapes    x: [.., N, ..] -> y: [.., 1, ..]
/// Dtypes    x: any, y: i64
/// Errors    "argmax: empty axis 0 of [0, 3]"
/// Source    elementary
struct argmax : operation {
  static constexpr char const* name = "argmax";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    auto const axis = static_cast<int>(a.i[0]);
    if (in[0].shape[axis] == 0)
      return refuse(why, a.i[1] != 0 ? "argmin" : name, ": empty axis ", axis, " of ", in[0].shape);
    return Meta{DType::i64, reduced_shape(in[0].shape, index_t{1} << axis)};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    index_t const n = in[0].meta.shape[axis], step = in[0].strides[axis];
    Strides const strides[2] = {in[0].strides, out.strides};
    dispatch(in[0].meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      using C = compute_t<T>;
      walk<2>(out.meta.shape, strides, [&](index_t const(&o)[2]) {
        T const* x = static_cast<T const*>(in[0].data) + o[0];
        index_t best = 0;
        for (index_t i = 1; i < n; ++i) {
          C const b = static_cast<C>(x[best * step]), c = static_cast<C>(x[i * step]);
          if (b != b) break;
          if ((a.i[1] != 0 ? c < b : c > b) || c != c) best = i;
        }
        static_cast<std::int64_t*>(out.data)[o[1]] = best;
      });
    });
  }
};

}  // namespace dfdx::op
