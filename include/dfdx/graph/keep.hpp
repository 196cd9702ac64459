// SPDX-License-Identifier: BSL-1.0
// Partial evaluation: a graph of which some inputs stay the same from run to run is split into what depends on these
// alone, computed once and kept, and the rest, whose further inputs the kept values are.
#pragma once

#include <dfdx/graph/simplify.hpp>
#include <dfdx/graph/views.hpp>

namespace dfdx::graph {

/// Parts - a graph split by `keep`: `once` makes the values that are kept from the inputs, `rest` makes the outputs
/// from the inputs and, behind these, from the kept values.
struct Parts {
  Graph once, rest;
};

namespace detail {

// What a value depends on.
enum class Depends : unsigned char { on_nothing, on_fixed, on_others };

constexpr Vec<Depends> dependences(Graph const& g, Vec<char> const& fixed) {
  Vec<Depends> r(g.nodes.size(), Depends::on_others);
  for (int id = 0; id < g.size(); ++id) {
    Node const& n = g[id];
    Code const code = n.op->code;
    if (!n.meta.shape.is_static() || code == Code::carry || code == Code::each || is_exit(n)) continue;
    Depends most = Depends::on_nothing;
    if (code == Code::input && fixed[static_cast<int>(n.attrs.i[0])] != 0) most = Depends::on_fixed;
    else if (code == Code::input) most = Depends::on_others;
    for (int k = 0; k < n.op->arity; ++k) most = std::max(most, r[n.in[k]]);
    r[id] = most;
  }
  return r;
}

/// Matrices up to this size, which stay in the second cache between products with a vector, are stored by columns: a
/// product is then a sum of columns, each times one number, and no sum across a register. Larger ones take as long as
/// they take to read, however they lie; and of many short columns the vector's numbers would be read as often as the
/// matrix.
inline constexpr index_t largest_by_columns = index_t(256) * 1024;

// Whether node n multiplies one row with a fixed matrix that lies in memory by its rows of sums.
constexpr bool wants_columns(Graph const& g, Node const& n, Vec<Depends> const& on,
                             Vec<Access> const& access) {
  if (n.op->code != Code::matmul || on[n.in[0]] != Depends::on_others || on[n.in[1]] != Depends::on_fixed)
    return false;
  if (n.meta.dtype != DType::f32 && n.meta.dtype != DType::f64) return false;
  Shape const &y = n.meta.shape, &b = g[n.in[1]].meta.shape;
  index_t const columns = b[b.rank - 1], numbers = b.numel();
  bool const one_row = y.is_static() && y.numel() == columns && numbers == columns * b[b.rank - 2];
  return one_row && b[b.rank - 2] <= 2 * columns && access[n.in[1]].strides[b.rank - 1] != 1 &&
         numbers * static_cast<index_t>(size_of(n.meta.dtype)) <= largest_by_columns;
}

// The same graph with copies, by columns, of the matrices that want it.
constexpr Graph with_columns(Graph const& g, Vec<char> const& fixed) {
  Vec<Turn> turns;
  Vec<Access> const access = accesses(g, turns);
  Vec<Depends> const on = dependences(g, fixed);
  Graph out;
  out.take_frame(g);
  Vec<int> to(g.nodes.size(), -1);
  for (int id = 0; id < g.size(); ++id) {
    Node n = g[id];
    bool const by_columns = wants_columns(g, n, on, access);
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = to[n.in[k]];
    if (by_columns) n.in[1] = bind<op::copy>(Attrs{}, Sym{&out, n.in[1]}).id;
    to[id] = out.push(n).id;
  }
  for (int o : g.outputs) out.outputs.push_back(to[o]);
  return out;
}

// The values worth keeping: those that are computed from fixed inputs, and used by what depends on others or handed
// out. A view is not kept but what it looks at. What is larger than all that it is made from is not either: it is
// cheaper to make than to read.
constexpr Vec<int> values_to_keep(Graph const& g, Vec<char> const& fixed) {
  Vec<Turn> turns;
  Vec<Access> const access = accesses(g, turns);
  Vec<Depends> const on = dependences(g, fixed);
  Vec<index_t> from(g.nodes.size(), 0);  // elements of the largest fixed input under a node
  Vec<char> kept(g.nodes.size(), 0);
  auto const use = [&](int id) {
    int const root = access[id].root;
    bool const made = g[root].op->arity > 0;
    if (on[id] == Depends::on_fixed && made && g[root].meta.shape.numel() <= from[root]) kept[root] = 1;
  };
  for (int id = 0; id < g.size(); ++id) {
    Node const& n = g[id];
    if (n.op->code == Code::input && on[id] == Depends::on_fixed) from[id] = n.meta.shape.numel();
    for (int k = 0; k < n.op->arity; ++k) {
      from[id] = std::max(from[id], from[n.in[k]]);
      if (on[id] == Depends::on_others) use(n.in[k]);
    }
  }
  for (int o : g.outputs) use(o);
  Vec<int> r;
  for (int id = 0; id < g.size(); ++id)
    if (kept[id] != 0) r.push_back(id);
  return r;
}

}  // namespace detail

/// keep - splits a simplified graph; `fixed` says of each input whether it stays the same. Both parts are simplified,
/// and have all inputs of the graph.
constexpr Parts keep(Graph const& graph, Vec<char> const& fixed) {
  Graph const g = detail::with_columns(graph, fixed);
  Parts r{g, g};
  r.once.outputs = {};
  for (int const id : detail::values_to_keep(g, fixed)) {
    r.once.outputs.push_back(id);
    r.rest[id] = Node{&info<op::input>, Attrs{{r.rest.inputs++}}, g[id].meta, {}};
  }
  r.once = simplify(std::move(r.once));
  r.rest = simplify(std::move(r.rest));
  return r;
}

}  // namespace dfdx::graph
