// SPDX-License-Identifier: BSL-1.0
// slide: a window that moves on. Programs take it for a concat whose result replaces the window it is made from.
#pragma once

#include <cstring>

#include <dfdx/ops/views.hpp>

namespace dfdx::op {

/// slide - what an array of the last values becomes when new ones come: all move up axis attrs.i[0], those at its
/// start are dropped and x stands at its end; the other way round if attrs.i[1] is not 0.
///
/// Math      y = concat(w[.., M: , ..], x), or concat(x, w[.., :N - M, ..])
/// Shapes    w: [.., N, ..], x: [.., M, ..] -> y: [.., N, ..], M at most N
/// Dtypes    any one
/// Errors    none of its own: it stands for a concat that was checked
/// Source    elementary
struct slide : operation {
  static constexpr char const* name = "slide";
  static constexpr int takes_over = 0;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr int arity = 2;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  // Both are row-major. The window is moved as one piece of memory: what so comes to stand in a row from another is
  // where x goes.
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    bool const to_front = a.i[1] != 0;
    Shape const& shape = out.meta.shape;
    if (shape.numel() == 0) return;
    auto const size = static_cast<index_t>(size_of(out.meta.dtype));
    index_t const rows = rows_of(shape, axis), all = shape.numel() * size, row = all / rows;
    index_t const fresh = row / shape[axis] * in[1].meta.shape[axis];
    auto* const to = static_cast<std::byte*>(out.data);
    auto const* const from = static_cast<std::byte const*>(in[0].data);
    std::memmove(to_front ? to + fresh : to, to_front ? from : from + fresh,
                 static_cast<std::size_t>(all - fresh));
    auto const* x = static_cast<std::byte const*>(in[1].data);
    std::byte* y = to_front ? to : to + (row - fresh);
    for (index_t i = 0; i < rows; ++i, x += fresh, y += row) {
      if (fresh == 4) std::memcpy(y, x, 4);
      else std::memcpy(y, x, static_cast<std::size_t>(fresh));
    }
  }

 private:
  static constexpr index_t rows_of(Shape const& shape, int axis) {
    index_t rows = 1;
    for (int i = 0; i < axis; ++i) rows *= shape[i];
    return rows;
  }
};

}  // namespace dfdx::op
