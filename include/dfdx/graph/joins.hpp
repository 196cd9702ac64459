// SPDX-License-Identifier: BSL-1.0
// What is joined along the first axis, or of columns along the last, without a kernel: both parts are computed where
// they will lie.
#pragma once

#include <dfdx/graph/views.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/ops/side_by_side.hpp>
#include <dfdx/vocabulary/shape.hpp>  // which rules of ops call

namespace dfdx::graph {

/// Aliases - for each output the input whose memory it takes over when the program is done with that input, or -1.
using Aliases = Vec<int>;

/// most_columns - of so many one may write another's neighbour: elements of a column lie in few lines of memory.
inline constexpr index_t most_columns = 8;

/// joins_columns - whether a concat puts columns beside one another: along the last axis of a matrix of several rows.
constexpr bool joins_columns(Node const& n) {
  Shape const& s = n.meta.shape;
  return n.attrs.i[0] == s.rank - 1 && s.numel() != s[s.rank - 1];
}

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
      bool const columns = joins_columns(n);
      if (columns && !takes_columns(n, access)) continue;
      for (int k = 0; k < 2; ++k) {
        int const root = access[n.in[k]].root;
        if (!is_whole(n, k, access) || (columns && !is_column(n, k, root))) continue;
        fixed_[root] = 1;
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
  // Whether operand k is all of a value that may be computed anywhere.
  constexpr bool is_whole(Node const& n, int k, Access const* access) const {
    Access const& a = access[n.in[k]];
    Shape const& shape = g_[n.in[k]].meta.shape;
    Node const& root = g_[a.root];
    return a.offset == 0 && a.turn < 0 && is_contiguous(shape, a.strides) &&
           shape.numel() == root.meta.shape.numel() && is_computed(root) && root.region == n.region &&
           fixed_[a.root] == 0;
  }
  // Whether both operands are one piece of the result each, or columns.
  constexpr bool may_join(Node const& n) const {
    Shape const& s = n.meta.shape;
    if (!is_op<op::concat>(*n.op) || s.numel() == 0) return false;
    if (g_[n.in[0]].meta.shape.numel() == 0 || g_[n.in[1]].meta.shape.numel() == 0) return false;
    bool first = s.is_static();
    for (int i = 0; i < n.attrs.i[0]; ++i) first = first && s[i] == 1;
    return first || (joins_columns(n) && extent::is_static(s[s.rank - 1]) && s[s.rank - 1] <= most_columns);
  }
  // Of columns a loop writes each where it belongs. Several of them are themselves joined, and read here alone: nothing
  // else has its elements where rows have gaps.
  constexpr bool takes_columns(Node const& n, Access const* access) const {
    bool ok = true;
    for (int k = 0; k < 2; ++k)
      ok = ok && (columns(n, k) == 1 || (is_whole(n, k, access) && is_column(n, k, access[n.in[k]].root)));
    return ok;
  }
  constexpr index_t columns(Node const& n, int k) const {
    Shape const& s = g_[n.in[k]].meta.shape;
    return s[s.rank - 1];
  }
  constexpr bool is_column(Node const& n, int k, int root) const {
    Node const& x = g_[root];
    if (columns(n, k) == 1) return x.op->elementwise || x.op->code == Code::cast;
    return n.in[k] == root && joined(root) && joins_columns(x) && uses_of(root) == 1;
  }
  constexpr int uses_of(int id) const {
    int uses = 0;
    for (Node const& n : g_.nodes)
      for (int k = 0; k < n.op->arity; ++k) uses += n.in[k] == id;
    return uses;
  }

  Graph const& g_;
  Vec<char> fixed_;  // what has its memory for another reason
  Vec<signed char> joined_;
};

}  // namespace detail

}  // namespace dfdx::graph
