// SPDX-License-Identifier: BSL-1.0
// Shape rules that several ops share: equal extents, broadcasting, axes. Each refuses with a text that names the
// op.
#pragma once

#include <dfdx/ops/op.hpp>

namespace dfdx::op {

/// extents_agree - whether two extents may be the same number; one that is not known yet agrees with any.
constexpr bool extents_agree(index_t a, index_t b) { return a == b || a < 0 || b < 0; }

/// shapes_agree - the same of all extents: of arguments with extents of their own that only a call tells to be equal.
constexpr bool shapes_agree(Shape const& a, Shape const& b) {
  bool agree = a.rank == b.rank;
  for (int i = 0; agree && i < a.rank; ++i) agree = extents_agree(a[i], b[i]);
  return agree;
}

/// is_extent - a count, -1 or symbols; not another negative number, nor a product that overflowed.
constexpr bool is_extent(index_t e) {
  return e >= extent::unknown ||
         (extent::is_symbolic(e) && (e & ~extent::symbol_flag) >> extent::factor_bits != 0);
}

/// overflows - whether an extent of a shape, or their product, is no number of 64 bits.
constexpr bool overflows(Shape const& s) {
  for (int i = 0; i < s.rank; ++i)
    if (!is_extent(s[i])) return true;
  return s.is_static() && s.numel() < 0;
}

/// merged - the better known of two extents that agree.
constexpr index_t merged(index_t a, index_t b) {
  return a >= 0 ? a : b >= 0 ? b : a == extent::unknown ? b : a;
}

/// broadcast_shapes - NumPy's rule: aligned at the last axis, extents equal or 1.
constexpr Shape broadcast_shapes(char const* name, Shape const& a, Shape const& b, Text* why) {
  Shape r;
  r.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = 0; i < r.rank; ++i) {
    int const ia = i - (r.rank - a.rank), ib = i - (r.rank - b.rank);
    index_t const ea = ia < 0 ? 1 : a.dims[ia], eb = ib < 0 ? 1 : b.dims[ib];
    if (ea == 1 || ea == eb) r.dims[i] = eb;
    else if (eb == 1) r.dims[i] = ea;
    else if (extents_agree(ea, eb)) r.dims[i] = merged(ea, eb);
    else return refuse(why, name, ": shapes do not broadcast: ", a, " x ", b).shape;
  }
  return r;
}

/// reduced_shape - the shape with the axes of a bit mask set to 1.
constexpr Shape reduced_shape(Shape s, index_t axes) {
  for (int i = 0; i < s.rank; ++i)
    if ((axes >> i & 1) != 0) s[i] = 1;
  return s;
}

/// pack_axes, axis_of - a permutation in one number, four bits an axis.
constexpr index_t pack_axes(int const* axes, int n) {
  index_t r = 0;
  for (int i = 0; i < n; ++i) r |= index_t{axes[i]} << (4 * i);
  return r;
}
constexpr int axis_of(index_t packed, int i) { return static_cast<int>(packed >> (4 * i) & 15); }

}  // namespace dfdx::op
