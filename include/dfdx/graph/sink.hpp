// SPDX-License-Identifier: BSL-1.0
// Sinking: a cheap value that one other loop alone reads is computed there, from what is in memory anyway, rather
// than stored where its operands are made. So the derivative 1 - y^2 of y = tanh x is not kept beside y.
#pragma once

#include <dfdx/graph/merge.hpp>

namespace dfdx::graph {

/// What a value may cost, in additions, to be computed again rather than stored.
inline constexpr int worth_keeping = 8;

namespace detail {

class Sinker {
 public:
  constexpr Sinker(Graph const& g, Fusion& f)
      : nodes_(g.nodes.data()), access_(f.access.data()), place_(f.place.data()), f_(f) {
    reader_.assign(g.nodes.size(), nobody);
    uses_ = Vec<int>(g.nodes.size());
    user_.assign(g.nodes.size(), -1);
    int *const reader = reader_.data(), *const uses = uses_.data(), *const user = user_.data();
    for (int id = 0, size = g.size(); id < size; ++id) {
      Node const& n = nodes_[id];
      if (access_[id].root != id && is_view(n)) continue;
      int const by = place_[id].group;
      for (int k = 0; k < n.op->arity; ++k) {
        int const operand = n.in[k], root = access_[operand].root;
        ++uses[root];
        user[root] = id;
        int& r = reader[root];
        r = operand == root && by >= 0 && (r == nobody || r == by) ? by : several;
      }
    }
    for (int o : g.outputs) reader_[root_of(o)] = several;
    for (int id = g.size() - 1; id >= 0; --id) sink(id);
  }

 private:
  static constexpr int nobody = -1, several = -2;

  constexpr Group& group(int k) { return f_.groups[k]; }
  constexpr int root_of(int id) const { return access_[id].root; }

  // Whether a value is in memory for others to read.
  constexpr bool is_stored(int id) {
    Node const& n = nodes_[id];
    if (n.op->code == Code::input || n.op->code == Code::carry || is_generated(n)) return true;
    int const own = place_[id].group;
    return own >= 0 &&
           (group(own).kind != Group::Kind::loop || (reader_[id] != own && reader_[id] != nobody));
  }

  // Adds to the cone what `id` is computed from and nobody else reads, until one stored value is left: then as much is
  // read as before, and less written.
  constexpr bool grow(int id, int own, Vec<int>& cone, int& cost, int& operand) {
    Node const& n = nodes_[id];
    if (!n.op->elementwise || cone.size() >= 4) return false;
    cone.push_back(id);
    cost += n.op->cost;
    if (cost >= worth_keeping) return false;
    for (int k = 0; k < n.op->arity; ++k) {
      int const x = n.in[k], root = root_of(x);
      if (is_stored(root)) {
        if (is_generated(nodes_[root])) continue;
        if (operand >= 0 && operand != x) return false;
        operand = x;
      } else {
        bool inside = false;
        for (int c : cone) inside = inside || c == x;
        if (inside || x != root || place_[x].group != own || uses_[x] != 1) return false;
        if (!grow(x, own, cone, cost, operand)) return false;
      }
    }
    return true;
  }

  constexpr void sink(int id) {
    int const own = place_[id].group, into = reader_[id];
    if (own < 0 || into < 0 || into == own || group(own).kind != Group::Kind::loop) return;
    if (group(into).kind != Group::Kind::loop || group(into).region != nodes_[id].region) return;
    Node const& user = nodes_[user_[id]];
    Place const there = place_[user_[id]];
    if (is_view(user) || group(into).members.size() + 4 > max_members) return;
    if (uses_[id] != 1 || !(nodes_[user.in[0]].meta.shape == nodes_[id].meta.shape)) return;
    Vec<int> cone;
    int cost = 0, operand = -1;
    if (!grow(id, own, cone, cost, operand)) return;
    for (int c : cone) move(c, own, into, there);
  }

  constexpr void move(int id, int own, int into, Place const& there) {
    Vec<int> rest;
    for (int m : group(own).members)
      if (m != id) rest.push_back(m);
    group(own).members = rest;
    insert_in_order(group(into).members, id);
    Place& p = place_[id];
    p = there;
    p.accumulated = false;
    reader_[id] = into;
    for (int k = 0; k < nodes_[id].op->arity; ++k) reader_[root_of(nodes_[id].in[k])] = several;
  }

  Node const* nodes_;
  Access const* access_;
  Place* place_;
  Fusion& f_;
  Vec<int> reader_, uses_, user_;
};

}  // namespace detail

/// plan_fusion - the groups of a graph; loops are part of those that alone read them, cheap values where they are read.
constexpr Fusion plan_fusion(Graph const& g) {
  Fusion f = fuse(g);
  detail::Merger(g, f);
  detail::Sinker(g, f);
  return f;
}

}  // namespace dfdx::graph
