// SPDX-License-Identifier: BSL-1.0
// Copies of transposed arrays, in tiles.
#pragma once

#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

#if !defined(__CUDACC__)

/// out = in where elements of `in` lie side by side along one axis, and those of `out` along the last: as many
/// transposes as the other axes have places. E is any type of their size that registers hold.
template <class E>
void copy_across(Shape shape, Strides (&strides)[2], int crossing, void const* in, void* out) {
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
  bool const is_large = all * static_cast<index_t>(sizeof(E)) >= past_caches;
  constexpr index_t unit = 64;
  int const parts = parts_of(4 * all, (columns + unit - 1) / unit);
  in_parallel(parts, [&](int i) {
    Part const p = part_of(columns, i, parts, unit);
    RowWalk walk(shape, strides, 2);
    if (walk.empty()) return;
    do {
      for (index_t k = 0; k < walk.size; ++k) {
        auto const* const x = static_cast<E const*>(in) + walk.offset[0] + k * walk.step[0] + p.begin;
        auto* const y = static_cast<E*>(out) + walk.offset[1] + k * walk.step[1] + p.begin * out_row;
        if (is_large) transpose_past(x, in_row, rows, p.end - p.begin, y, out_row);
        else transpose(x, in_row, rows, p.end - p.begin, y, out_row);
      }
    } while (walk.next());
  });
}

#endif

}  // namespace detail

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
        if (size == 4) detail::copy_across<float>(shape, strides, crossing, in.data, out.data);
        else detail::copy_across<double>(shape, strides, crossing, in.data, out.data);
        return true;
      }
  }
#endif
  static_cast<void>(in);
  static_cast<void>(out);
  return false;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
