// SPDX-License-Identifier: BSL-1.0
// Where numbers change their width. What moves values moves those of 16 bits rather than those of 32: they become
// narrow before, in the loop that computes them, and wide after, in the loop that reads them. A model in mixed
// precision (vocabulary/autocast.hpp) would else have loops of its own for most casts, since between a product and the
// ops around it there is often a reshape.
#pragma once

#include <dfdx/graph/simplify.hpp>

namespace dfdx::graph {

namespace detail {

/// CastPlacer - rewrites a graph with its casts from and to 16 bits elsewhere.
class CastPlacer {
 public:
  constexpr explicit CastPlacer(Graph const& g) : g_(g), r_(g.size()), to_(g.nodes.size(), -1) {}

  /// Whether a graph has any.
  static constexpr bool has_some(Graph const& g) {
    for (Node const& n : g.nodes)
      if (narrows(g, n) || widens(g, n)) return true;
    return false;
  }

  constexpr Graph placed() {
    r_.graph.take_frame(g_);
    narrowed_ = asked_of(g_, [&](Node const& n) { return narrows(g_, n); });
    stacked_ = asked_of(g_, [](Node const& n) { return n.op->code == Code::stack; });
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      to_[id] = narrows(g_, n) ? narrowed(n) : moved(n);
    }
    for (int o : g_.outputs) r_.graph.outputs.push_back(to_[o]);
    return without_dead(r_.graph);
  }

 private:
  static constexpr bool narrows(Graph const& g, Node const& n) {
    if (n.op->code != Code::cast || !is_half(n.meta.dtype)) return false;
    DType const from = g[n.in[0]].meta.dtype;
    return is_floating(from) && !is_half(from);
  }
  static constexpr bool widens(Graph const& g, Node const& n) {
    if (n.op->code != Code::cast || !is_floating(n.meta.dtype) || is_half(n.meta.dtype)) return false;
    return is_half(g[n.in[0]].meta.dtype);
  }

  // Whether the elements of the result are those of the operands, as they are.
  static constexpr bool moves(Node const& n) {
    if (is_part(n) || n.op->code == Code::each || n.op->code == Code::stack) return true;
    return is_op<op::concat>(*n.op) || (is_op<op::pad>(*n.op) && n.attrs.f[0] == 0);
  }

  constexpr int add(Node const& n, bool is_whole) {
    int const simpler = n.op->code == Code::stack ? simpler_stack(r_, n, is_whole) : -1;
    return simpler >= 0 ? simpler : r_.add(Node(n));
  }
  // A node as it is, or what it moves widened after it.
  constexpr int moved(Node n) {
    bool const whole = n.op->code == Code::stack && is_whole(g_, stacked_, n.in[0]);
    bool wide = moves(n);
    DType dtype = DType::f32;
    for (int k = 0; k < n.op->arity; ++k) {
      n.in[k] = to_[n.in[k]];
      Node const& x = r_.graph[n.in[k]];
      wide = wide && widens(r_.graph, x);
      if (!wide) continue;
      DType const from = r_.graph[x.in[0]].meta.dtype;
      wide = k == 0 || from == dtype;
      dtype = from;
    }
    if (!wide) return add(n, whole);
    Node const cast = r_.graph[n.in[0]];
    Meta const meta = n.meta;
    n.meta.dtype = dtype;
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = r_.graph[n.in[k]].in[0];
    return r_.add(Node{cast.op, cast.attrs, meta, {add(n, whole)}});
  }

  // A cast to 16 bits below the views that lie under it: reshapes cost nothing, whatever they are of. Below others if a
  // loop computes what they are of, and as much as that is wanted in 16 bits.
  constexpr int narrowed(Node n) {
    Vec<int> views;
    int x = n.in[0];
    for (; g_[x].op->code == Code::reshape; x = g_[x].in[0]) views.push_back(x);
    int const root = under_parts(g_, x);
    Node const& made = g_[root];
    bool const all = !has_slice(x) || is_whole(g_, narrowed_, root);
    if (made.op->elementwise && made.region == n.region && all)
      for (; x != root; x = g_[x].in[0]) views.push_back(x);
    DType const dtype = n.meta.dtype;
    n.meta.shape = g_[x].meta.shape;
    n.in[0] = to_[x];
    int at = r_.add(n);
    for (std::size_t k = views.size(); k-- > 0;) {
      Node view = g_[views[k]];
      view.meta.dtype = dtype;
      view.in[0] = at;
      at = r_.add(view);
    }
    return at;
  }
  constexpr bool has_slice(int id) const {
    for (; is_part(g_[id]); id = g_[id].in[0])
      if (g_[id].op->code == Code::slice) return true;
    return false;
  }

  Graph const& g_;
  Rewriter r_;
  Vec<int> to_;
  Vec<index_t> narrowed_, stacked_;
};

}  // namespace detail

/// place_casts - an equal graph, of a simplified one, that moves numbers while they are of 16 bits.
constexpr Graph place_casts(Graph g) {
  if (!detail::CastPlacer::has_some(g)) return g;
  return detail::CastPlacer(g).placed();
}

}  // namespace dfdx::graph
