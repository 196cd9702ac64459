// SPDX-License-Identifier: BSL-1.0
// Verification of a graph: what every pass may take for granted, and must leave true. Works in constant
// expressions.
#pragma once

#include <dfdx/graph/views.hpp>
#include <dfdx/ops/binary.hpp>
#include <dfdx/ops/region.hpp>

namespace dfdx::graph {

namespace detail {

// What a node that has no shape rule of its own must satisfy.
constexpr bool is_plausible(Graph const& g, Node const& n) {
  Shape const& to = n.meta.shape;
  if (n.op->arity > 0 && is_view(n) && g[n.in[0]].meta.dtype != n.meta.dtype) return false;
  if (n.op->code == Code::reshape) return op::extents_agree(g[n.in[0]].meta.shape.numel(), to.numel());
  if (n.op->code == Code::iota) return n.attrs.i[0] >= 0 && n.attrs.i[0] < to.rank;
  if (n.op->code == Code::stack) {
    Shape const& of = g[n.in[0]].meta.shape;
    bool ok = n.meta.dtype == g[n.in[0]].meta.dtype && to.rank == of.rank + 1;
    for (int i = 0; ok && i < of.rank; ++i) ok = to[i + 1] == of[i];
    return ok && to[0] == g.regions[n.attrs.i[0]].count;
  }
  if (n.op->code == Code::expand) {
    Shape const& from = g[n.in[0]].meta.shape;
    bool ok = from.rank == to.rank;
    for (int i = 0; ok && i < to.rank; ++i) ok = from[i] == to[i] || from[i] == 1 || from[i] < 0 || to[i] < 0;
    return ok;
  }
  return true;
}

// Whether the shape rule of the op, where it has one, gives the node's meta.
constexpr bool agrees_with_rule(Graph const& g, Node const& n) {
  bool ruled = (DFDX_IN_CONSTANT_EXPRESSION || n.op->infer != nullptr) && n.op->code != Code::input &&
               n.op->code != Code::constant && n.op->code != Code::iota && n.op->code != Code::reshape &&
               n.op->code != Code::expand && n.op->code != Code::stack;
  if (!ruled) return is_plausible(g, n);
  Meta in[max_arity] = {};
  for (int k = 0; k < n.op->arity; ++k) in[k] = g[n.in[k]].meta;
  Meta const m = n.op->infer(n.attrs, in, nullptr);
  // An op whose result's shape is given by its user refuses to infer one.
  if (!m.valid()) return n.op->code == Code::opaque;
  bool ok = m.dtype == n.meta.dtype && m.shape.rank == n.meta.shape.rank;
  for (int i = 0; ok && i < m.shape.rank; ++i) ok = op::extents_agree(m.shape[i], n.meta.shape[i]);
  return ok;
}

// Whether a node is in a region that sees all its operands; what leads into regions and out of them knows which.
// Copies may be made again in every iteration.
constexpr bool is_in_its_region(Graph const& g, Node const& n) {
  auto const count = static_cast<int>(g.regions.size());
  auto const own = static_cast<int>(n.attrs.i[0]);
  bool const enters = n.op->code == Code::carry || n.op->code == Code::each;
  if (enters || is_exit(n)) {
    if (own < 0 || own >= count) return false;
    int const parent = g.regions[own].parent;
    if (n.region != (enters ? own : parent)) return false;
    for (int k = 0; k < n.op->arity; ++k)
      if (!g.encloses(g[n.in[k]].region, enters ? parent : own)) return false;
    return n.op->code != Code::last || (g[n.in[0]].op->code == Code::carry && g[n.in[0]].attrs.i[0] == own);
  }
  if (n.region < -1 || n.region >= count) return false;
  for (int k = 0; k < n.op->arity; ++k)
    if (!g.encloses(g[n.in[k]].region, n.region)) return false;
  return true;
}

}  // namespace detail

/// verify - says what is wrong with a graph, in a text that is empty for a sound one: operands come before their
/// users, there are as many as the op takes, metas agree with the shape rules, inputs are numbered once, outputs
/// are nodes.
constexpr Text verify(Graph const& g) {
  Vec<char> seen(static_cast<std::size_t>(g.inputs), 0);
  for (int id = 0; id < g.size(); ++id) {
    Node const& n = g[id];
    // (A constant expression that follows a null pointer is refused anyway, and g++ with -fsanitize=undefined does not
    // take such comparisons for constants.)
    if (!DFDX_IN_CONSTANT_EXPRESSION && n.op == nullptr) return make_text("verify: node ", id, " has no op");
    if (n.op->arity < 0 || n.op->arity > max_arity)
      return make_text("verify: node ", id, " (", n.op->name, "): arity");
    for (int k = 0; k < max_arity; ++k) {
      if (k < n.op->arity && (n.in[k] < 0 || n.in[k] >= id))
        return make_text("verify: node ", id, " (", n.op->name, "): operand ", k, " is not an earlier node");
    }
    if (n.meta.shape.rank < 0 || n.meta.shape.rank > max_rank)
      return make_text("verify: node ", id, " (", n.op->name, "): no shape");
    if (n.op->code == Code::input) {
      index_t const at = n.attrs.i[0];
      if (at < 0 || at >= g.inputs || seen[at] != 0)
        return make_text("verify: node ", id, ": input ", at, " of ", g.inputs,
                         " is out of range or there twice");
      seen[at] = 1;
    }
    if (!detail::is_in_its_region(g, n))
      return make_text("verify: node ", id, " (", n.op->name, "): not in the region of its operands");
    if (!detail::agrees_with_rule(g, n))
      return make_text("verify: node ", id, " (", n.op->name,
                       "): shape or dtype is not what its rule says: ", n.meta.dtype, " ", n.meta.shape);
  }
  for (int o : g.outputs)
    if (o < 0 || o >= g.size()) return make_text("verify: output ", o, " is not a node");
  return {};
}

}  // namespace dfdx::graph
