// SPDX-License-Identifier: BSL-1.0
// Ops along one axis in which order matters: the positions that sort and searchsorted find, and by scan.hpp what has
// been added up. Not fused: each has its own kernel here.
#pragma once

#include <cstdint>
#include <optional>

#include <dfdx/core/scratch.hpp>
#include <dfdx/ops/argmax.hpp>
#include <dfdx/ops/scan.hpp>
#include <dfdx/ops/select.hpp>

namespace dfdx::op {

/// argsort - positions of the elements in ascending order along axis attrs.i[0], or with attrs.i[1] = 1 in descending
/// order; of all with attrs.i[2] = 0, of the first k with k, of the k-th alone with -k. Equal elements stay in their
/// order; NaN counts as the largest.
///
/// Math      x_{y_0} <= x_{y_1} <= ...; no gradient
/// Shapes    x: [.., N, ..] -> y: [.., N, ..], [.., K, ..] or [.., 1, ..]
/// Dtypes    x: any, y: i64
/// Errors    "sort: axis 2 out of range for [2, 3]"
/// Source    elementary
struct argsort : operation {
  static constexpr char const* name = "argsort";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 1000;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text*) {
    Meta r{DType::i64, in[0].shape};
    if (a.i[2] != 0) r.shape[static_cast<int>(a.i[0])] = a.i[2] < 0 ? 1 : a.i[2];
    return r;
  }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    Shape const& s = in[0].meta.shape;
    index_t const n = s[axis];
    Operand const* const x[] = {in, &out};
    // Each thread has lists of its own.
    auto const make = [&] {
      return [&, room = Room()](detail::Lines<2> const& lines) mutable {
        using Key = decltype(detail::sort_key(T{}));
        if (sizeof(Key) == 4 && n > INT32_MAX)
          return sort_lines<T, std::uint64_t>(a, in[0], out, lines, room);
        return sort_lines<T, Key>(a, in[0], out, lines, room);
      };
    };
    detail::for_lines(s, axis, x, 64, make);
  }

 private:
  using Room = std::optional<kernels::Scratch<std::uint64_t>>;
  template <class T, class Key>
  static void sort_lines(Attrs const& a, Operand const& in, Operand const& out, detail::Lines<2> const& lines,
                         Room& room) {
    using Keyed = detail::Keyed<Key>;
    auto const axis = static_cast<int>(a.i[0]);
    index_t const n = in.meta.shape[axis], from_step = in.strides[axis], to_step = out.strides[axis];
    Key const flipped = a.i[1] != 0 ? ~Key(0) : Key(0);  // descending
    index_t const end = a.i[2] == 0 ? n : a.i[2] < 0 ? -a.i[2] : a.i[2], first = a.i[2] < 0 ? end - 1 : 0;
    // Of lines side by side several are read at once, the keys of each in a row of their own.
    index_t const at_once = lines.side_by_side() ? std::min<index_t>(lines.count, 16) : 1;
    if (!room) {  // the first lines are the most
      auto const bytes = static_cast<std::size_t>(n) * (2 * sizeof(Keyed) + at_once * sizeof(Key));
      room.emplace((bytes + 7) / 8);
    }
    auto* const keyed = reinterpret_cast<Keyed*>(room->get());
    auto* const keys = reinterpret_cast<Key*>(keyed + 2 * n);
    for (index_t j = 0; j < lines.count; j += at_once) {
      auto const* const from = static_cast<T const*>(in.data) + lines.begin[0] + j * lines.step[0];
      index_t const count = std::min(at_once, lines.count - j);
      auto const key = [&](index_t at) { return static_cast<Key>(detail::sort_key(from[at]) ^ flipped); };
      index_t i = 0;
      if (from_step == 1 && count == 1)
        for (constexpr index_t block = 32; i + block <= n; i += block)  // in vectors
          for (index_t k = 0; k < block; ++k) keys[i + k] = key(i + k);
      for (; i < n; ++i)
        for (index_t l = 0; l < count; ++l) keys[l * n + i] = key(i * from_step + l);
      for (index_t l = 0; l < count; ++l) {
        auto* const to = static_cast<std::int64_t*>(out.data) + lines.begin[1] + (j + l) * lines.step[1];
        Keyed const* const sorted = detail::keyed_in_order(keys + l * n, n, first, end, keyed);
        for (index_t k = 0; k < end - first; ++k)
          to[k * to_step] = static_cast<std::int64_t>(sorted[k].place);
      }
    }
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
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    int const last = in[0].meta.shape.rank - 1;
    index_t const n = in[0].meta.shape[last], step = in[0].strides[last];
    // Where the list of each value begins; one list serves all.
    Strides lists = out.meta.shape;
    for (int i = 0; i < lists.rank; ++i) lists[i] = i < last ? in[0].strides[i] : 0;
    Strides const strides[3] = {lists, in[1].strides, out.strides};
    walk<3>(out.meta.shape, strides, [&](index_t const(&o)[3]) {
      auto const x = static_cast<compute_t<T>>(static_cast<T const*>(in[1].data)[o[1]]);
      T const* const list = static_cast<T const*>(in[0].data) + o[0];
      // How many of the first elements `holds` is true of, and of none behind them: by halves without a branch, which
      // could not be foretold, so that several searches run at once.
      auto const first = [&](auto const& holds) {
        index_t low = 0;
        for (index_t left = n; left > 0;) {
          index_t const half = (left + 1) / 2;
          auto const v = static_cast<compute_t<T>>(list[(low + half - 1) * step]);
          low = holds(v) ? low + half : low;
          left -= half;
        }
        return low;
      };
      using V = compute_t<T>;
      index_t y = n;
      if (x != x) y = a.i[0] != 0 ? n : first([](V v) { return v == v; });  // NaN belong to the end
      else if (a.i[0] != 0) y = first([x](V v) { return v <= x; });
      else y = first([x](V v) { return v < x; });
      static_cast<std::int64_t*>(out.data)[o[2]] = y;
    });
  }
};

}  // namespace dfdx::op
