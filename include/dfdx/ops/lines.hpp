// SPDX-License-Identifier: BSL-1.0
// How ops that go along one axis find its lines in operands: several side by side, on several threads.
#pragma once

#include <dfdx/core/parallel.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::op::detail {

/// Lines - neighbouring lines along an axis: where the first begins in each operand, in elements, and how much later
/// the next ones do.
template <int N>
struct Lines {
  index_t begin[N];
  index_t step[N];
  index_t count;

  /// Whether the lines lie side by side in all operands.
  constexpr bool side_by_side() const {
    bool r = count > 1;
    for (index_t s : step) r = r && s == 1;
    return r;
  }
};
inline constexpr index_t most_lines = 64;

/// for_lines - f(lines) for all lines along an axis of operands of one shape. Each thread has an f = make() of its own,
/// and lines of its own; f must not throw. `work` is that of an element (core/parallel.hpp).
template <int N, class Make>
void for_lines(Shape shape, int axis, Operand const* const (&x)[N], index_t work, Make const& make) {
  work *= shape.numel();
  if (shape.numel() == 0) return;
  // Without the axis: where it is the last, the one before is walked in rows.
  auto const others = [axis](Shape const& s) {
    Shape r;
    for (int i = 0; i < s.rank; ++i)
      if (i != axis) r.push_back(s[i]);
    return r;
  };
  shape = others(shape);
  Strides strides[N];
  for (int k = 0; k < N; ++k) strides[k] = others(x[k]->strides);
  int longest = 0;
  for (int i = 0; i < shape.rank; ++i)
    if (shape[i] > shape[longest]) longest = i;
  auto const run = [&](Shape const& some, index_t first) {
    auto f = make();
    RowWalk row(some, strides, N);
    if (row.empty()) return;
    do {
      for (index_t i = 0; i < row.size; i += most_lines) {
        Lines<N> lines{{}, {}, row.size - i < most_lines ? row.size - i : most_lines};
        for (int k = 0; k < N; ++k) {
          lines.step[k] = row.step[k];
          lines.begin[k] = row.offset[k] + first * strides[k][longest] + i * row.step[k];
        }
        f(lines);
      }
    } while (row.next());
  };
  if (shape.rank == 0) return run(shape, 0);
  int const parts = kernels::parts_of(work, shape[longest]);
  kernels::in_parallel(parts, [&](int i) {
    kernels::Part const p = kernels::part_of(shape[longest], i, parts);
    Shape some = shape;
    some[longest] = p.end - p.begin;
    run(some, p.begin);
  });
}

}  // namespace dfdx::op::detail
