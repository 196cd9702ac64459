// SPDX-License-Identifier: BSL-1.0
// Rows of a table by index: take, its transpose rows_add, and labels. Not fused, each with a kernel of its own, `run`,
// over strided memory.
#pragma once

#include <algorithm>
#include <type_traits>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/ops/binary.hpp>
#include <dfdx/ops/places.hpp>

namespace dfdx::op {

namespace detail {

/// add_dense - y += x for n elements side by side. Of a known number of sums, which x and y do not share, compilers
/// make vectors; g++ 12 at -O2 of no others.
template <class T>
void add_dense(T* DFDX_RESTRICT y, T const* DFDX_RESTRICT x, index_t n) {
  constexpr index_t block = 16;
  index_t i = 0;
  for (; i + block <= n; i += block) {
    T sums[block];
    for (index_t k = 0; k < block; ++k) sums[k] = static_cast<T>(math::plus(y[i + k], x[i + k]));
    std::copy_n(sums, block, y + i);
  }
  for (; i < n; ++i) y[i] = static_cast<T>(math::plus(y[i], x[i]));
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

// run(x, y) adds elements of x to sums y, which are zeros first, or elements of `onto`: in f32 where they are of 16
// bits, rounded once and not at every addition, for 256 + 1 is 256 in bf16. y is dense.
template <class T>
void widen(Operand const& x, float* to) {
  Strides const strides[1] = {x.strides};
  walk<1>(x.meta.shape, strides,
          [&](index_t const(&o)[1]) { *to++ = static_cast<float>(static_cast<T const*>(x.data)[o[0]]); });
}
template <class T, class Run>
void run_in_f32(Operand const& x, Operand const* onto, Operand const& y, Run const& run) {
  auto const count = [](Operand const& o) { return static_cast<std::size_t>(o.meta.shape.numel()); };
  kernels::Scratch<float> const wide(count(x)), sums(count(y));
  widen<T>(x, wide.get());
  Operand const sum{sums.get(), Meta{DType::f32, y.meta.shape}, contiguous(y.meta.shape)};
  if (onto != nullptr) widen<T>(*onto, sums.get());
  else set_zero(sum);
  run(Operand{wide.get(), Meta{DType::f32, x.meta.shape}, contiguous(x.meta.shape)}, sum);
  for (std::size_t i = 0; i < count(y); ++i) static_cast<T*>(y.data)[i] = static_cast<T>(sums.get()[i]);
}
// The same for elements of type T, run(type, x, y), type that of the sums.
template <class T, class Run>
void summed_wide(Operand const& x, Operand const* onto, Operand const& y, Run const& run) {
  if constexpr (is_half(dtype_v<T>)) {
    run_in_f32<T>(x, onto, y,
                  [&](Operand const& u, Operand const& v) { run(std::type_identity<float>{}, u, v); });
  } else {
    if (onto == nullptr) set_zero(y);
    else if (onto->data != y.data) copy_elements(*onto, y);
    run(std::type_identity<T>{}, x, y);
  }
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

/// add_rows - adds the rows of the first operand to those of `out` that the index names; an error says that these were
/// axis `axis` when they were given.
template <class T>
void add_rows(char const* by, int axis, Operand const& rows_of, Operand const& index, Operand const& out) {
  Shape const given = as_given(out.meta.shape, axis);
  int const axes = index.meta.shape.rank;
  Strides rows = rows_of.strides;
  rows.rank = axes;
  Strides const strides[2] = {index.strides, rows};
  Operand const row = part(rows_of, 0, axes);
  index_t const n = row.meta.shape.numel();
  bool const dense = is_contiguous(row.meta.shape, row.strides);
  auto const row_at = [&](index_t at) {
    return checked_index(by, read_index(index, at), out.meta.shape[0], axis, given);
  };
  // Each thread adds to rows of its own, in the order of the indices, which have been checked before.
  int const parts = kernels::parts_of(2 * rows_of.meta.shape.numel(), out.meta.shape[0]);
  if (parts > 1) walk<2>(index.meta.shape, strides, [&](index_t const(&o)[2]) { row_at(o[0]); });
  auto const add = [&](kernels::Part const& mine) {
    auto const add_row = [&](index_t r, index_t at) {
      if (r < mine.begin || r >= mine.end) return;
      if (!dense) return add_elements(part(rows_of, at, axes), part(out, r * out.strides[0], 1));
      add_dense(static_cast<T*>(out.data) + r * out.strides[0], static_cast<T const*>(rows_of.data) + at, n);
    };
    auto const* const numbers = static_cast<T const*>(rows_of.data);
    auto* const sums = static_cast<T*>(out.data);
    Places places(index, out.meta.shape[0]);
    RowWalk line(index.meta.shape, strides, 2);
    if (line.empty()) return;
    do {
      index_t const step = line.step[0], rows_step = line.step[1];
      for (index_t first = 0; first < line.size; first += Places::most) {
        index_t const at = line.offset[0] + first * step, from = line.offset[1] + first * rows_step,
                      count = std::min(line.size - first, Places::most);
        if (!places.read(at, step, count))
          for (index_t i = 0; i < count; ++i) row_at(at + i * step);  // raises
        if (n == 1 && parts == 1)
          for (index_t i = 0; i < count; ++i) {
            T& sum = sums[places[i] * out.strides[0]];
            sum = static_cast<T>(math::plus(sum, numbers[from + i * rows_step]));
          }
        else
          for (index_t i = 0; i < count; ++i) add_row(places[i], from + i * rows_step);
      }
    } while (line.next());
  };
  kernels::in_parallel(parts, [&](int i) { add(kernels::part_of(out.meta.shape[0], i, parts)); });
}

}  // namespace detail

/// rows_add - sums the rows of x that share an index: the transpose of take. attrs.i[0] is the number of rows made.
/// An error says that they were axis attrs.i[1] when they were given.
///
/// Math      y_r = sum_{i: index_i = r} x_i, dx_i = dy_{index_i}
/// Shapes    x: [I..., R...], index: [I...] -> y: [attrs.i[0], R...]
/// Dtypes    x: all but bool, 16 bits summed in f32; index: i32 i64 u8
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
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    detail::summed_wide<T>(in[0], nullptr, out, [&](auto type, Operand const& x, Operand const& y) {
      detail::add_rows<typename decltype(type)::type>(detail::called(a, "take"), static_cast<int>(a.i[1]), x,
                                                      in[1], y);
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
    auto const row_at = [&](index_t at) {
      return detail::checked_index(by, read_index(in[1], at), table[0], static_cast<int>(a.i[1]), given);
    };
    auto const copy = [&](Shape const& some, index_t from, index_t to) {
      walk<2>(some, strides, [&](index_t const(&o)[2]) {
        index_t const r = row_at(o[0] + from), at = o[1] + to;
        if (dense)
          std::memcpy(static_cast<std::byte*>(out.data) + at * size,
                      static_cast<std::byte const*>(in[0].data) + r * in[0].strides[0] * size, bytes);
        else copy_elements(part(in[0], r * in[0].strides[0], 1), part(out, at, axes));
      });
    };
    // On several threads all indices are checked first.
    Shape const& index = in[1].meta.shape;
    int const parts = axes == 0 ? 1 : kernels::parts_of(2 * out.meta.shape.numel(), index[0]);
    if (parts == 1) return copy(index, 0, 0);
    walk<2>(index, strides, [&](index_t const(&o)[2]) { row_at(o[0]); });
    kernels::in_parallel(parts, [&](int i) {
      kernels::Part const p = kernels::part_of(index[0], i, parts);
      Shape some = index;
      some[0] = p.end - p.begin;
      copy(some, p.begin * strides[0][0], p.begin * strides[1][0]);
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

}  // namespace dfdx::op
