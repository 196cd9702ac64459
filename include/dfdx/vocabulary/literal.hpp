// SPDX-License-Identifier: BSL-1.0
// Literals in the graph of the function that is being recorded: where they meet values of it, they are copied there.
// One number for all elements is a constant of the program; others are an input more, whose numbers the program has
// itself (program/literals.hpp).
#pragma once

#include <utility>

#include <dfdx/ops/views.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/fields.hpp>

namespace dfdx {

namespace detail {

constexpr bool is_literal(Graph const* g) { return g != nullptr && g->holders >= 0; }

// The graph in which values meet: that of one that is no literal, if there is one.
constexpr void meet(Graph*& g, Graph* other) {
  if (g == nullptr || (other != nullptr && is_literal(g))) g = other;
}
// That of values, or of trees of them; null if none is recorded.
template <class... T>
constexpr Graph* graph_of(T const&... trees) {
  Graph* g = nullptr;
  (visit(trees, [&](auto const& leaf) { meet(g, leaf.graph()); }), ...);
  return g;
}

[[noreturn]] inline void refuse_mixture(char const* op) {
  raise(op, ": a value in memory meets one that is being recorded; pass it as an argument");
}

// That a value is recorded where others are.
constexpr void require_recorded(char const* op, bool recorded) {
  if (recorded) return;
  if (DFDX_IN_CONSTANT_EXPRESSION) raise(op, ": a value that is no argument, nor in DFDX_FIELDS of one");
  refuse_mixture(op);
}

// Copies nodes of a graph of literals into another graph. (A template: programs without literals have no code for it.)
template <class = void>
class LiteralCopy {
 public:
  constexpr LiteralCopy(Graph& to, Graph const& from) : to_(to), from_(from), at_(from.nodes.size(), -1) {
    if (!from.regions.empty())
      raise("scan: a loop over literals alone; pass what it goes over as an argument");
    to.requirements.append(from.requirements.begin(), from.requirements.end());
  }
  constexpr int copy(int id) {
    if (at_[id] >= 0) return at_[id];
    Node n = from_[id];
    if (same_op(*n.op, literal_info)) return at_[id] = copy_literal(n);
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = copy(n.in[k]);
    return at_[id] = to_.push(n).id;
  }

 private:
  constexpr int copy_literal(Node const& n) {
    auto const count = static_cast<std::size_t>(n.attrs.i[1]);
    std::uint64_t const* const words = from_.words.data() + n.attrs.i[0];
    bool alike = true;
    for (std::size_t i = 1; i < count; ++i) alike = alike && words[i] == words[0];
    if (count == 0 || (alike && is_number(n.meta.dtype, words[0]))) {
      double const value = count == 0 ? 0 : number_of(n.meta.dtype, words[0]);
      return to_.push(Node{&info<op::constant>, Attrs{{}, {value}}, n.meta, {}}).id;
    }
    auto const first = static_cast<index_t>(to_.words.size());
    if (is_literal(&to_)) {
      to_.words.append(words, words + count);
      return to_.push(Node{&literal_info, Attrs{{first, n.attrs.i[1]}}, n.meta, {}}).id;
    }
    int k = 0;
    while (k < to_.literal_inputs.count && !same(to_.literals[k], n, words)) ++k;
    if (k == to_.literal_inputs.count) {
      to_.literals.push_back(Node{&literal_info, Attrs{{first}}, n.meta, {}});
      for (index_t i = 0; i < n.meta.shape.numel(); ++i) to_.words.push_back(words[count == 1 ? 0 : i]);
      to_.literal_inputs.bytes += literal_bytes(n.meta);
      ++to_.literal_inputs.count, ++to_.inputs;
    }
    int const input = to_.inputs - to_.literal_inputs.count + k;
    return to_.push(Node{&info<op::input>, Attrs{{input}}, n.meta, {}}).id;
  }
  constexpr bool same(Node const& there, Node const& n, std::uint64_t const* words) const {
    if (!(there.meta == n.meta)) return false;
    for (index_t i = 0; i < n.meta.shape.numel(); ++i)
      if (to_.words[there.attrs.i[0] + i] != words[n.attrs.i[1] == 1 ? 0 : i]) return false;
    return true;
  }

  Graph& to_;
  Graph const& from_;
  Vec<int> at_;
};

// The same value as a node of graph g, where a literal is copied to.
template <class = void>
constexpr Sym in_graph(Graph* g, char const* op, Sym const& x) {
  if (x.graph == g) return x;
  if (!is_literal(x.graph)) refuse_mixture(op);
  return {g, LiteralCopy<>(*g, *x.graph).copy(x.id)};
}
// The same of the leaves of a tree.
template <class T>
constexpr void bring_to(Graph* g, char const* op, T& tree) {
  visit(tree, [&](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (!refused<Leaf>) {
      if (leaf.graph() == g || !leaf.recorded()) return;
      Array there(g, in_graph(g, op, leaf.sym()).id, leaf.meta());
      if constexpr (typed<Leaf>) leaf = Leaf(typename Leaf::Unchecked{}, std::move(there));
      else leaf = std::move(there);
    }
  });
}

}  // namespace detail

}  // namespace dfdx
