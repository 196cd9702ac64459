// SPDX-License-Identifier: BSL-1.0
// Simplification: rebuilds a graph node by node, finding equal nodes by hash, folding constants and applying the
// local algebra below; then drops what no output needs. Linear in the number of nodes.
#pragma once

#include <dfdx/graph/narrow.hpp>
#include <dfdx/graph/patterns.hpp>

namespace dfdx::graph {

namespace detail {

// Marks what the marked nodes need.
constexpr void mark_operands(Graph const& g, Vec<char>& marked) {
  Node const* const nodes = g.nodes.data();
  char* const mark = marked.data();
  for (int i = g.size() - 1; i >= 0; --i) {
    if (mark[i] == 0) continue;
    int const arity = nodes[i].op->arity;
    for (int k = 0; k < arity; ++k) mark[nodes[i].in[k]] = 1;
  }
}

}  // namespace detail

/// live - which nodes an output needs. A carry needs what it becomes, which comes later.
constexpr Vec<char> live(Graph const& g) {
  Vec<char> r(g.nodes.size(), 0);
  for (int o : g.outputs) r[o] = 1;
  detail::mark_operands(g, r);
  for (bool again = !g.regions.empty(); again;) {
    again = false;
    for (int i = 0; i < g.size(); ++i) {
      if (g[i].op->code != Code::last || r[i] != 0) continue;
      if (r[g[i].in[0]] != 0) r[i] = 1, again = true;
    }
    if (again) detail::mark_operands(g, r);
  }
  return r;
}

/// without_dead - a graph without what no output needs. Inputs keep their positions.
constexpr Graph without_dead(Graph& g) {
  Vec<char> const used = live(g);
  Vec<int> moved(g.nodes.size(), -1);
  int* const place = moved.data();
  Graph out;
  out.take_frame(g);
  out.nodes.reserve(g.nodes.size());
  char const* const is_used = used.data();
  for (int i = 0, all = g.size(); i < all; ++i) {
    if (is_used[i] == 0) continue;
    Node& n = g[i];
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = place[n.in[k]];
    place[i] = out.push(n).id;
  }
  for (int o : g.outputs) out.outputs.push_back(place[o]);
  return out;
}

/// unify_symbols - extents that a call must find equal get one name, so that later passes see one index space. The
/// requirements stay: a call checks them.
constexpr void unify_symbols(Graph& g) {
  for (std::size_t r = 0; r < g.requirements.size(); ++r) {
    // Earlier substitutions have been applied to this one's sides below.
    SameExtent const now = g.requirements[r];
    index_t a = now.a, b = now.b;
    for (std::size_t q = 0; q < r; ++q) {
      int const k = extent::symbol_of(g.requirements[q].b);
      if (k < 0 || g.requirements[q].or_less || g.requirements[q].a == g.requirements[q].b) continue;
      a = extent::substitute(a, k, g.requirements[q].a);
      b = extent::substitute(b, k, g.requirements[q].a);
    }
    if (now.or_less) {
      g.requirements[r].a = a;
      g.requirements[r].b = b;
      continue;
    }
    // The later symbol gives way, to the earlier one or to a number.
    if (a < 0 && (b >= 0 || extent::symbol_of(b) < extent::symbol_of(a))) {
      index_t const t = a;
      a = b;
      b = t;
    }
    int const k = extent::symbol_of(b);
    g.requirements[r].a = a;
    g.requirements[r].b = b;
    if (k < 0 || a == b) continue;
    for (Node& n : g.nodes)
      for (int i = 0; i < n.meta.shape.rank; ++i) n.meta.shape[i] = extent::substitute(n.meta.shape[i], k, a);
  }
}

/// simplify - an equal graph with fewer nodes. Outputs keep their order; inputs keep their positions, and unused
/// ones are dropped.
constexpr Graph simplify(Graph g) {
  if (!g.requirements.empty()) unify_symbols(g);
  Rewriter r(g.size());
  r.graph.take_frame(g);
  r.graph.nodes.reserve(g.nodes.size());
  Vec<char> const needed = live(g);
  char const* const is_needed = needed.data();
  Vec<int> moved(g.nodes.size(), -1), uses(g.nodes.size());
  Node const* const nodes = g.nodes.data();
  int *const to = moved.data(), *const used_by = uses.data();
  int const size = g.size();
  for (int i = 0; i < size; ++i)
    if (is_needed[i] != 0)
      for (int k = 0; k < nodes[i].op->arity; ++k) ++used_by[nodes[i].in[k]];
  for (int o : g.outputs) ++uses[o];
  Vec<index_t> stacked;
  if (!g.regions.empty())
    stacked = detail::asked_of(g, [](Node const& n) { return n.op->code == Code::stack; });
  for (int i = 0; i < size; ++i) {
    if (is_needed[i] == 0) continue;
    Node n = nodes[i];
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = to[n.in[k]];
    int swapped = -1;
    Code const code = n.op->code;
    if (code == Code::stack)
      swapped = detail::simpler_stack(r, n, detail::is_whole(g, stacked, nodes[i].in[0]));
    else if (code == op::add::code) swapped = detail::sum_of_parts(r, n);
    else if (code == op::where::code) swapped = detail::masked_scatter(r, n);
    else if (code == Code::permute && uses[nodes[i].in[0]] == 1) {
      Node const product = r.graph[n.in[0]];
      int const under = nodes[nodes[i].in[0]].in[0];
      if (product.op->code == Code::cast && uses[under] == 1)
        swapped = detail::transposed_cast(r, n, product);
      else swapped = detail::transposed_product(r, n, product);
    } else if (code == Code::cast || detail::is_comparison(code)) swapped = detail::narrowed(r, g, n);
    to[i] = swapped >= 0 ? swapped : r.add(n);
  }
  for (int o : g.outputs) r.graph.outputs.push_back(to[o]);
  return without_dead(r.graph);
}

}  // namespace dfdx::graph
