// SPDX-License-Identifier: BSL-1.0
// Elementwise ops on strided memory of any dtypes, one op at a time: what runs when an op is called on its own. An op
// brings one loop over dense blocks of numbers for float, double and 64-bit integers each; here, once for all ops,
// blocks are found in operands or made of them.
#pragma once

#include <algorithm>
#include <utility>

#include <dfdx/core/math.hpp>
#include <dfdx/kernels/simd/functions.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// MapBlock - out[i] = f(in[0][i], ...) for n numbers each in a row.
using MapBlock = void (*)(void* out, void const* const* in, index_t n);

/// map_row - y[i] = f(x[i], ...).
template <class Op, class R, class... T>
void map_row(R* y, index_t n, T const*... x) {
  index_t i = 0;
#if !defined(__CUDACC__)
  if constexpr (std::is_floating_point_v<R> && (std::is_same_v<R, T> && ...)) {
    constexpr index_t w = lane_size<R>;
    for (; i + w <= n; i += w) lane<R>(Op::eval(lane<R>::load_unaligned(x + i)...)).store_unaligned(y + i);
    // Few numbers alone go one by one: what is in a lane's other places would be computed too, with its traps.
    if (i < n && n >= w) {
      int const rest = static_cast<int>(n - i);
      store_n(y + i, lane<R>(Op::eval(load_n(x + i, rest)...)), rest);
      return;
    }
  }
#endif
  for (; i < n; ++i) y[i] = static_cast<R>(Op::eval(x[i]...));
}

/// map_block - the MapBlock of an op: R is the type of the result, T those of the operands.
template <class Op, class R, class... T>
void map_block(void* out, void const* const* in, index_t n) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    map_row<Op, R, T...>(static_cast<R*>(out), n, static_cast<T const*>(in[I])...);
  }(std::index_sequence_for<T...>{});
}

/// computed_as - the dtype whose numbers stand for those of another one in blocks.
constexpr DType computed_as(DType d) {
  if (d == DType::f64) return d;
  return is_floating(d) ? DType::f32 : DType::i64;
}

namespace detail {

inline constexpr index_t buffered = 512;

template <class To, class From>
void convert_run(void* to, void const* from, index_t to_step, index_t from_step, index_t n) {
  auto* y = static_cast<To*>(to);
  auto const* x = static_cast<From const*>(from);
  if constexpr (std::is_same_v<To, From>)
    if (from_step == 0 && to_step == 1) return void(std::fill_n(y, n, *x));
  for (index_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, bool>) y[i * to_step] = x[i * from_step] != From(0);
    else y[i * to_step] = static_cast<To>(static_cast<compute_t<From>>(x[i * from_step]));
  }
}

// Between a dtype and the one it is computed as (and among those).
inline void convert_run(DType to_type, void* to, index_t to_step, DType from_type, void const* from,
                        index_t from_step, index_t n) {
  auto const from_known = [&](auto x) {
    using X = decltype(x);
    switch (to_type) {
      case DType::f32: return convert_run<float, X>(to, from, to_step, from_step, n);
      case DType::f64: return convert_run<double, X>(to, from, to_step, from_step, n);
      case DType::i64: return convert_run<std::int64_t, X>(to, from, to_step, from_step, n);
      case DType::f16: return convert_run<float16, X>(to, from, to_step, from_step, n);
      case DType::bf16: return convert_run<bfloat16, X>(to, from, to_step, from_step, n);
      case DType::i32: return convert_run<std::int32_t, X>(to, from, to_step, from_step, n);
      case DType::u8: return convert_run<std::uint8_t, X>(to, from, to_step, from_step, n);
      default: return convert_run<bool, X>(to, from, to_step, from_step, n);
    }
  };
  auto const to_known = [&](auto y) {
    using Y = decltype(y);
    switch (from_type) {
      case DType::f16: return convert_run<Y, float16>(to, from, to_step, from_step, n);
      case DType::bf16: return convert_run<Y, bfloat16>(to, from, to_step, from_step, n);
      case DType::i32: return convert_run<Y, std::int32_t>(to, from, to_step, from_step, n);
      case DType::u8: return convert_run<Y, std::uint8_t>(to, from, to_step, from_step, n);
      default: return convert_run<Y, bool>(to, from, to_step, from_step, n);
    }
  };
  switch (from_type) {
    case DType::f32: return from_known(float{});
    case DType::f64: return from_known(double{});
    case DType::i64: return from_known(std::int64_t{});
    default: break;
  }
  switch (to_type) {
    case DType::f32: return to_known(float{});
    case DType::f64: return to_known(double{});
    case DType::i64: return to_known(std::int64_t{});
    default: return to_known(bool{});
  }
}

// Joins neighbouring axes that all operands walk as one, so that rows are long.
inline void join_axes(Shape& s, Strides* t, int operands) {
  int kept = 0;
  for (int a = 0; a < s.rank; ++a) {
    if (s[a] == 1 && s.rank > 1 && a + 1 < s.rank) continue;
    bool joins = kept > 0;
    for (int k = 0; joins && k < operands; ++k) joins = t[k][kept - 1] == t[k][a] * s[a];
    if (kept > 0 && s[a] == 1) continue;
    if (joins) s[kept - 1] *= s[a];
    else s[kept++] = s[a];
    for (int k = 0; k < operands; ++k) t[k][kept - 1] = t[k][a];
  }
  s.rank = kept;
  for (int k = 0; k < operands; ++k) t[k].rank = kept;
}

}  // namespace detail

/// Blocks - an operand or the result of a map, and the dtype that the MapBlock has it in.
struct Blocks {
  Operand const* operand;
  DType as;
};

/// map - runs a MapBlock over n operands and the result, which all have the result's shape.
inline void map(MapBlock f, Blocks const* in, int n, Blocks out) {
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
  if (direct) return f(out.operand->data, data, shape.numel());
  detail::join_axes(shape, strides, n + 1);
  RowWalk row(shape, strides, n + 1);
  if (row.empty()) return;
  alignas(64) std::byte buffers[RowWalk::max_operands][detail::buffered * sizeof(double)];
  index_t filled[RowWalk::max_operands] = {-1, -1, -1, -1};  // where a repeated number in a buffer came from
  auto const at = [&](Blocks const& b, index_t offset) {
    return static_cast<std::byte*>(b.operand->data) +
           offset * static_cast<index_t>(size_of(b.operand->meta.dtype));
  };
  do {
    for (index_t begin = 0; begin < row.size; begin += detail::buffered) {
      index_t const count = row.size - begin < detail::buffered ? row.size - begin : detail::buffered;
      void const* x[RowWalk::max_operands] = {};
      for (int k = 0; k < n; ++k) {
        index_t const step = row.step[k], from = row.offset[k] + begin * step;
        DType const stored = in[k].operand->meta.dtype;
        x[k] = at(in[k], from);
        if (stored == in[k].as && (step == 1 || count == 1)) continue;
        if (step != 0 || filled[k] != from) {
          index_t const fill =
              step == 0 ? (row.size < detail::buffered ? row.size : detail::buffered) : count;
          detail::convert_run(in[k].as, buffers[k], 1, stored, x[k], step, fill);
          filled[k] = step == 0 ? from : -1;
        }
        x[k] = buffers[k];
      }
      index_t const step = row.step[n];
      std::byte* const y = at(out, row.offset[n] + begin * step);
      DType const stored = out.operand->meta.dtype;
      if (stored == out.as && (step == 1 || count == 1)) {
        f(y, x, count);
      } else {
        f(buffers[n], x, count);
        detail::convert_run(stored, y, step, out.as, buffers[n], 1, count);
      }
    }
  } while (row.next());
}

/// convert - out = in, each element in out's dtype: truncated to integers, bool is "not zero".
inline void convert(Operand const& in, Operand const& out) {
  Shape shape = out.meta.shape;
  Strides strides[2] = {in.strides, out.strides};
  detail::join_axes(shape, strides, 2);
  RowWalk row(shape, strides, 2);
  if (row.empty()) return;
  DType const from = in.meta.dtype, to = out.meta.dtype;
  auto const is_computed = [](DType d) { return d == DType::f32 || d == DType::f64 || d == DType::i64; };
  // What has neither side among the dtypes computed with goes through one that holds both.
  bool const direct = is_computed(from) || is_computed(to);
  DType const between = is_floating(from) ? DType::f32 : DType::i64;
  auto const* x = static_cast<std::byte const*>(in.data);
  auto* y = static_cast<std::byte*>(out.data);
  auto const from_size = static_cast<index_t>(size_of(from)), to_size = static_cast<index_t>(size_of(to));
  do {
    std::byte const* const a = x + row.offset[0] * from_size;
    std::byte* const b = y + row.offset[1] * to_size;
    if (direct) {
      detail::convert_run(to, b, row.step[1], from, a, row.step[0], row.size);
      continue;
    }
    alignas(64) std::byte buffer[detail::buffered * sizeof(double)];
    for (index_t i = 0; i < row.size; i += detail::buffered) {
      index_t const count = row.size - i < detail::buffered ? row.size - i : detail::buffered;
      detail::convert_run(between, buffer, 1, from, a + i * row.step[0] * from_size, row.step[0], count);
      detail::convert_run(to, b + i * row.step[1] * to_size, row.step[1], between, buffer, 1, count);
    }
  } while (row.next());
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
