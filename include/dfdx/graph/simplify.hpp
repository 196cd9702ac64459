// SPDX-License-Identifier: BSL-1.0
// Simplification: rebuilds a graph node by node, finding equal nodes by hash, folding constants and applying the
// local algebra below; then drops what no output needs. Linear in the number of nodes.
#pragma once

#include <bit>

#include <dfdx/ops/join.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/ops/rounding.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

/// Rewriter - builds a graph in which no two nodes are equal and none can be simplified alone.
class Rewriter {
 public:
  constexpr explicit Rewriter(int expected) {
    std::size_t n = 16;
    while (n < 2 * static_cast<std::size_t>(expected)) n *= 2;
    heads_.assign(n, -1);
  }

  /// add - the node (its operands already of this graph), or one that has the same value. It is rewritten in place: a
  /// constant expression pays for copies.
  constexpr int add(Node&& n) { return add(n); }
  constexpr int add(Node& n) {
    for (int round = 0; round < 8; ++round) {
      int const same = replace(n);
      if (same >= 0) return same;
      if (same == unchanged) break;
    }
    std::size_t const slot = hash(n) & (heads_.size() - 1);
    int& head = heads_[slot];
    for (int i = head; i >= 0; i = next_[i])
      if (equal(graph[i], n)) return i;
    next_.push_back(head);
    return head = graph.push(n).id;
  }

  Graph graph;

 private:
  static constexpr int unchanged = -1, changed = -2;

  constexpr bool is(int i, Code c) const { return graph[i].op->code == c; }
  constexpr bool is_constant(int i) const { return is(i, Code::constant); }
  constexpr double value(int i) const { return graph[i].attrs.f[0]; }
  constexpr bool is_constant(int i, double v) const { return is_constant(i) && value(i) == v; }

  static constexpr int become(Node& n, Node const& m) {
    n = m;
    return changed;
  }
  static constexpr int become_constant(Node& n, double v) {
    return become(n, Node{&info<op::constant>, Attrs{{}, {rounded(n.meta.dtype, v)}}, n.meta, {}});
  }
  static constexpr double rounded(DType d, double v) {
    if (d == DType::f32) return static_cast<float>(v);
    if (d == DType::boolean) return v != 0 ? 1 : 0;
    if (!is_floating(d) && v < 9e18 && v > -9e18) return static_cast<double>(static_cast<index_t>(v));
    return v;
  }

  // Integers are not folded where they are not what double makes of them: divided by 0, rounded, wrapped.
  static constexpr bool is_folded(Node const& n, double by) {
    Code const c = n.op->code;
    bool const divides = c == op::floor_divide::code || c == op::fmod::code || c == op::remainder::code;
    return is_floating(n.meta.dtype) || (c != op::pow::code && !(divides && by == 0));
  }
  static constexpr bool fits(DType d, double y) {
    if (is_floating(d) || d == DType::boolean) return true;
    double const most = d == DType::u8 ? 255 : d == DType::i32 ? 2147483647 : 9007199254740991;
    return y <= most && y >= (d == DType::u8 ? 0 : -most);
  }

  // An existing node with n's value, or `changed` (n was rewritten: look again), or `unchanged`.
  constexpr int replace(Node& n) const {
    if (n.op->arity == 0) return unchanged;
    int const a = n.in[0];
    switch (n.op->code) {
      case Code::reshape:
        if (graph[a].meta.shape == n.meta.shape) return a;
        if (is_constant(a)) return become_constant(n, value(a));
        if (is(a, Code::reshape)) return n.in[0] = graph[a].in[0], changed;
        return unchanged;
      case Code::expand:
        if (graph[a].meta.shape == n.meta.shape) return a;
        if (is_constant(a)) return become_constant(n, value(a));
        if (is(a, Code::expand)) return n.in[0] = graph[a].in[0], changed;
        return unchanged;
      case Code::custom_vjp: return a;
      case Code::permute: return replace_permute(n, a);
      case Code::slice:
        if (graph[a].meta.shape == n.meta.shape && op::slice::step(n.attrs) == 1) return a;
        return is_constant(a) ? become_constant(n, value(a)) : unchanged;
      case Code::each: return is_constant(a) ? become_constant(n, value(a)) : unchanged;
      case Code::stack:
        if (is(a, Code::each) && graph[a].attrs.i[0] == n.attrs.i[0]) return graph[a].in[0];
        return is_constant(a) ? become_constant(n, value(a)) : unchanged;
      case Code::cast:
        if (graph[a].meta.dtype == n.meta.dtype) return a;
        return is_constant(a) ? become_constant(n, value(a)) : unchanged;
      case Code::reduce_sum: return replace_sum(n, a);
      case Code::reduce_prod:
      case Code::reduce_max:
      case Code::reduce_min: return graph[a].meta.shape == n.meta.shape ? a : unchanged;
      default: return n.op->elementwise ? replace_elementwise(n, a) : unchanged;
    }
  }

  constexpr int replace_permute(Node& n, int a) const {
    Shape const& from = graph[a].meta.shape;
    if (is_constant(a)) return become_constant(n, value(a));
    if (is(a, Code::permute)) {
      int axes[max_rank] = {};
      for (int i = 0; i < from.rank; ++i)
        axes[i] = op::axis_of(graph[a].attrs.i[0], op::axis_of(n.attrs.i[0], i));
      n.attrs.i[0] = op::pack_axes(axes, from.rank);
      n.in[0] = graph[a].in[0];
      return changed;
    }
    // Axes of extent 1 may go anywhere: if the others keep their order, this is a reshape.
    int previous = -1;
    for (int i = 0; i < from.rank; ++i) {
      int const axis = op::axis_of(n.attrs.i[0], i);
      if (from[axis] == 1) continue;
      if (axis < previous) return unchanged;
      previous = axis;
    }
    return become(n, Node{&info<op::reshape>, Attrs{}, n.meta, {a}});
  }

  constexpr int replace_sum(Node& n, int a) const {
    Shape const& from = graph[a].meta.shape;
    if (from == n.meta.shape) return a;
    if (is(a, Code::reduce_sum)) {
      n.attrs.i[0] |= graph[a].attrs.i[0];
      n.in[0] = graph[a].in[0];
      return changed;
    }
    if (!is_constant(a)) return unchanged;
    double count = 1;
    for (int i = 0; i < from.rank; ++i) {
      if (from[i] < 0 && n.meta.shape[i] != from[i]) return unchanged;
      if (n.meta.shape[i] != from[i]) count *= static_cast<double>(from[i]);
    }
    return become_constant(n, value(a) * count);
  }

  constexpr int replace_elementwise(Node& n, int a) const {
    int const b = n.op->arity > 1 ? n.in[1] : a;
    int const c = n.op->arity > 2 ? n.in[2] : a;
    if (n.op->code == op::stop_gradient::code) return a;
    if (n.op->code == op::vanishing::code) return become_constant(n, 0);
    if (n.op->code == op::copy::code) return unchanged;
    if (is_constant(a) && is_constant(b) && is_constant(c) && is_folded(n, value(b))) {
      double const x[3] = {value(a), value(b), value(c)}, y = n.op->fold(x);
      if (fits(n.meta.dtype, y)) return become_constant(n, y);
    }
    if (n.op->code == op::add::code) {
      if (is_constant(b, 0)) return a;
      if (is_constant(a, 0)) return b;
    } else if (n.op->code == op::sub::code) {
      if (is_constant(b, 0)) return a;
    } else if (n.op->code == op::mul::code) {
      if (is_constant(b, 1)) return a;
      if (is_constant(a, 1)) return b;
      if (is_constant(a)) {  // the constant last, so that equal products are found equal
        n.in[0] = b;
        n.in[1] = a;
        return changed;
      }
    } else if (n.op->code == op::div::code) {
      if (is_constant(b, 1)) return a;
    } else if (n.op->code == op::neg::code) {
      if (is(a, op::neg::code)) return graph[a].in[0];
    } else if (n.op->code == op::where::code) {
      if (b == c) return b;
      if (is_constant(a)) return value(a) != 0 ? b : c;
    }
    return unchanged;
  }

  static constexpr std::size_t hash(Node const& n) {
    std::uint64_t h = static_cast<std::uint64_t>(n.op->code) * 31 + static_cast<std::uint64_t>(n.meta.dtype);
    for (char const* s = n.op->name; n.op->code == Code::opaque && *s != 0; ++s)
      h = h * 131 + static_cast<unsigned char>(*s);
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15ull;
    for (int k = 0; k < n.op->arity; ++k) h = (h ^ static_cast<std::uint64_t>(n.in[k])) * odd;
    for (index_t i : n.attrs.i) h = (h ^ static_cast<std::uint64_t>(i)) * odd;
    auto const number = std::bit_cast<std::uint64_t>(n.attrs.f[0]);
    h = (h ^ number ^ (number >> 43)) * odd;  // small whole numbers have high bits only
    for (int i = 0; i < n.meta.shape.rank; ++i)
      h = (h ^ static_cast<std::uint64_t>(n.meta.shape.dims[i])) * odd;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
  static constexpr bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  }
  static constexpr bool equal(Node const& a, Node const& b) {
    if (!same_op(*a.op, *b.op) || !(a.meta == b.meta)) return false;
    for (int k = 0; k < a.op->arity; ++k)
      if (a.in[k] != b.in[k]) return false;
    for (int k = 0; k < 3; ++k)
      if (a.attrs.i[k] != b.attrs.i[k]) return false;
    return same_bits(a.attrs.f[0], b.attrs.f[0]) && same_bits(a.attrs.f[1], b.attrs.f[1]);
  }

  Vec<int> heads_, next_;
};

namespace detail {

// (x y)' = y' x': a product that is only wanted transposed is computed that way. -1 if n is not such a
// transposition.
constexpr int transposed_product(Rewriter& r, Node const& n, Node const& product) {
  int const rank = n.meta.shape.rank;
  if (n.op->code != Code::permute || product.op->code != Code::matmul) return -1;
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

// The values of all iterations without a loop, or as a view of another such stack; -1 for others. Values that are one
// and the same are repeated; views are looked at together, so that what is under them need not be copied.
constexpr int simpler_stack(Rewriter& r, Node const& n) {
  if (n.op->code != Code::stack) return -1;
  Node const value = r.graph[n.in[0]];
  if (r.graph.encloses(region_behind(n), value.region)) {
    if (value.op->code != Code::reshape) return -1;
    Shape const& under = r.graph[value.in[0]].meta.shape;
    if (under.rank == max_rank) return -1;
    Node all{n.op, n.attrs, Meta{n.meta.dtype, make_shape(n.meta.shape[0])}, {value.in[0]}};
    for (int i = 0; i < under.rank; ++i) all.meta.shape.push_back(under[i]);
    return r.add(Node{value.op, value.attrs, n.meta, {r.add(all)}});
  }
  Node one{&info<op::reshape>, Attrs{}, n.meta, {n.in[0]}};
  one.meta.shape[0] = 1;
  return r.add(Node{&info<op::expand>, Attrs{}, n.meta, {r.add(one)}});
}

// pad(x) + pad(y), where x and y lie side by side in zeros: x and y joined, and padded. -1 if they are not such.
constexpr int joined_parts(Rewriter& r, int a, int b) {
  if (!same_op(*r.graph[a].op, info<op::pad>) || !same_op(*r.graph[b].op, info<op::pad>)) return -1;
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
  if (n.op->code != op::add::code) return -1;
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
  r.graph.regions = g.regions;
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
  for (int i = 0; i < size; ++i) {
    if (is_needed[i] == 0) continue;
    Node n = nodes[i];
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = to[n.in[k]];
    int swapped = detail::simpler_stack(r, n);
    if (swapped < 0) swapped = detail::sum_of_parts(r, n);
    if (n.op->code == Code::permute && uses[nodes[i].in[0]] == 1) {
      Node const product = r.graph[n.in[0]];
      swapped = detail::transposed_product(r, n, product);
    }
    to[i] = swapped >= 0 ? swapped : r.add(n);
  }
  for (int o : g.outputs) r.graph.outputs.push_back(to[o]);
  Vec<char> const used = live(r.graph);
  moved.assign(r.graph.nodes.size(), -1);
  int* const place = moved.data();
  Graph out;
  out.inputs = g.inputs;
  out.requirements = g.requirements;
  out.regions = g.regions;
  out.nodes.reserve(r.graph.nodes.size());
  char const* const is_used = used.data();
  for (int i = 0, all = r.graph.size(); i < all; ++i) {
    if (is_used[i] == 0) continue;
    Node& n = r.graph[i];
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = place[n.in[k]];
    place[i] = out.push(n).id;
  }
  for (int o : r.graph.outputs) out.outputs.push_back(place[o]);
  return out;
}

}  // namespace dfdx::graph
