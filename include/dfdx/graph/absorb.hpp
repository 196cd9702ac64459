// SPDX-License-Identifier: BSL-1.0
// Absorbing: what is computed element by element from the stacked values of a loop becomes part of the loop, where each
// iteration computes its own part while what it is made from is in the cache. So an optimizer updates the weights of
// one layer of many when their gradient is known, and the gradients of all layers need not exist at a time.
#pragma once

#include <dfdx/graph/simplify.hpp>

namespace dfdx::graph {

/// From so many elements of an iteration on it is worth a kernel more in the loop.
inline constexpr index_t worth_absorbing = 4096;

namespace detail {

/// Absorber - finds the maps over stacks of one region, and rewrites a graph without them.
class Absorber {
 public:
  constexpr Absorber(Graph const& g, int region, index_t worth)
      : g_(g),
        region_(region),
        worth_(worth),
        later_(g.nodes.size(), 0),
        map_(g.nodes.size(), 0),
        read_(g.nodes.size(), 0) {
    for (Node const& n : g.nodes)
      for (int k = 0; k < n.op->arity && !found; ++k) found = is_own_stack(g[n.in[k]]) && is_divisible(n);
    if (!found) return;
    find_later();
    for (int id = 0; id < g.size(); ++id) map_[id] = is_map(id);
    settle();
    found = false;
    for (char m : map_) found = found || m != 0;
    if (found) take_feeders();
  }

  /// Whether there are any.
  bool found = false;

  /// What is there before the loop, the loop with its maps, what comes after it.
  constexpr Graph rewritten() {
    Rewriter r(g_.size());
    r.graph.take_frame(g_);
    Vec<int> to(g_.nodes.size(), -1), inside(g_.nodes.size(), -1);
    auto const add = [&](int id) {
      Node n = g_[id];
      for (int k = 0; k < n.op->arity; ++k) n.in[k] = to[n.in[k]];
      to[id] = r.add(n);
    };
    for (int id = 0; id < g_.size(); ++id)
      if (later_[id] == 0 && map_[id] == 0) add(id);
    for (int id = 0; id < g_.size(); ++id)
      if (is_inside(g_[id])) add(id);
    for (int id = 0; id < g_.size(); ++id) {
      if (is_own_stack(g_[id])) inside[id] = to[g_[id].in[0]];
      if (map_[id] == 0) continue;
      Node n = g_[id];
      n.meta = part_of(n.meta);
      for (int k = 0; k < n.op->arity; ++k) {
        int const x = n.in[k];
        n.in[k] = inside[x] >= 0 ? inside[x] : part(r, x, to);
      }
      inside[id] = r.add(n);
    }
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      if (later_[id] == 0 || is_inside(n)) continue;
      if ((map_[id] != 0 || is_own_stack(n)) && read_[id] == 0) continue;
      if (map_[id] != 0) to[id] = r.add(Node{&info<op::stack>, Attrs{{region_}}, n.meta, {inside[id]}});
      else add(id);
    }
    for (int o : g_.outputs) r.graph.outputs.push_back(to[o]);
    return without_dead(r.graph);
  }

 private:
  constexpr bool is_inside(Node const& n) const { return n.region >= 0 && g_.encloses(region_, n.region); }
  constexpr bool is_own_stack(Node const& n) const {
    return n.op->code == Code::stack && region_behind(n) == region_ && g_[n.in[0]].region == region_;
  }
  static constexpr Meta part_of(Meta const& m) {
    Meta part{m.dtype, {}};
    for (int a = 1; a < m.shape.rank; ++a) part.shape.push_back(m.shape[a]);
    return part;
  }

  // A value that is there before the loop, at the position of an iteration.
  constexpr int part(Rewriter& r, int id, Vec<int> const& to) const {
    Node const& n = g_[id];
    Meta const meta = part_of(n.meta);
    if (n.op->code == Code::expand && g_[n.in[0]].meta.shape[0] == 1) {  // the same at all positions
      Node under{&info<op::reshape>, Attrs{}, part_of(g_[n.in[0]].meta), {to[n.in[0]]}};
      return r.add(Node{n.op, n.attrs, meta, {r.add(under)}});
    }
    return r.add(Node{&info<op::each>, Attrs{{region_}}, meta, {to[id]}});
  }

  // What is of the loop, or has to come after it: what depends on it, and loops of which a part does, be it only what
  // a carry becomes. Of a region around the loop all that leaves it comes after it too.
  constexpr void find_later() {
    Vec<char> whole(g_.regions.size(), 0);
    auto const is_whole = [&](int r) {
      while (r >= 0 && whole[r] == 0) r = g_.regions[r].parent;
      return r >= 0;
    };
    for (bool again = true; again;) {
      again = false;
      for (int id = 0; id < g_.size(); ++id) {
        Node const& n = g_[id];
        bool late =
            is_inside(n) || is_whole(n.region) || (is_exit(n) && g_.encloses(region_behind(n), region_));
        for (int k = 0; k < n.op->arity; ++k) late = late || later_[n.in[k]] != 0;
        later_[id] = late;
        for (int r = is_exit(n) ? region_behind(n) : n.region;
             late && r >= 0 && !is_inside(n) && !g_.encloses(r, region_); r = g_.regions[r].parent)
          if (whole[r] == 0) whole[r] = 1, again = true;
      }
    }
  }

  // An elementwise node beside the loop, a part of which belongs to each iteration.
  constexpr bool is_divisible(Node const& n) const {
    Region const& region = g_.regions[region_];
    Shape const& s = n.meta.shape;
    bool const maps = (n.op->elementwise && n.op->code != op::copy::code) || n.op->code == Code::cast;
    if (!maps || n.region != region.parent || s.rank == 0 || s[0] != region.count || !s.is_static())
      return false;
    if (s.numel() < region.count * worth_) return false;
    for (int k = 0; k < n.op->arity; ++k)
      if (!(g_[n.in[k]].meta.shape == s) || g_[n.in[k]].op->code == Code::iota) return false;
    return true;
  }
  constexpr bool is_map(int id) const {
    Node const& n = g_[id];
    bool any = false;
    if (!is_divisible(n)) return false;
    for (int k = 0; k < n.op->arity; ++k) {
      int const x = n.in[k];
      if (later_[x] == 0) continue;
      if (map_[x] == 0 && !is_own_stack(g_[x])) return false;
      any = true;
    }
    return any;
  }

  // A stack that others read too has to be stored in any case, and is read as it is: so are maps of such.
  constexpr void settle() {
    for (bool again = true; again;) {
      again = false;
      for (char& r : read_) r = 0;
      for (int o : g_.outputs) read_[o] = 1;
      for (int id = 0; id < g_.size(); ++id)
        for (int k = 0; k < g_[id].op->arity && map_[id] == 0; ++k) read_[g_[id].in[k]] = 1;
      for (int id = 0; id < g_.size(); ++id) {
        if (map_[id] == 0) continue;
        bool stays = false;
        for (int k = 0; k < g_[id].op->arity; ++k) {
          int const x = g_[id].in[k];
          if (later_[x] != 0 && map_[x] == 0) stays = stays || !is_own_stack(g_[x]) || read_[x] != 0;
        }
        if (stays) map_[id] = 0, again = true;
      }
    }
  }

  // What is computed before the loop, and for such maps alone, is one of them.
  constexpr void take_feeders() {
    Vec<char> fed(g_.nodes.size(), 0), others(g_.nodes.size(), 0);
    for (int o : g_.outputs) others[o] = 1;
    for (int id = g_.size() - 1; id >= 0; --id) {
      Node const& n = g_[id];
      if (later_[id] == 0 && fed[id] != 0 && others[id] == 0 && is_divisible(n)) map_[id] = 1;
      for (int k = 0; k < n.op->arity; ++k) (map_[id] != 0 ? fed : others)[n.in[k]] = 1;
    }
  }

  Graph const& g_;
  int region_;
  index_t worth_;
  Vec<char> later_, map_;
  Vec<char> read_;  // by what is no such map
};

}  // namespace detail

/// absorb - an equal graph, of a simplified one, whose maps over stacks are in the loops that make these, if an
/// iteration has `worth` elements of them.
constexpr Graph absorb(Graph g, index_t worth = worth_absorbing) {
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    detail::Absorber a(g, static_cast<int>(r), worth);
    if (!a.found) continue;
    Graph next = a.rewritten();  // nvcc takes `g = a.rewritten()` for a graph that is not there yet
    g = std::move(next);
  }
  return g;
}

}  // namespace dfdx::graph
