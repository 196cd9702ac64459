// SPDX-License-Identifier: BSL-1.0
// Patterns of several nodes that have a cheaper equal, for simplify. Each is asked for nodes of one op: the last of the
// pattern.
#pragma once

#include <dfdx/graph/rewriter.hpp>

namespace dfdx::graph {

namespace detail {

// (x y)' = y' x': a product that is only wanted transposed is computed that way. -1 if n is not such a
// transposition.
constexpr int transposed_product(Rewriter& r, Node const& n, Node const& product) {
  int const rank = n.meta.shape.rank;
  if (product.op->code != Code::matmul) return -1;
  for (int i = 0; i < rank; ++i) {
    int const expected = i + 2 < rank ? i : i == rank - 1 ? rank - 2 : rank - 1;
    if (op::axis_of(n.attrs.i[0], i) != expected) return -1;
  }
  auto const transposed = [&](int id) {
    Node t{&info<op::permute>, n.attrs, r.graph[id].meta, {id}};
    t.meta.shape[rank - 1] = r.graph[id].meta.shape[rank - 2];
    t.meta.shape[rank - 2] = r.graph[id].meta.shape[rank - 1];
    return r.add(t);
  };
  int const left = transposed(product.in[1]), right = transposed(product.in[0]);
  return r.add(Node{product.op, product.attrs, n.meta, {left, right}});
}

// The same of a product in another dtype: the gradient of a weight that autocast rounds.
constexpr int transposed_cast(Rewriter& r, Node n, Node const& cast) {
  Node const product = r.graph[cast.in[0]];
  Meta const meta = n.meta;
  n.meta.dtype = product.meta.dtype;
  int const swapped = transposed_product(r, n, product);
  return swapped < 0 ? -1 : r.add(Node{cast.op, cast.attrs, meta, {swapped}});
}

// Whether a view has some of the elements of what it is of, each once.
constexpr bool is_part(Node const& n) {
  return n.op->code == Code::reshape || n.op->code == Code::permute || n.op->code == Code::slice;
}
// What views of parts are of.
constexpr int under_parts(Graph const& g, int id) {
  while (is_part(g[id])) id = g[id].in[0];
  return id;
}
// For every value, how many of its elements nodes that `asks` is true of have for an operand, in parts of it.
template <class F>
constexpr Vec<index_t> asked_of(Graph const& g, F const& asks) {
  Vec<index_t> r(g.nodes.size(), 0);
  for (Node const& n : g.nodes)
    if (n.op->arity == 1 && asks(n) && g[n.in[0]].meta.shape.is_static())
      r[under_parts(g, n.in[0])] += g[n.in[0]].meta.shape.numel();
  return r;
}
constexpr bool is_whole(Graph const& g, Vec<index_t> const& asked, int id) {
  int const root = under_parts(g, id);
  Shape const& s = g[root].meta.shape;
  return s.is_static() && asked[root] >= s.numel();
}

// A view for the stack of what it is a view of.
constexpr Attrs stacked_attrs(Node const& view) {
  if (view.op->code == Code::slice) return Attrs{{view.attrs.i[0] + 1, view.attrs.i[1], view.attrs.i[2]}};
  if (view.op->code == Code::reshape) return view.attrs;
  int axes[max_rank] = {};
  int const rank = view.meta.shape.rank;
  for (int i = 0; i < rank; ++i) axes[i + 1] = op::axis_of(view.attrs.i[0], i) + 1;
  return Attrs{{op::pack_axes(axes, rank + 1)}};
}

// The values of all iterations without a loop, or as a view of another such stack; -1 for others. Values that are one
// and the same are repeated; views are looked at together, so that what is under them need not be copied: some of the
// elements if all are stacked, in other parts of the `whole`.
constexpr int simpler_stack(Rewriter& r, Node const& n, bool whole) {
  Node const value = r.graph[n.in[0]];
  if (r.graph.encloses(region_behind(n), value.region)) {
    if (!is_part(value) || (value.op->code == Code::slice && !whole)) return -1;
    Shape const& under = r.graph[value.in[0]].meta.shape;
    if (under.rank == max_rank || value.meta.shape.rank == max_rank) return -1;
    Node all{n.op, n.attrs, Meta{n.meta.dtype, make_shape(n.meta.shape[0])}, {value.in[0]}};
    for (int i = 0; i < under.rank; ++i) all.meta.shape.push_back(under[i]);
    int const simpler = simpler_stack(r, all, whole);
    return r.add(Node{value.op, stacked_attrs(value), n.meta, {simpler >= 0 ? simpler : r.add(all)}});
  }
  Node one{&info<op::reshape>, Attrs{}, n.meta, {n.in[0]}};
  one.meta.shape[0] = 1;
  return r.add(Node{&info<op::expand>, Attrs{}, n.meta, {r.add(one)}});
}

// pad(x) + pad(y), where x and y lie side by side in zeros: x and y joined, and padded. -1 if they are not such.
constexpr int joined_parts(Rewriter& r, int a, int b) {
  if (!is_op<op::pad>(*r.graph[a].op) || !is_op<op::pad>(*r.graph[b].op)) return -1;
  Node const x = r.graph[a], y = r.graph[b];
  int const axis = op::pad::axis(x.attrs);
  Meta both = r.graph[x.in[0]].meta;
  index_t const first = both.shape[axis], second = r.graph[y.in[0]].meta.shape[axis];
  bool const beside = x.attrs.i[0] == axis && y.attrs.i[0] == axis && x.attrs.f[0] == 0 &&
                      y.attrs.f[0] == 0 && first > 0 && second > 0;  // (no gaps: i[0] is the axis alone)
  if (!beside) return -1;
  if (y.attrs.i[1] + second == x.attrs.i[1]) return joined_parts(r, b, a);
  if (x.attrs.i[1] + first != y.attrs.i[1]) return -1;
  both.shape[axis] = first + second;
  int const joined = r.add(Node{&info<op::concat>, Attrs{{axis}}, both, {x.in[0], y.in[0]}});
  index_t const before = x.attrs.i[1], after = y.attrs.i[2];
  if (before == 0 && after == 0) return joined;
  return r.add(Node{x.op, Attrs{{axis, before, after}}, x.meta, {joined}});
}
// The gradient of a value whose parts are used, as in split, is a sum of such; the part between two others may come
// last. -1 for other nodes.
constexpr int sum_of_parts(Rewriter& r, Node const& n) {
  if (int const joined = joined_parts(r, n.in[0], n.in[1]); joined >= 0) return joined;
  for (int k = 0; k < 2; ++k) {
    if (r.graph[n.in[k]].op->code != op::add::code) continue;
    Node const others = r.graph[n.in[k]];
    for (int i = 0; i < 2; ++i) {
      int const joined = joined_parts(r, others.in[i], n.in[1 - k]);
      if (joined < 0) continue;
      int const all = joined_parts(r, joined, others.in[1 - i]);
      return all >= 0 ? all : r.add(Node{n.op, n.attrs, n.meta, {joined, others.in[1 - i]}});
    }
  }
  return -1;
}

// where(y != c, scatter(x, at), 0), if y's elements at these places are there anyway: x is masked instead. So the
// gradient of a pooled relu does not need all that was pooled. -1 for other nodes.
constexpr int masked_scatter(Rewriter& r, Node const& n) {
  Graph& g = r.graph;
  if (g[n.in[0]].op->code != op::not_equal::code || g[n.in[2]].op->code != Code::constant) return -1;
  bool const reshaped = g[n.in[1]].op->code == Code::reshape;
  int const source = reshaped ? g[n.in[1]].in[0] : n.in[1];
  if (g[source].op->moves != Moves::scatter) return -1;
  Node const mask = g[n.in[0]], zero = g[n.in[2]], moved = g[source];
  if (g[mask.in[1]].op->code != Code::constant || zero.attrs.f[0] != 0) return -1;
  int const y = mask.in[0], places = moved.in[1];
  int there = -1;
  for (int id : r.gathers) {
    Node const& at = g[id];
    if (there >= 0 || at.in[1] != places || at.attrs.i[0] != moved.attrs.i[0]) continue;
    Node const& from = g[at.in[0]];
    bool const all = at.in[0] == y || (from.op->code == Code::reshape && from.in[0] == y);
    if (all && from.meta.shape == moved.meta.shape) there = id;
  }
  if (there < 0 || (!reshaped && !(moved.meta.shape == n.meta.shape))) return -1;
  Meta const few = g[moved.in[0]].meta, truths{DType::boolean, few.shape};
  Node limit = g[mask.in[1]];
  limit.meta.shape = few.shape;
  Node const of_few{mask.op, mask.attrs, truths, {there, r.add(limit)}};
  Node nothing = zero;
  nothing.meta = few;
  int const kept = r.add(Node{n.op, n.attrs, few, {r.add(Node{of_few}), moved.in[0], r.add(nothing)}});
  int const all = r.add(Node{moved.op, moved.attrs, moved.meta, {kept, places}});
  return reshaped ? r.add(Node{&info<op::reshape>, Attrs{}, n.meta, {all}}) : all;
}

}  // namespace detail

}  // namespace dfdx::graph
