// SPDX-License-Identifier: BSL-1.0
// Ops that move elements to computed places (gather and scatter; rows.hpp has take) or choose among them (argmax): not
// fused, each with a kernel of its own, `run`, over strided memory.
#pragma once

#include <algorithm>
#include <vector>

#include <dfdx/ops/comparison.hpp>
#include <dfdx/ops/rows.hpp>

namespace dfdx::op {

namespace detail {

/// for_slices - f(slice, axis, first) for slices of a shape, from place `first` of an axis on, by a thread each; never
/// of the axis `but`. Where one throws, all is done again on one thread, which throws what it does without others.
template <class F>
void for_slices(Shape const& shape, int but, F const& f) {
  if constexpr (kernels::has_threads) {
    int axis = -1;
    for (int i = 0; i < shape.rank; ++i)
      if (i != but && (axis < 0 || shape[i] > shape[axis])) axis = i;
    int const parts = axis < 0 ? 1 : kernels::parts_of(4 * shape.numel(), shape[axis]);
    if (parts > 1) {
      std::vector<char> failed(static_cast<std::size_t>(parts));
      kernels::in_parallel(parts, [&](int i) {
        kernels::Part const p = kernels::part_of(shape[axis], i, parts);
        Shape some = shape;
        some[axis] = p.end - p.begin;
        if (dfdx::detail::caught([&] { f(some, axis, p.begin); })) failed[static_cast<std::size_t>(i)] = 1;
      });
      if (std::find(failed.begin(), failed.end(), 1) == failed.end()) return;
    }
  }
  f(shape, 0, 0);
}

/// gather_dense - y[i] = x[places[i]]: four at once, which compilers do not see by themselves.
template <class E>
void gather_dense(E* y, E const* x, Places const& places, index_t n) {
  index_t i = 0;
  for (; i + 4 <= n; i += 4) {
    E const a = x[places[i]], b = x[places[i + 1]], c = x[places[i + 2]], d = x[places[i + 3]];
    y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
  }
  for (; i < n; ++i) y[i] = x[places[i]];
}

/// put_elements - adds elements to those of `out` at places along axis attrs.i[0]; with attrs.i[1] = 1 replaces them.
/// Places may have been looked at before.
template <class T>
void put_elements(Attrs const& a, Operand const& from, Operand const& places, Operand const& out,
                  bool looked_at = false) {
  auto const axis = static_cast<int>(a.i[0]);
  Strides others = out.strides;
  others[axis] = 0;
  Strides const strides[3] = {from.strides, places.strides, others};
  Shape const &s = out.meta.shape, &index = places.meta.shape;
  if (index.numel() == 0) return;
  bool const replace = a.i[1] != 0;
  char const* const by = called(a, "gather");
  index_t const extent = s[axis], along = out.strides[axis];
  auto const place = [&](index_t at) { return checked_index(by, read_index(places, at), extent, axis, s); };
  // Threads have slices of other axes than the one along which places may meet: all is added in the same order.
  auto const add = [&](Shape const& some, int sliced, index_t first) {
    RowWalk row(some, strides, 3);
    Places at(places, extent);
    index_t const step[] = {row.step[0], row.step[1], row.step[2]};
    index_t begin[3] = {};
    for (int i = 0; i < 3 && first > 0; ++i) begin[i] = first * strides[i][sliced];
    do {
      for (index_t done = 0; done < row.size; done += Places::most) {
        index_t const n = std::min(row.size - done, Places::most);
        auto const from_here = [&](int i) { return begin[i] + row.offset[i] + done * step[i]; };
        if (!at.read(from_here(1), step[1], n, looked_at))
          for (index_t k = 0; k < n; ++k) place(from_here(1) + k * step[1]);  // raises
        T const* DFDX_RESTRICT const x = static_cast<T const*>(from.data) + from_here(0);
        T* DFDX_RESTRICT const y = static_cast<T*>(out.data) + from_here(2);
        if (!replace && step[0] == 1 && step[1] == 0 && step[2] == 1)  // an index for the row
          add_dense(y + at[0] * along, x, n);
        else
          for (index_t k = 0; k < n; ++k) {
            T& to = y[k * step[2] + at[k] * along];
            to = replace ? x[k * step[0]] : static_cast<T>(math::plus(to, x[k * step[0]]));
          }
      }
    } while (row.next());
  };
  for_slices(index, axis, add);
}

}  // namespace detail

/// scatter - adds elements into zeros at places along one axis: the transpose of gather. attrs.i[0] is the axis;
/// with attrs.i[1] = 1 an element replaces what came before it. The result's shape is given with bind_as.
///
/// Math      y[.., index[i], ..] += x[i], dx[i] = dy[.., index[i], ..]
/// Shapes    x: [I...], index: [I...] -> y: [S...] with S >= I off the axis
/// Dtypes    x: all but bool, 16 bits summed in f32; index: i32 i64 u8
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
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const put = [&](auto type, Operand const& x, Operand const& y) {
      detail::put_elements<typename decltype(type)::type>(a, x, in[1], y);
    };
    if (a.i[1] == 0) return detail::summed_wide<T>(in[0], nullptr, out, put);
    detail::set_zero(out);
    put(std::type_identity<T>{}, in[0], out);
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
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    copy<bits_of<T>>(a, in, out);
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
    if (index.numel() == 0) return;
    auto const place = [&](index_t at) {
      return detail::checked_index(by, read_index(in[1], at), s[axis], axis, s);
    };
    auto const take = [&](Shape const& some, int sliced, index_t first) {
      RowWalk row(some, strides, 3);
      detail::Places places(in[1], s[axis]);
      index_t const step = row.step[0], index_step = row.step[1], to_step = row.step[2];
      index_t begin[3] = {};
      for (int i = 0; i < 3 && first > 0; ++i) begin[i] = first * strides[i][sliced];
      do {
        E* const y = static_cast<E*>(out.data) + begin[2] + row.offset[2];
        E const* const x = static_cast<E const*>(in[0].data) + begin[0] + row.offset[0];
        index_t const at = begin[1] + row.offset[1];
        index_t const along = in[0].strides[axis];
        auto const source = [&](index_t k) { return x + place(k) * along; };
        if (index_step != 0) {
          index_t k = 0;
#if defined(__riscv_vector)
          k = detail::run_gather_row<E>(in[1],
                                        {x, y, along, step, s[axis], at, index_step, to_step, row.size});
#endif
          while (k < row.size) {
            index_t const n = std::min(row.size - k, detail::Places::most);
            if (!places.read(at + k * index_step, index_step, n))
              for (index_t i = 0; i < n; ++i) source(at + (k + i) * index_step);  // raises
            E* const to = y + k * to_step;
            E const* const from = x + k * step;
            if (to_step == 1 && step == 0 && along == 1) detail::gather_dense(to, from, places, n);
            else
              for (index_t i = 0; i < n; ++i) to[i * to_step] = from[places[i] * along + i * step];
            k += n;
          }
          continue;
        }
        // One index for the row, as where an index was expanded.
        E const* const from = source(at);
        if (step == 1 && to_step == 1) std::memcpy(y, from, static_cast<std::size_t>(row.size) * sizeof(E));
        else
          for (index_t k = 0; k < row.size; ++k) y[k * to_step] = from[k * step];
      } while (row.next());
    };
    detail::for_slices(index, -1, take);
  }
};

template <int I, class V>
constexpr V scatter::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind<gather>(Attrs{{s.attrs.i[0], 0, s.attrs.i[2]}}, ct, s.x[1]);
  else return V{};
}

}  // namespace dfdx::op
