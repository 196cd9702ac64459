// SPDX-License-Identifier: BSL-1.0
// The order of a directed graph given as edges, or the cycle that it has. The graphs of programs and the run-time tape
// cannot have one, for a node is made after its operands; this is for graphs from elsewhere.
#pragma once

#include <span>

#include <dfdx/core/error.hpp>
#include <dfdx/core/vec.hpp>

namespace dfdx::graph {

/// Edge - `to` needs `from`.
struct Edge {
  int from, to;
};

namespace detail {

// From a node that an order has left over back along edges, until one comes twice: a cycle, against its direction.
constexpr Text cycle_among(Vec<int> const& waiting, std::span<Edge const> edges) {
  std::size_t const n = waiting.size();
  Vec<int> needs(n, -1), seen(n, 0);
  for (Edge const& e : edges)
    if (waiting[e.from] != 0) needs[e.to] = e.from;
  int at = 0;
  while (waiting[at] == 0) ++at;
  for (; seen[at] == 0; at = needs[at]) seen[at] = 1;
  constexpr int shown = 8;
  Text why = make_text("topological_order: a cycle: ", at, " needs ");
  int next = needs[at];
  for (int k = 0; next != at && k < shown; next = needs[next], ++k) why.put(next).put(" needs ");
  return next == at ? why.put(at) : why.put("...");
}

}  // namespace detail

/// topological_order - the nodes 0 .. n - 1 in an order in which each comes after all it needs. No recursion.
///
/// Cost      linear in nodes and edges
/// Errors    "topological_order: a cycle: 1 needs 2 needs 1"; "topological_order: edge from 0 to 7 among 3 nodes"
/// Source    Kahn, "Topological sorting of large networks", CACM 5, 1962
constexpr Vec<int> topological_order(int n, std::span<Edge const> edges) {
  auto const at = [](int i) { return static_cast<std::size_t>(i); };
  Vec<int> waiting(at(n), 0), begin(at(n) + 1, 0), users(edges.size(), 0), order;
  for (Edge const& e : edges) {
    if (e.from < 0 || e.to < 0 || e.from >= n || e.to >= n)
      raise("topological_order: edge from ", e.from, " to ", e.to, " among ", n, " nodes");
    ++waiting[e.to];
    ++begin[e.from + 1];
  }
  for (int i = 0; i < n; ++i) begin[i + 1] += begin[i];
  Vec<int> next = begin;
  for (Edge const& e : edges) users[next[e.from]++] = e.to;
  for (int i = 0; i < n; ++i)
    if (waiting[i] == 0) order.push_back(i);
  for (std::size_t done = 0; done < order.size(); ++done) {
    int const i = order[done];
    for (int k = begin[i]; k < begin[i + 1]; ++k)
      if (--waiting[users[k]] == 0) order.push_back(users[k]);
  }
  if (order.size() != at(n)) raise(detail::cycle_among(waiting, edges));
  return order;
}

}  // namespace dfdx::graph
