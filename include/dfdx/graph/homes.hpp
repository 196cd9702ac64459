// SPDX-License-Identifier: BSL-1.0
// Where values live that have no buffer of their own. What lies side by side is one buffer, and columns of a matrix lie
// in it with others between their elements. What enters a region, is carried through it or is stacked is computed where
// it will be read: carries have a ring of two places, read from one and written to the other, or, if all their values
// are stacked, one place more than there are iterations.
#pragma once

#include <dfdx/graph/fuse.hpp>
#include <dfdx/graph/joins.hpp>
#include <dfdx/ops/side_by_side.hpp>

namespace dfdx::graph {

/// Home - where a value lies if not at the start of a buffer of its own: in the buffer of a node (maybe its own) from
/// `offset` on, moving by `turn`.
struct Home {
  int owner = -1;
  index_t offset = 0;
  int turn = -1;
};

/// joined_turns - one list of turns after another.
constexpr int joined_turns(Vec<Turn>& turns, int first, int then) {
  if (first < 0) return then;
  Turn t = turns[first];
  t.next = joined_turns(turns, t.next, then);
  return add_turn(turns, t);
}

/// Homes - the homes of a prepared graph's values.
class Homes {
 public:
  constexpr Homes(Graph const& g, Fusion& f) : g_(g), turns_(f.turns) {
    bool any_joined = false;
    for (Node const& n : g.nodes) any_joined = any_joined || is_joined(n);
    if (g.regions.empty() && !any_joined) return;
    homes_.resize(g.nodes.size());
    places_.assign(g.nodes.size(), 1);
    for (int id = 0; id < g.size(); ++id)
      if (g[id].op->code == Code::last) settle_carry(id, f);
    for (int id = g.size() - 1; id >= 0; --id)  // a stack of stacks before what it is made of
      if (g[id].op->code == Code::stack) settle_stack(id);
      else if (is_joined(g[id])) settle_joined(id, f);
    if (!any_columns_) return;
    for (Access& a : f.access) {
      index_t const by = f.place[a.root].apart;
      if (by == 1) continue;
      a.offset = extent::mul(a.offset, by);
      for (int i = 0; i < a.strides.rank; ++i) a.strides[i] = extent::mul(a.strides[i], by);
    }
  }

  /// Whether a value is two that lie side by side.
  static constexpr bool is_joined(Node const& n) { return is_op<op::side_by_side>(*n.op); }
  /// Calls f(x, y) for each value x that lies in the buffer of y, beside another.
  template <class F>
  constexpr void for_parts(F const& f) const {
    for (int part : parts_) f(part, of(part).owner);
  }
  constexpr Home of(int id) const { return homes_.empty() ? Home{} : homes_[id]; }
  /// Of the buffer of a node.
  constexpr index_t elements(int id) const {
    index_t const one = g_[id].meta.shape.numel();
    return places_.empty() ? one : extent::mul(places_[id], one);
  }

 private:
  constexpr Home& home(int id) { return homes_[id]; }
  constexpr int turn(int region, index_t step, index_t shift, index_t wrap) {
    return add_turn(turns_, Turn{region, step, shift, wrap, -1});
  }
  constexpr bool is_stacked(int id) const {
    for (Node const& n : g_.nodes)
      if (n.op->code == Code::stack && n.in[0] == id) return true;
    return false;
  }

  constexpr void settle_carry(int id, Fusion const& f) {
    int const carry = g_[id].in[0], next = g_[id].in[1], r = region_behind(g_[id]);
    Region const& region = g_.regions[r];
    index_t const n = region.count, size = g_[id].meta.shape.numel();
    bool const all = n < 2 || is_stacked(carry) || is_stacked(next);
    index_t const places = all ? n + 1 : 2, end = n % places, ahead = region.reversed ? 1 : 0;
    places_[carry] = places;
    home(carry) = {carry, 0, turn(r, size, ahead, places)};
    home(next) = {carry, 0, turn(r, size, 1 - ahead, places)};
    int const init = f.access[g_[carry].in[0]].root;
    home(init) = {carry, extent::mul(region.reversed ? end : 0, size), -1};
    home(id) = {carry, extent::mul(region.reversed ? 0 : end, size), -1};
  }

  constexpr void settle_stack(int id) {
    int const x = g_[id].in[0], r = region_behind(g_[id]);
    index_t const size = g_[x].meta.shape.numel();
    Home const mine = home(id), of = home(x);
    if (of.owner < 0)
      home(x) = {mine.owner < 0 ? id : mine.owner, mine.offset,
                 joined_turns(turns_, mine.turn, turn(r, size, 0, 0))};
    else home(id) = {of.owner, extent::mul(turns_[of.turn].shift, size), -1};
  }

  constexpr void settle_joined(int id, Fusion& f) {
    Home const mine = home(id);
    Home part{mine.owner < 0 ? id : mine.owner, mine.offset, mine.turn};
    Shape const& all = g_[id].meta.shape;
    bool const columns = joins_columns(g_[id]);
    any_columns_ = any_columns_ || columns;
    for (int k = 0; k < 2; ++k) {
      Shape const& shape = g_[g_[id].in[k]].meta.shape;
      parts_.push_back(f.access[g_[id].in[k]].root);
      home(parts_.back()) = part;
      index_t const outer = f.place[id].apart;
      if (columns) f.place[parts_.back()].apart = outer != 1 ? outer : all[all.rank - 1];
      part.offset += columns ? shape[shape.rank - 1] : shape.numel();
    }
  }

  Graph const& g_;
  Vec<Turn>& turns_;
  Vec<Home> homes_;
  Vec<int> parts_;  // of what lies side by side
  bool any_columns_ = false;
  Vec<index_t> places_;  // for each node how many values its buffer holds
};

}  // namespace dfdx::graph
