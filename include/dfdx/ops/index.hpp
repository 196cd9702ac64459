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
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const run = [&](Operand const& x, Operand const& y) { put(a, x, in[1], y); };
    if (a.i[1] != 0) run(in[0], out);
    else detail::summed_wide(in[0], out, run);
  }

 private:
  template <int = 0>
  static void put(Attrs const& a, Operand const& from, Operand const& places, Operand const& out) {
    detail::set_zero(out);
    auto const axis = static_cast<int>(a.i[0]);
    Strides others = out.strides;
    others[axis] = 0;
    Strides const strides[3] = {from.strides, places.strides, others};
    Shape const &s = out.meta.shape, &index = places.meta.shape;
    if (index.numel() == 0) return;
    bool const replace = a.i[1] != 0;
    char const* const by = detail::called(a, "gather");
    index_t const extent = s[axis], along = out.strides[axis];
    auto const place = [&](index_t at) {
      return detail::checked_index(by, read_index(places, at), extent, axis, s);
    };
    // Threads have slices of other axes than the one along which places may meet: all is added in the same order.
    dispatch(out.meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      auto const add = [&](Shape const& some, int sliced, index_t first) {
        RowWalk row(some, strides, 3);
        index_t const step[] = {row.step[0], row.step[1], row.step[2]};
        index_t begin[3] = {};
        for (int i = 0; i < 3 && first > 0; ++i) begin[i] = first * strides[i][sliced];
        do {
          T const* DFDX_RESTRICT const x = static_cast<T const*>(from.data) + begin[0] + row.offset[0];
          T* DFDX_RESTRICT const y = static_cast<T*>(out.data) + begin[2] + row.offset[2];
          for (index_t k = 0; k < row.size; ++k) {
            T& to = y[k * step[2] + place(begin[1] + row.offset[1] + k * step[1]) * along];
            to = replace ? x[k * step[0]] : static_cast<T>(math::plus(to, x[k * step[0]]));
          }
        } while (row.next());
      };
      detail::for_slices(index, axis, add);
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
    if (index.numel() == 0) return;
    auto const place = [&](index_t at) {
      return detail::checked_index(by, read_index(in[1], at), s[axis], axis, s);
    };
    auto const take = [&](Shape const& some, int sliced, index_t first) {
      RowWalk row(some, strides, 3);
      index_t const step = row.step[0], index_step = row.step[1], to_step = row.step[2];
      index_t begin[3] = {};
      for (int i = 0; i < 3 && first > 0; ++i) begin[i] = first * strides[i][sliced];
      do {
        E* const y = static_cast<E*>(out.data) + begin[2] + row.offset[2];
        E const* const x = static_cast<E const*>(in[0].data) + begin[0] + row.offset[0];
        index_t const at = begin[1] + row.offset[1];
        auto const source = [&](index_t k) { return x + place(k) * in[0].strides[axis]; };
        if (index_step != 0) {
          index_t k = 0;
#if defined(__riscv_vector)
          index_t const along = in[0].strides[axis];
          k = detail::run_gather_row<E>(in[1],
                                        {x, y, along, step, s[axis], at, index_step, to_step, row.size});
#endif
          if (k == 0)
            k = known_places(in[1], at, index_step, s[axis], row.size, [&](auto place_of) {
              index_t const along = in[0].strides[axis];
              if (to_step == 1 && step == 0)
                for (index_t i = 0; i < row.size; ++i) y[i] = x[place_of(i) * along];
              else
                for (index_t i = 0; i < row.size; ++i) y[i * to_step] = x[place_of(i) * along + i * step];
            });
          for (; k < row.size; ++k) y[k * to_step] = source(at + k * index_step)[k * step];
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

  // Whether n integers are at least 0 and less than the extent: neither they nor what they lack to the last have a
  // sign, which compilers find by vectors in blocks of known size.
  template <class I>
  static bool all_places(I const* p, index_t step, index_t extent, index_t n) {
    auto const last = static_cast<std::uint64_t>(extent - 1);
    constexpr index_t block = 64, lanes = 8;
    std::uint64_t signs[lanes] = {};
    auto const look = [&](std::uint64_t& sign, I place) {
      auto const v = static_cast<std::uint64_t>(static_cast<std::int64_t>(place));
      sign |= v | (last - v);
    };
    index_t i = 0;
    if (step == 1)
      for (; i + block <= n; i += block)
        for (index_t k = 0; k < block; k += lanes)
          for (index_t j = 0; j < lanes; ++j) look(signs[j], p[i + k + j]);
    for (; i < n; ++i) look(signs[0], p[i * step]);
    for (index_t j = 1; j < lanes; ++j) signs[0] |= signs[j];
    return signs[0] >> 63 == 0;
  }

  // f(place of element i) if all n places, from `at` on, are among `extent`; how many that was, n or 0. They are asked
  // for what they are once, and for being places all together.
  template <class F>
  static index_t known_places(Operand const& index, index_t at, index_t step, index_t extent, index_t n,
                              F const& f) {
    auto const of = [&](auto const* p) {
      p += at;
      if (!all_places(p, step, extent, n)) return index_t{0};
      if (step == 1) f([p](index_t i) { return static_cast<index_t>(p[i]); });
      else f([p, step](index_t i) { return static_cast<index_t>(p[i * step]); });
      return n;
    };
    switch (index.meta.dtype) {
      case DType::i32: return of(static_cast<std::int32_t const*>(index.data));
      case DType::u8: return of(static_cast<std::uint8_t const*>(index.data));
      default: return of(static_cast<std::int64_t const*>(index.data));
    }
  }
};

template <int I, class V>
constexpr V scatter::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind<gather>(Attrs{{s.attrs.i[0], 0, s.attrs.i[2]}}, ct, s.x[1]);
  else return V{};
}

}  // namespace dfdx::op
