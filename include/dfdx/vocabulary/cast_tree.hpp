// SPDX-License-Identifier: BSL-1.0
// cast_tree: a model in another dtype.
#pragma once

#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/dense.hpp>

namespace dfdx {

/// cast_tree<Net<float16>>(net) - a tree with the leaves of another, each cast to the dtype of its place: an f32 model
/// computes in 16 bits, and gradients reach the f32 parameters through the casts.
///
/// Math      identity, rounded
/// Shapes    leaves: [S...] -> [S...], as To has them
/// Dtypes    any to any
/// Errors    "cast_tree: a leaf of shape [3] where [4] is required"
/// Source    Micikevicius et al., "Mixed precision training", ICLR 2018
template <tree To, tree From>
constexpr To cast_tree(From const& from) {
  static_assert(leaf_count<To> == leaf_count<From>, "cast_tree: trees with as many leaves required");
  Vec<Array> leaves;
  visit(from, [&](auto const& leaf) { leaves.push_back(leaf); });
  To to{};
  std::size_t i = 0;
  visit(to, [&](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    Array const& given = leaves[i++];
    if (!(given.shape() == Leaf::static_shape))
      raise("cast_tree: a leaf of shape ", given.shape(), " where ", Leaf::static_shape, " is required");
    leaf = Leaf(typename Leaf::Unchecked{}, cast_to(given, Leaf::static_meta.dtype));
  });
  return to;
}

}  // namespace dfdx
