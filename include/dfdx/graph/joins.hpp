// SPDX-License-Identifier: BSL-1.0
// What is joined along the first axis, without a kernel: both parts are computed where they will lie.
#pragma once

#include <dfdx/graph/views.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/ops/side_by_side.hpp>
#include <dfdx/vocabulary/shape.hpp>  // which rules of ops call

namespace dfdx::graph {

/// Aliases - for each output the input whose memory it takes over when the program is done with that input, or -1.
using Aliases = Vec<int>;

namespace detail {

/// Joins - which concats have no kernel: their operands are computed where these lie in the result, or copied there.
class Joins {
 public:
  constexpr Joins(Graph const& g, Access const* access, Aliases const& aliases) : g_(g) {
    bool any = false;
    for (Node const& n : g.nodes) any = any || may_join(n);
    if (!any) return;
    fixed_.assign(g.nodes.size(), 0);
    joined_.assign(g.nodes.size(), 0);
    for (Node const& n : g.nodes) {
      if (n.op->code != Code::carry && !is_exit(n)) continue;
      for (int k = 0; k < n.op->arity; ++k) fixed_[access[n.in[k]].root] = 1;
      // A loop writes over what it begins with, while others may still have to read the parts of that.
      if (n.op->code == Code::carry) joined_[access[n.in[0]].root] = never;
    }
    for (std::size_t k = 0; k < g.outputs.size(); ++k) {
      int root = access[g.outputs[k]].root;
      fixed_[root] = 1;
      if (k >= aliases.size() || aliases[k] < 0) continue;
      // Written over an input, maybe part by part: by the group that the order asks about (graph/order.hpp).
      for (joined_[root] = never; g[root].op->code == Code::stack; joined_[root] = never)
        root = access[g[root].in[0]].root;
    }
    for (int id = 0; id < g.size(); ++id) {
      Node const& n = g[id];
      if (!may_join(n) || joined_[id] == never) continue;
      for (int k = 0; k < 2; ++k) {
        Access const& a = access[n.in[k]];
        Shape const& shape = g[n.in[k]].meta.shape;
        bool const all = a.offset == 0 && a.turn < 0 && is_contiguous(shape, a.strides) &&
                         shape.numel() == g[a.root].meta.shape.numel();
        if (!all || !is_computed(g[a.root]) || g[a.root].region != n.region || fixed_[a.root] != 0) continue;
        fixed_[a.root] = 1;
        joined_[id] = static_cast<signed char>(joined_[id] | (1 << k));
      }
    }
  }

  constexpr bool joined(int id) const { return !joined_.empty() && joined_[id] > 0; }
  /// Whether operand k has to be copied.
  constexpr bool copies(int id, int k) const { return (joined_[id] >> k & 1) == 0; }

 private:
  static constexpr signed char never = -1;
  static constexpr bool is_computed(Node const& n) {
    return n.op->arity > 0 && !is_view(n) && !is_exit(n) && n.op->code != Code::carry;
  }
  // Whether both operands are one piece of the result each.
  constexpr bool may_join(Node const& n) const {
    if (!is_op<op::concat>(*n.op) || !n.meta.shape.is_static() || n.meta.shape.numel() == 0) return false;
    for (int i = 0; i < n.attrs.i[0]; ++i)
      if (n.meta.shape[i] != 1) return false;
    return g_[n.in[0]].meta.shape.numel() != 0 && g_[n.in[1]].meta.shape.numel() != 0;
  }

  Graph const& g_;
  Vec<char> fixed_;  // what has its memory for another reason
  Vec<signed char> joined_;
};

}  // namespace detail

}  // namespace dfdx::graph
