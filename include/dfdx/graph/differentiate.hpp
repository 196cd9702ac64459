// SPDX-License-Identifier: BSL-1.0
// Differentiation of a graph: reverse mode appends the cotangent nodes of some values, forward mode the tangent
// nodes. One walk each; the rules are the ops' own. Only nodes on a path between the two ends are visited.
#pragma once

#include <span>

#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

namespace detail {

// Which of the nodes up to `last` depend on one of `sources` through floating values.
constexpr Vec<char> dependents(Graph const& g, std::span<int const> sources, int last) {
  Vec<char> active(static_cast<std::size_t>(last) + 1, 0);
  for (int s : sources)
    if (s <= last) active[static_cast<std::size_t>(s)] = 1;
  for (int i = 0; i <= last; ++i) {
    Node const& n = g[i];
    if (!is_floating(n.meta.dtype)) continue;
    for (int k = 0; k < n.arity(); ++k)
      if (active[static_cast<std::size_t>(n.in[k])] != 0) active[static_cast<std::size_t>(i)] = 1;
  }
  return active;
}

struct Operands {
  Sym x[max_arity];
  constexpr Operands(Graph& g, Node const& n) {
    for (int k = 0; k < n.arity(); ++k) x[k] = Sym{&g, n.in[k]};
  }
};

constexpr Sym plus(Sym const& a, Sym const& b) { return a ? bind<op::add>(Attrs{}, a, b) : b; }

}  // namespace detail

/// pull_back - appends the nodes of reverse mode: given cotangents of some nodes, those of the nodes `wrt` (which
/// are taken as independent of one another). Where nothing flows the answer is zeros.
///
/// Math      d_wrt = sum over paths of the products of transposed partials applied to ct
/// Source    Linnainmaa 1976; Griewank and Walther, Evaluating Derivatives, 2008
constexpr Vec<Sym> pull_back(Graph& g, std::span<Sym const> ends, std::span<Sym const> cts,
                             std::span<int const> wrt) {
  int last = -1;
  for (Sym const& e : ends) last = e.id > last ? e.id : last;
  for (int w : wrt) last = w > last ? w : last;
  Vec<char> const active = detail::dependents(g, wrt, last);
  Vec<char> is_end(static_cast<std::size_t>(last) + 1, 0);
  Vec<Sym> ct(static_cast<std::size_t>(last) + 1);
  for (std::size_t k = 0; k < ends.size(); ++k) {
    Sym& c = ct[static_cast<std::size_t>(ends[k].id)];
    c = detail::plus(c, cts[k]);
  }
  for (int w : wrt) is_end[static_cast<std::size_t>(w)] = 1;
  for (int i = last; i >= 0; --i) {
    auto const u = static_cast<std::size_t>(i);
    if (active[u] == 0 || is_end[u] != 0 || !ct[u]) continue;
    Node const n = g[i];
    detail::Operands const operands(g, n);
    Site<Sym> const site{operands.x, Sym{&g, i}, n.attrs};
    for (int k = 0; k < n.arity(); ++k) {
      auto const v = static_cast<std::size_t>(n.in[k]);
      if (active[v] == 0) continue;
      if (Sym const d = n.op->vjp(ct[u], site, k)) ct[v] = detail::plus(ct[v], d);
    }
  }
  Vec<Sym> result;
  for (int w : wrt) {
    Sym const c = ct[static_cast<std::size_t>(w)];
    result.push_back(c ? c : full_as(Sym{&g, w}, g[w].meta, 0));
  }
  return result;
}

/// push_forward - appends the nodes of forward mode: given tangents of the nodes `wrt`, those of `ends`.
///
/// Math      tangent_y = sum_k partial_k tangent_{x_k}
/// Source    Wengert 1964
constexpr Vec<Sym> push_forward(Graph& g, std::span<int const> wrt, std::span<Sym const> tangents,
                                std::span<Sym const> ends) {
  int last = -1;
  for (Sym const& e : ends) last = e.id > last ? e.id : last;
  Vec<char> const active = detail::dependents(g, wrt, last);
  Vec<Sym> tangent(static_cast<std::size_t>(last) + 1);
  Vec<char> given(static_cast<std::size_t>(last) + 1, 0);
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    if (wrt[k] > last) continue;
    tangent[static_cast<std::size_t>(wrt[k])] = tangents[k];
    given[static_cast<std::size_t>(wrt[k])] = 1;
  }
  for (int i = 0; i <= last; ++i) {
    auto const u = static_cast<std::size_t>(i);
    if (active[u] == 0 || given[u] != 0) continue;
    Node const n = g[i];
    detail::Operands const operands(g, n);
    Site<Sym> const site{operands.x, Sym{&g, i}, n.attrs};
    for (int k = 0; k < n.arity(); ++k) {
      Sym const t = tangent[static_cast<std::size_t>(n.in[k])];
      if (!t) continue;
      if (Sym const d = n.op->jvp(t, site, k)) tangent[u] = detail::plus(tangent[u], d);
    }
  }
  Vec<Sym> result;
  for (Sym const& e : ends) {
    Sym const t = tangent[static_cast<std::size_t>(e.id)];
    result.push_back(t ? t : full_as(e, e.meta(), 0));
  }
  return result;
}

}  // namespace dfdx::graph
