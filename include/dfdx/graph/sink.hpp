// SPDX-License-Identifier: BSL-1.0
// Sinking: a cheap value that one other loop alone reads is computed there, from what is in memory anyway, rather
// than stored where its operands are made. So the derivative 1 - y^2 of y = tanh x is not kept beside y.
#pragma once

#include <dfdx/graph/fuse.hpp>

namespace dfdx::graph {

/// What a value may cost, in additions, to be computed again rather than stored.
inline constexpr int worth_keeping = 8;

namespace detail {

class Sinker {
 public:
  constexpr Sinker(Graph const& g, Fusion& f) : g_(g), f_(f) {
    reader_.assign(g.nodes.size(), nobody);
    uses_.assign(g.nodes.size(), 0);
    user_.assign(g.nodes.size(), -1);
    for (int id = 0; id < g.size(); ++id) {
      Node const& n = g[id];
      if (is_view(n) && root_of(id) != id) continue;
      int const by = place(id).group;
      for (int k = 0; k < n.arity(); ++k) note(id, by, n.in[k]);
    }
    for (int o : g.outputs) reader(root_of(o)) = several;
    for (int id = g.size() - 1; id >= 0; --id) sink(id);
  }

 private:
  static constexpr int nobody = -1, several = -2;

  constexpr int& reader(int id) { return reader_[id]; }
  constexpr int& uses(int id) { return uses_[id]; }
  constexpr Place& place(int id) { return f_.place[id]; }
  constexpr Group& group(int k) { return f_.groups[k]; }
  constexpr int root_of(int id) const { return f_.access[id].root; }

  constexpr void note(int user, int by, int operand) {
    int const root = root_of(operand);
    ++uses(root);
    user_[root] = user;
    bool const plainly = operand == root && by >= 0;
    int& r = reader(root);
    r = plainly && (r == nobody || r == by) ? by : several;
  }

  // Whether a value is in memory for others to read.
  constexpr bool is_stored(int id) {
    Node const& n = g_[id];
    if (n.code() == Code::input || n.code() == Code::carry || is_generated(n)) return true;
    int const own = place(id).group;
    return own >= 0 && (group(own).kind != Group::Kind::loop || (reader(id) != own && reader(id) != nobody));
  }

  // Adds to the cone what `id` is computed from and nobody else reads, until one stored value is left: then as much is
  // read as before, and less written.
  constexpr bool grow(int id, int own, Vec<int>& cone, int& cost, int& operand) {
    Node const& n = g_[id];
    if (!n.op->elementwise || cone.size() >= 4) return false;
    cone.push_back(id);
    cost += n.op->cost;
    if (cost >= worth_keeping) return false;
    for (int k = 0; k < n.arity(); ++k) {
      int const x = n.in[k], root = root_of(x);
      if (is_stored(root)) {
        if (is_generated(g_[root])) continue;
        if (operand >= 0 && operand != x) return false;
        operand = x;
      } else {
        bool inside = false;
        for (int c : cone) inside = inside || c == x;
        if (inside || x != root || place(x).group != own || uses(x) != 1) return false;
        if (!grow(x, own, cone, cost, operand)) return false;
      }
    }
    return true;
  }

  constexpr void sink(int id) {
    int const own = place(id).group, into = reader(id);
    if (own < 0 || into < 0 || into == own || group(own).kind != Group::Kind::loop) return;
    if (group(into).kind != Group::Kind::loop || group(into).region != g_[id].region) return;
    Node const& user = g_[user_[id]];
    Place const there = place(user_[id]);
    if (is_view(user) || group(into).members.size() + 4 > max_members) return;
    if (uses(id) != 1 || !(g_[user.in[0]].meta.shape == g_[id].meta.shape)) return;
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
    Vec<int>& members = group(into).members;
    members.push_back(id);
    for (std::size_t i = members.size() - 1; i > 0 && members[i - 1] > id; --i)
      std::swap(members[i - 1], members[i]);
    Place& p = place(id);
    p = there;
    p.accumulated = false;
    reader(id) = into;
    for (int k = 0; k < g_[id].arity(); ++k) reader(root_of(g_[id].in[k])) = several;
  }

  Graph const& g_;
  Fusion& f_;
  Vec<int> reader_, uses_, user_;
};

}  // namespace detail

/// plan_fusion - the groups of a graph, cheap values where they are read.
constexpr Fusion plan_fusion(Graph const& g) {
  Fusion f = fuse(g);
  detail::Sinker(g, f);
  return f;
}

}  // namespace dfdx::graph
