// SPDX-License-Identifier: BSL-1.0
// Axes known at run time, as the template arguments that the vocabulary takes.
#pragma once

#include "refs/functions.hpp"

#include <dfdx/vocabulary/reduce.hpp>

#include <utility>

namespace refs {

/// Calls f with the axis, made non-negative, as an integral constant.
template <class F>
std::vector<Array> with_axis(int axis, int rank, F const& f) {
  switch (axis < 0 ? axis + rank : axis) {
    case 0: return {f(std::integral_constant<int, 0>{})};
    case 1: return {f(std::integral_constant<int, 1>{})};
    case 2: return {f(std::integral_constant<int, 2>{})};
    case 3: return {f(std::integral_constant<int, 3>{})};
    case 4: return {f(std::integral_constant<int, 4>{})};
    default: throw std::runtime_error("with_axis: no such axis");
  }
}

template <unsigned Mask, int... Axes>
constexpr auto axes_of_mask() {
  if constexpr (Mask == 0) return dfdx::detail::AxisList<Axes...>{};
  else {
    constexpr int next = __builtin_ctz(Mask);
    return axes_of_mask<(Mask & (Mask - 1)), Axes..., next>();
  }
}

/// Calls f with the attribute `axes` (all axes without it) as an AxisList, and with whether axes are kept.
template <class F>
std::vector<Array> with_axes(Arguments const& a, int rank, F const& f) {
  if (!a.attrs().contains("axes")) return {f(dfdx::detail::AxisList<>{}, false)};
  unsigned mask = 0;
  for (int axis : a.attrs()["axes"]) mask |= 1u << (axis < 0 ? axis + rank : axis);
  bool const keep = a.flag("keepdim");
  std::vector<Array> r;
  [&]<unsigned... M>(std::integer_sequence<unsigned, M...>) {
    ((M + 1 == mask ? r.push_back(f(axes_of_mask<M + 1>(), keep)) : void()), ...);
  }(std::make_integer_sequence<unsigned, 15>{});
  if (r.empty()) throw std::runtime_error("with_axes: more than four axes");
  return r;
}

}  // namespace refs
