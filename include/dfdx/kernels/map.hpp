// SPDX-License-Identifier: BSL-1.0
// Elementwise ops on strided memory of any dtypes, one op at a time: what runs when an op is called on its own. An op
// brings one loop over dense blocks of numbers for float, double and 64-bit integers each; here, once for all ops,
// blocks are found in operands or made of them.
#pragma once

#include <cstring>
#include <utility>

#include <dfdx/core/math.hpp>
#include <dfdx/core/parallel.hpp>
#include <dfdx/kernels/computed.hpp>
#include <dfdx/kernels/convert.hpp>
#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/rvv/lanes.hpp>
#include <dfdx/kernels/simd/functions.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>
#include <dfdx/kernels/simd/truths.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// MapBlock - out[i] = f(in[0][i], ...) for n numbers each in a row.
using MapBlock = void (*)(void* out, void const* const* in, index_t n);

/// load_lane - a lane for numbers of type R: numbers of that type, or truths.
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
template <class R, class T>
DFDX_INLINE auto load_lane(T const* p) {
  if constexpr (std::is_same_v<T, bool>) return load_truths<R>(p);
  else return lane<R>::load_unaligned(p);
}
#endif

/// map_row - y[i] = f(x[i], ...).
template <class Op, class R, class... T>
void map_row(R* y, index_t n, T const*... x) {
  index_t i = 0;
#if defined(DFDX_RVV)
  if constexpr (std::is_floating_point_v<R> && (std::is_same_v<R, T> && ...)) {
    for (index_t const w = rvv::lanes(); i < n; i += w) {
      auto const count = static_cast<std::size_t>(n - i < w ? n - i : w);
      rvv::store_part(y + i, 1, rvv::evaluate<Op, T...>(rvv::load_part(x + i, 1, count)...), count);
    }
    return;
  }
#elif !defined(__CUDACC__)
  if constexpr (std::is_floating_point_v<R> && (std::is_same_v<R, T> && ...)) {
    constexpr index_t w = lane_size<R>;
    auto const store = [&]() DFDX_INLINE_LAMBDA {
      lane<R>(Op::eval(lane<R>::load_unaligned(x + i)...)).store_unaligned(y + i);
    };
    // Lines of a large result are asked for before they are stored.
    if (n * static_cast<index_t>(sizeof(R)) >= far_away)
      for (; i + w <= n; i += w) detail::ask_to_write(y + i, detail::stores_ahead), store();
    else
      for (; i + w <= n; i += w) store();
    // Few numbers alone go one by one: what is in a lane's other places would be computed too, with its traps.
    if (i < n && n >= w) {
      int const rest = static_cast<int>(n - i);
      store_n(y + i, lane<R>(Op::eval(load_n(x + i, rest)...)), rest);
      return;
    }
  } else if constexpr (std::is_floating_point_v<R> && sizeof...(T) == 3) {  // a choice
    for (constexpr index_t w = lane_size<R>; i + w <= n; i += w)
      lane<R>(Op::eval(load_lane<R>(x + i)...)).store_unaligned(y + i);
  } else if constexpr (std::is_same_v<R, bool> && (std::is_floating_point_v<T> && ...)) {  // a comparison
    using F = std::common_type_t<T...>;
    for (constexpr index_t w = lane_size<F>; i + w <= n; i += w)
      store_truths<F>(y + i, Op::eval(load_lane<F>(x + i)...));
  }
#endif
  // Of integers and truths compilers make vectors, also at -O2, where they know how many there are and that what they
  // store is none of what they read.
  if constexpr (Op::cost == 1 && (std::is_integral_v<T> && ...)) {
    constexpr index_t block = 64;
    for (; i + block <= n; i += block) {
      R made[block];
      for (index_t k = 0; k < block; ++k) made[k] = static_cast<R>(Op::eval(x[i + k]...));
      std::memcpy(y + i, made, sizeof made);
    }
  }
  for (; i < n; ++i) y[i] = static_cast<R>(Op::eval(x[i]...));
}

/// map_block - the MapBlock of an op: R is the type of the result, T those of the operands.
template <class Op, class R, class... T>
void map_block(void* out, void const* const* in, index_t n) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    map_row<Op, R, T...>(static_cast<R*>(out), n, static_cast<T const*>(in[I])...);
  }(std::index_sequence_for<T...>{});
}

namespace detail {

/// How many elements of a row are taken at once where an operand lies the other way: a line of f32.
inline constexpr index_t across = 16, rows_at_once = 64;

// The axis along which an operand lies close that is not close along the last; -1 if there is none.
inline int crossing_axis(Shape const& s, Strides const* t, int operands) {
  int const last = s.rank - 1;
  for (int k = 0; k < operands; ++k)
    for (int a = 0; a < last && t[k][last] > 1; ++a)
      if (t[k][a] == 1 && s[a] >= across && s[last] > across) return a;
  return -1;
}
// Leaves `across` elements of the last axis, which it divides, behind the crossing one: tiles, of which both sides are
// short enough to stay in the first cache.
inline void cut_across(Shape& s, Strides* t, int operands, int crossing) {
  auto const cut = [&](auto& x, index_t at_crossing, index_t of_parts, index_t of_tile) {
    int const last = s.rank - 1;
    for (int a = crossing; a + 1 < last; ++a) x[a] = x[a + 1];
    x[last - 1] = of_parts;
    x[last] = at_crossing;
    x.push_back(of_tile);
  };
  int const last = s.rank - 1;
  for (int k = 0; k < operands; ++k) cut(t[k], t[k][crossing], t[k][last] * across, t[k][last]);
  cut(s, s[crossing], s[last] / across, across);
}

}  // namespace detail

/// Blocks - an operand or the result of a map, and the dtype that the MapBlock has it in.
struct Blocks {
  Operand const* operand;
  DType as;
};

/// map - runs a MapBlock over n operands and the result, which all have the result's shape. Without Converts each has
/// the dtype that the MapBlock takes.
template <bool Converts = true>
void map(MapBlock f, Blocks const* in, int n, Blocks out) {
  auto const move = [](DType to, void* y, DType from, void const* x, detail::Rows const& r) {
    if constexpr (Converts) detail::convert_rows(to, y, from, x, r);
    else detail::copy_rows(from, y, x, r), static_cast<void>(to);
  };
  Shape shape = out.operand->meta.shape;
  Strides strides[RowWalk::max_operands];
  void const* data[RowWalk::max_operands] = {};
  bool direct = true;
  for (int k = 0; k <= n; ++k) {
    Blocks const& b = k < n ? in[k] : out;
    strides[k] = b.operand->strides;
    data[k] = b.operand->data;
    direct = direct && b.as == b.operand->meta.dtype && is_contiguous(shape, strides[k]);
  }
  // What an operation costs is not known here: some of them, with loads and a store.
  index_t const work = 8 * shape.numel();
  if (direct) {
    int const parts = parts_of(work, shape.numel() / detail::buffered);
    return in_parallel(parts, [&](int i) {
      Part const p = part_of(shape.numel(), i, parts, detail::buffered);
      auto const at = [&](Blocks const& b) { return p.begin * static_cast<index_t>(size_of(b.as)); };
      void const* x[RowWalk::max_operands] = {};
      for (int k = 0; k < n; ++k) x[k] = static_cast<std::byte const*>(data[k]) + at(in[k]);
      f(static_cast<std::byte*>(out.operand->data) + at(out), x, p.end - p.begin);
    });
  }
  detail::join_axes(shape, strides, n + 1);
  // The same for some positions of an axis.
  auto const map_part = [&](int axis, Part const& p) {
    Operand parts[RowWalk::max_operands];
    Blocks blocks[RowWalk::max_operands];
    for (int k = 0; k <= n; ++k) {
      Blocks const& b = k < n ? in[k] : out;
      parts[k] = *b.operand;
      parts[k].meta.shape = shape;
      parts[k].meta.shape[axis] = p.end - p.begin;
      parts[k].strides = strides[k];
      parts[k].data = static_cast<std::byte*>(parts[k].data) +
                      p.begin * strides[k][axis] * static_cast<index_t>(size_of(parts[k].meta.dtype));
      blocks[k] = {&parts[k], b.as};
    }
    map<Converts>(f, blocks, n, blocks[n]);
  };
  if (shape.rank > 0)
    if (int const parts = parts_of(work, shape[0]); parts > 1)
      return in_parallel(parts, [&](int i) { map_part(0, part_of(shape[0], i, parts)); });
  if (int const crossing = detail::crossing_axis(shape, strides, n); crossing >= 0 && shape.rank < max_rank) {
    if (index_t const rows = shape[crossing]; rows > detail::rows_at_once) {
      for (index_t k = 0; k < rows; k += detail::rows_at_once)
        map_part(crossing, {k, rows - k < detail::rows_at_once ? rows : k + detail::rows_at_once});
      return;
    }
    index_t const columns = shape[shape.rank - 1], rest = columns % detail::across;
    if (rest != 0) {
      // The columns that fill tiles, and those that are left.
      map_part(shape.rank - 1, {0, columns - rest});
      return map_part(shape.rank - 1, {columns - rest, columns});
    }
    detail::cut_across(shape, strides, n + 1, crossing);
  }
  // Rows that are short are taken many at once.
  index_t size = 1, step[RowWalk::max_operands] = {};
  if (shape.rank > 1 && shape[shape.rank - 1] <= detail::buffered / 2) {
    size = shape[--shape.rank];
    for (int k = 0; k <= n; ++k) step[k] = strides[k][--strides[k].rank];
  }
  RowWalk rows(shape, strides, n + 1);
  if (rows.empty() || size == 0) return;
  index_t const at_once = detail::buffered / size;
  alignas(64) std::byte buffers[RowWalk::max_operands][detail::buffered * sizeof(double)];
  // Where the numbers in a buffer came from, which may be wanted again, and how many rows they are.
  index_t filled[RowWalk::max_operands] = {-1, -1, -1, -1}, filled_rows[RowWalk::max_operands] = {};
  auto const place = [](Blocks const& b, index_t offset) {
    return static_cast<std::byte*>(b.operand->data) +
           offset * static_cast<index_t>(size_of(b.operand->meta.dtype));
  };
  auto const is_dense = [&](Blocks const& b, int k, index_t count) {
    return b.operand->meta.dtype == b.as && (size == 1 || step[k] == 1) &&
           (count == 1 || rows.step[k] == size);
  };
  do {
    for (index_t begin = 0; begin < rows.size; begin += at_once) {
      index_t const count = rows.size - begin < at_once ? rows.size - begin : at_once;
      void const* x[RowWalk::max_operands] = {};
      for (int k = 0; k < n; ++k) {
        index_t const from = rows.offset[k] + begin * rows.step[k];
        x[k] = place(in[k], from);
        if (is_dense(in[k], k, count)) continue;
        if (filled[k] != from || filled_rows[k] < count) {
          move(in[k].as, buffers[k], in[k].operand->meta.dtype, x[k],
               size == 1 ? detail::Rows{count, 1, rows.step[k]}
                         : detail::Rows{size, 1, step[k], count, size, rows.step[k]});
          filled[k] = from;
          filled_rows[k] = count;
        }
        x[k] = buffers[k];
      }
      std::byte* const y = place(out, rows.offset[n] + begin * rows.step[n]);
      if (is_dense(out, n, count)) {
        f(y, x, count * size);
      } else {
        f(buffers[n], x, count * size);
        move(out.operand->meta.dtype, y, out.as, buffers[n],
             size == 1 ? detail::Rows{count, rows.step[n], 1}
                       : detail::Rows{size, step[n], 1, count, rows.step[n], size});
      }
    }
  } while (rows.next());
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
