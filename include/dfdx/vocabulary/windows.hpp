// SPDX-License-Identifier: BSL-1.0
// What functions of windows take for parameters: one number for all axes or one for each.
#pragma once

#include <string_view>

#include <dfdx/core/window.hpp>
#include <dfdx/vocabulary/shape.hpp>

namespace dfdx {

/// Padding - how far a value is extended by zeros at both ends of each axis, or "same": so far that a result has the
/// extents of the operand ("valid": not at all).
struct Padding {
  Extents widths = 0;
  bool same = false;

  template <std::integral... I>
  constexpr Padding(I... each) : widths(each...) {}
  constexpr Padding(Extents const& each) : widths(each) {}
  // How nvcc writes a default argument of this type.
  constexpr Padding(Extents const& each, bool is_same) : widths(each), same(is_same) {}
  constexpr Padding(char const* how) : same(std::string_view(how) == "same") {
    if (!same && std::string_view(how) != "valid")
      raise("padding: \"same\" or \"valid\" required, got ", how);
  }
};

namespace detail {

constexpr index_t for_axis(Extents const& e, int i) { return e.shape[e.shape.rank == 1 ? 0 : i]; }
// Whether there is a number for each of n axes, none below `least`.
constexpr bool for_axes(Extents const& e, int n, index_t least) {
  bool ok = e.shape.rank == 1 || e.shape.rank == n;
  for (int i = 0; ok && i < e.shape.rank; ++i) ok = e.shape[i] >= least && e.shape[i] <= Window::limit;
  return ok;
}

// The name of a function for a number of axes: names are of those for one axis, two and three.
struct NameByAxes {
  char const* names[3];
  constexpr char const* operator[](int axes) const { return names[axes - 1]; }
};

}  // namespace detail

}  // namespace dfdx
