// SPDX-License-Identifier: BSL-1.0
// Axes as the reference cases name them.
#pragma once

#include "refs/functions.hpp"

#include <dfdx/value/lists.hpp>

namespace refs {

/// The attribute `axes`, or `axis`; none for all axes.
inline dfdx::Axes axes_of(Arguments const& a) {
  if (a.attrs().contains("axis")) return a.integer("axis");
  if (!a.attrs().contains("axes")) return {};
  std::vector<int> const axes = a.attrs()["axes"];
  return axes;
}

}  // namespace refs
