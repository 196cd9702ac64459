// SPDX-License-Identifier: BSL-1.0
// Mirror: how a region that is derived from another one reads that one's values. Iteration i of the mirror sees
// what iteration i of the original computed: the original stacks it, the mirror takes it from the stack.
#pragma once

#include <dfdx/graph/views.hpp>
#include <dfdx/ops/region.hpp>

namespace dfdx::graph {

class Mirror {
 protected:
  /// The first of a region's exits comes first.
  using Exits = Vec<int>;

  /// Exits after `last` are none of our business: they serve others.
  constexpr Mirror(Graph& g, int last) : graph_(g) {
    if (g.regions.empty()) return;
    exits_.resize(g.regions.size());
    mirror_.assign(g.regions.size(), -1);
    copy_.assign(g.nodes.size(), -1);
    for (int i = 0; i <= last; ++i)
      if (is_exit(g[i])) exits_[static_cast<std::size_t>(region_behind(g[i]))].push_back(i);
  }

  constexpr Exits exits_of(int region) const { return exits_[static_cast<std::size_t>(region)]; }
  constexpr int lowest_exit(int region) const { return exits_[static_cast<std::size_t>(region)][0]; }
  constexpr Sym symbol(int id) { return Sym{&graph_, id}; }

  /// Regions are mirrored one inside the other, and while they are, `value` leads into the mirror.
  constexpr int open_mirror(int region, bool reversed) {
    Region const original = graph_.regions[static_cast<std::size_t>(region)];
    int parent = original.parent;
    if (parent >= 0 && mirror_[static_cast<std::size_t>(parent)] >= 0)
      parent = mirror_[static_cast<std::size_t>(parent)];
    int const m = graph_.open(parent, original.count, reversed);
    mirror_.resize(graph_.regions.size());
    mirror_[static_cast<std::size_t>(m)] = -1;
    mirror_[static_cast<std::size_t>(region)] = m;
    return m;
  }
  constexpr void close_mirror(int region) { mirror_[static_cast<std::size_t>(region)] = -1; }

  /// The value of a node, as the mirror of its region reads it; the node itself if its region has none.
  constexpr Sym value(int id) {
    int const region = graph_[id].region;
    if (region < 0 || mirror_[static_cast<std::size_t>(region)] < 0) return symbol(id);
    if (copy_.size() < graph_.nodes.size()) {
      std::size_t const known = copy_.size();
      copy_.resize(graph_.nodes.size());
      for (std::size_t i = known; i < copy_.size(); ++i) copy_[i] = -1;
    }
    if (copy_[static_cast<std::size_t>(id)] < 0) {
      int const made = make_copy(id).id;
      copy_[static_cast<std::size_t>(id)] = made;
    }
    return symbol(copy_[static_cast<std::size_t>(id)]);
  }

  Graph& graph_;

 private:
  constexpr Sym make_copy(int id) {
    Node n = graph_[id];
    int const region = n.region, mirror = mirror_[static_cast<std::size_t>(region)];
    if (n.code() == Code::each) return each_of(mirror, value(n.in[0]));
    if (is_view(n)) {  // nothing to store: looked at again
      n.in[0] = value(n.in[0]).id;
      return graph_.push(n);
    }
    return each_of(mirror, value(stack_of(region, symbol(id)).id));
  }

  Vec<Exits> exits_;
  Vec<int> mirror_, copy_;
};

}  // namespace dfdx::graph
