// SPDX-License-Identifier: BSL-1.0
// What functions of windows take for parameters, one number for all axes or one for each; one axis after another.
#pragma once

#include <string_view>

#include <dfdx/core/window.hpp>
#include <dfdx/ops/resample.hpp>
#include <dfdx/vocabulary/in_f32.hpp>
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

// x with the extents `to`: resampled by rule(axis) along each axis that does not stay. Along several, 16 bits are
// rounded at the end alone. T is the type of the elements, or void.
template <class T, class V, class Stays, class Rule>
constexpr V resampled(V const& x, Shape const& to, Stays const& stays, Rule const& rule) {
  using E = std::conditional_t<std::is_floating_point_v<T>, T, void>;
  int steps = 0;
  for (int axis = 0; axis < to.rank; ++axis) steps += stays(axis) ? 0 : 1;
  V r = either(steps > 1, [&] { return in_f32(x); }, [&] { return x; });
  for (int axis = 0; axis < to.rank; ++axis)
    if (!stays(axis))
      r = bind_element_as<op::resample, E>(Meta{r.dtype(), with_extent(r.shape(), axis, to[axis])},
                                           rule(axis), r);
  return rounded_as(r, x);
}

}  // namespace detail

}  // namespace dfdx
