// SPDX-License-Identifier: BSL-1.0
// How much memory a model, a batch or a result takes.
#pragma once

#include <dfdx/dfdx.hpp>

namespace bench {

/// bytes_of - the sum over a tree's leaves.
template <class Tree>
double bytes_of(Tree const& tree) {
  double bytes = 0;
  dfdx::visit(tree, [&](auto const& leaf) {
    bytes += static_cast<double>(leaf.size()) * static_cast<double>(dfdx::size_of(leaf.dtype()));
  });
  return bytes;
}

}  // namespace bench
