// SPDX-License-Identifier: BSL-1.0
// Copies of transposed arrays, in tiles, and of triangles of matrices.
#pragma once

#include <algorithm>
#include <cstdint>

#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

#if !defined(__CUDACC__)

// Transposes of elements of E, or of any type of their size; past the caches if they are many.
using Transpose = void (*)(void const* from, index_t from_row, index_t rows, index_t columns, void* to,
                           index_t to_row);
template <class E, bool Past>
void transpose_any(void const* from, index_t from_row, index_t rows, index_t columns, void* to,
                   index_t to_row) {
  auto const* const x = static_cast<E const*>(from);
  auto* const y = static_cast<E*>(to);
  if constexpr (Past) transpose_past(x, from_row, rows, columns, y, to_row);
  else transpose(x, from_row, rows, columns, y, to_row);
}

/// out = in where elements of `in`, of so many bytes, lie side by side along one axis, and those of `out` along the
/// last: as many transposes as the other axes have places.
template <int = 0>
void copy_across(Shape shape, Strides (&strides)[2], int crossing, void const* in, void* out, index_t bytes) {
  index_t const all = shape.numel();
  int const last = shape.rank - 1;
  index_t const rows = shape[last], columns = shape[crossing], in_row = strides[0][last],
                out_row = strides[1][crossing];
  auto const drop = [](auto& x, int axis) {
    for (int a = axis; a + 1 < x.rank; ++a) x[a] = x[a + 1];
    --x.rank;
  };
  for (int const axis : {last, crossing}) {
    drop(shape, axis);
    for (Strides& s : strides) drop(s, axis);
  }
  bool const is_large = all * bytes >= past_caches;
  Transpose const turn = bytes == 4 ? is_large ? &transpose_any<float, true> : &transpose_any<float, false>
                         : is_large ? &transpose_any<double, true>
                                    : &transpose_any<double, false>;
  constexpr index_t unit = 64;
  int const parts = parts_of(4 * all, (columns + unit - 1) / unit);
  in_parallel(parts, [&](int i) {
    Part const p = part_of(columns, i, parts, unit);
    RowWalk walk(shape, strides, 2);
    if (walk.empty()) return;
    do {
      for (index_t k = 0; k < walk.size; ++k)
        turn(static_cast<std::byte const*>(in) + (walk.offset[0] + k * walk.step[0] + p.begin) * bytes,
             in_row, rows, p.end - p.begin,
             static_cast<std::byte*>(out) + (walk.offset[1] + k * walk.step[1] + p.begin * out_row) * bytes,
             out_row);
    } while (walk.next());
  });
}

#endif

}  // namespace detail

namespace detail {

template <class E>
void copy_triangle(Operand const& in, Operand const& out, index_t k, bool lower) {
  Shape shape = out.meta.shape;
  Strides strides[2] = {in.strides, out.strides};
  index_t const n = shape[--shape.rank], step = strides[0][--strides[0].rank];
  --strides[1].rank;
  RowWalk matrix(shape, strides, 2);
  if (matrix.empty() || n == 0) return;
  do
    for (index_t i = 0; i < matrix.size; ++i) {
      // Of a row what lies before the end of the lower triangle, or all from the beginning of the upper one on.
      index_t const edge = std::clamp<index_t>(i + k + (lower ? 1 : 0), 0, n);
      index_t const begin = lower ? 0 : edge, end = lower ? edge : n;
      auto const* const x = static_cast<E const*>(in.data) + matrix.offset[0] + i * matrix.step[0];
      auto* const y = static_cast<E*>(out.data) + matrix.offset[1] + i * matrix.step[1];
      if (n <= 16) {
        for (index_t j = 0; j < n; ++j) y[j] = j >= begin && j < end ? x[j * step] : E(0);
        continue;
      }
      dfdx::detail::repeat(y, begin, E(0));
      dfdx::detail::copy_rows<E>(y + begin, 0, 1, x + begin * step, 0, step, 1, end - begin);
      dfdx::detail::repeat(y + end, n - end, E(0));
    }
  while (matrix.next());
}

}  // namespace detail

/// copy_triangle - out, dense, = the elements of matrices below the k-th diagonal and on it, or above it and on it, and
/// zeros; |k| is at most 2^62.
template <int = 0>
void copy_triangle(Operand const& in, Operand const& out, index_t k, bool lower) {
  dispatch_bits(out.meta.dtype,
                [&](auto type) { detail::copy_triangle<typename decltype(type)::type>(in, out, k, lower); });
}

/// copy_transposed - out = in, of one shape and dtype, if an axis along which elements of `in` lie side by side is not
/// the last: in tiles, on several threads. Whether it was so, and is done.
template <int = 0>
bool copy_transposed(Operand const& in, Operand const& out) {
#if !defined(__CUDACC__)
  if (std::size_t const size = size_of(out.meta.dtype); size == 4 || size == 8) {
    Shape shape = out.meta.shape;
    Strides strides[2] = {in.strides, out.strides};
    detail::join_axes(shape, strides, 2);
    if (shape.rank > 1 && strides[1][shape.rank - 1] == 1)
      if (int const crossing = detail::crossing_axis(shape, strides, 1); crossing >= 0) {
        detail::copy_across(shape, strides, crossing, in.data, out.data, static_cast<index_t>(size));
        return true;
      }
  }
#endif
  static_cast<void>(in);
  static_cast<void>(out);
  return false;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
