// SPDX-License-Identifier: BSL-1.0
// Mirror: how a region that is derived from another one reads that one's values. Iteration i of the mirror sees
// what iteration i of the original computed: the original stacks it, the mirror takes it from the stack, or computes it
// again from what it takes anyway. Of a region that is to be recomputed only the carries are stacked.
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
    users_.assign(g.nodes.size(), 0);
    for (Node const& n : g.nodes)
      for (int k = 0; k < n.op->arity && !is_view(n); ++k) {
        int x = n.in[k];
        while (is_view(g[x])) x = g[x].in[0];
        ++users_[x];
      }
    for (int i = 0; i <= last; ++i)
      if (is_exit(g[i])) exits_[region_behind(g[i])].push_back(i);
  }

  constexpr Exits exits_of(int region) const { return exits_[region]; }
  constexpr int lowest_exit(int region) const { return exits_[region][0]; }
  constexpr Sym symbol(int id) { return Sym{&graph_, id}; }

  /// Regions are mirrored one inside the other, and while they are, `value` leads into the mirror.
  constexpr int open_mirror(int region, bool reversed) {
    Region const original = graph_.regions[region];
    int parent = original.parent;
    if (parent >= 0 && mirror_[parent] >= 0) parent = mirror_[parent];
    int const m = graph_.open(parent, original.count, reversed);
    mirror_.resize(graph_.regions.size());
    mirror_[m] = -1;
    mirror_[region] = m;
    return m;
  }
  constexpr void close_mirror(int region) { mirror_[region] = -1; }

  /// The value of a node, as the mirror of its region reads it; the node itself if its region has none.
  constexpr Sym value(int id) {
    int const region = graph_[id].region;
    if (region < 0 || mirror_[region] < 0) return symbol(id);
    if (copy_.size() < graph_.nodes.size()) {
      std::size_t const known = copy_.size();
      copy_.resize(graph_.nodes.size());
      for (std::size_t i = known; i < copy_.size(); ++i) copy_[i] = -1;
    }
    if (copy_[id] < 0) {
      int const made = make_copy(id).id;
      copy_[id] = made;
    }
    return symbol(copy_[id]);
  }

  Graph& graph_;

 private:
  constexpr Sym make_copy(int id) {
    Node n = graph_[id];
    int const region = n.region, mirror = mirror_[region];
    if (n.op->code == Code::each) return each_of(mirror, value(n.in[0]));
    bool const again = graph_.regions[region].recomputed && n.op->code != Code::carry;
    if (again && is_exit(n)) return loop_again(id);
    if (again || is_view(n) || is_smaller_again(id)) {  // a view has nothing to store: it is looked at again
      for (int k = 0; k < n.op->arity; ++k) n.in[k] = value(n.in[k]).id;
      return graph_.push(n);
    }
    return each_of(mirror, value(stack_of(region, symbol(id)).id));
  }

  // The values from which an elementwise one can be computed again, and that would have to be stacked for it. They end
  // at what is no cheap arithmetic, and where a value has several users, for it is the likeliest to be asked for too.
  struct Needed {
    Vec<int> nodes;
    int most_cost = 2, looked_at = 0;
  };
  constexpr void find_needed(int id, bool first, Needed& all) {
    constexpr int far = 16;  // so that the search is linear, and little is computed again
    Node const n = graph_[id];
    bool const is_known = static_cast<std::size_t>(id) < copy_.size() && copy_[id] >= 0;
    if (n.region != region_here_ || n.op->code == Code::each || is_known) return;
    if (++all.looked_at <= far && is_view(n)) return find_needed(n.in[0], false, all);
    auto const before = all.nodes.size();
    bool const ends = all.looked_at > far || !is_map(n) || n.op->cost > all.most_cost;
    for (int k = 0; !ends && k < n.op->arity; ++k) find_needed(n.in[k], false, all);
    if (!ends && (first || all.nodes.size() == before || users(id) < 2)) return;
    all.nodes.resize(before);
    for (int known : all.nodes)
      if (known == id) return;
    all.nodes.push_back(id);
  }
  // What casts make smaller is better kept: whoever reads it wants it in memory.
  constexpr bool is_map(Node const& n) const {
    return n.op->elementwise ||
           (n.op->code == Code::cast && size_of(n.meta.dtype) > size_of(graph_[n.in[0]].meta.dtype));
  }
  // Whether a value is better computed again than stacked: what else must be stacked for it is half as much, of 16 bits
  // say, or no more than it would be itself and has other users.
  constexpr bool is_smaller_again(int id) {
    Node const n = graph_[id];
    if (!is_map(n)) return false;
    Needed all;
    region_here_ = n.region;
    index_t const count = graph_.regions[n.region].count, size = bytes(n.meta);
    constexpr index_t beyond_caches = 1 << 20;
    if (size > 0 && count > 0 && size * count >= beyond_caches) all.most_cost = 32;
    find_needed(id, true, all);
    index_t other = 0;
    bool shared = true;
    for (int node : all.nodes) {
      if (node == id) return false;
      index_t const more = graph_[node].meta.shape == n.meta.shape && size < 0
                               ? static_cast<index_t>(size_of(graph_[node].meta.dtype))
                               : bytes(graph_[node].meta);
      if (more < 0) return false;
      other += more;
      shared = shared && (4 * more <= own(n.meta, size) || users(node) > 1);
    }
    return 2 * other <= own(n.meta, size) || (shared && 4 * other <= 5 * own(n.meta, size));
  }
  // Of the nodes that there were at the beginning; those of views of it are its own.
  constexpr int users(int id) const { return static_cast<std::size_t>(id) < users_.size() ? users_[id] : 0; }
  // In bytes, -1 if an extent is known at run time only; then what is of the same shape is compared by element.
  static constexpr index_t bytes(Meta const& m) {
    index_t r = static_cast<index_t>(size_of(m.dtype));
    for (int i = 0; i < m.shape.rank; ++i) {
      if (m.shape[i] < 0) return -1;
      r *= m.shape[i];
    }
    return r;
  }
  static constexpr index_t own(Meta const& m, index_t size) {
    return size < 0 ? static_cast<index_t>(size_of(m.dtype)) : size;
  }

  struct Copy {
    int id = -1;
  };
  // Of the loops inside of regions that are computed again, what they and their nodes became in a mirror.
  struct Copies {
    int mirror = -1;
    Vec<Copy> nodes, regions;
  };

  // An exit of a loop inside of a region that is computed again: so is all of the loop, before what it leaves behind.
  // Once for each mirror that asks: around a loop in a loop in a loop there are several.
  constexpr Sym loop_again(int exit) {
    int const before = current_;
    current_ = copies_in(mirror_[graph_[exit].region]);
    int const inner = region_behind(graph_[exit]);
    if (copy_of_region(inner) < 0) {
      Vec<int> exits;
      for (int i = graph_.regions[inner].first, size = graph_.size(); i < size; ++i)
        if (graph_.encloses(inner, graph_[i].region)) push_again(i);
        else if (is_exit(graph_[i]) && region_behind(graph_[i]) == inner) exits.push_back(i);
      for (int e : exits)
        for (int k = 0; k < graph_[e].op->arity; ++k) outside_or_again(graph_[e].in[k]);
      for (int e : exits) push_again(e);
    }
    Sym const made = push_again(exit);
    current_ = before;
    return made;
  }
  constexpr int copies_in(int mirror) {
    for (std::size_t k = 0; k < again_.size(); ++k)
      if (again_[k].mirror == mirror) return static_cast<int>(k);
    again_.push_back(Copies{mirror, {}, {}});
    return static_cast<int>(again_.size()) - 1;
  }
  static constexpr int at(Vec<Copy> const& copies, int k) {
    return k >= 0 && static_cast<std::size_t>(k) < copies.size() ? copies[k].id : -1;
  }
  constexpr int copy_of_region(int region) const { return at(again_[current_].regions, region); }
  constexpr int known_again(int id) const { return at(again_[current_].nodes, id); }
  constexpr Sym outside_or_again(int id) {
    if (known_again(id) >= 0) return symbol(known_again(id));
    // What came into a loop after it was copied, as what a loop inside it leaves behind, follows it.
    return copy_of_region(graph_[id].region) >= 0 ? push_again(id) : value(id);
  }
  constexpr Sym push_again(int id) {
    if (known_again(id) >= 0) return symbol(known_again(id));
    Node n = graph_[id];
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = outside_or_again(n.in[k]).id;
    bool const on_edge = is_exit(n) || n.op->code == Code::carry || n.op->code == Code::each;
    if (on_edge) n.attrs.i[0] = region_again(static_cast<int>(n.attrs.i[0]));
    int const made = graph_.push(n).id;
    Vec<Copy>& nodes = again_[current_].nodes;
    if (nodes.size() < graph_.nodes.size()) nodes.resize(2 * graph_.nodes.size());
    nodes[id].id = made;
    return symbol(made);
  }
  constexpr int region_again(int region) {
    if (copy_of_region(region) >= 0) return copy_of_region(region);
    Region const original = graph_.regions[region];
    int const around = copy_of_region(original.parent);
    int const parent = around >= 0 ? around : again_[current_].mirror;
    int const made = graph_.open(parent, original.count, original.reversed);
    graph_.regions[made].recomputed = original.recomputed;
    graph_.regions[made].carries = original.carries;
    Vec<Copy>& regions = again_[current_].regions;
    if (regions.size() < graph_.regions.size()) regions.resize(graph_.regions.size());
    regions[region].id = made;
    return made;
  }

  Vec<Copies> again_;
  int current_ = -1;
  Vec<Exits> exits_;
  Vec<int> mirror_, copy_, users_;
  int region_here_ = -1;
};

}  // namespace dfdx::graph
