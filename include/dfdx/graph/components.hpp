// SPDX-License-Identifier: BSL-1.0
// Components: arrays of many short vectors, such as points, colours or the differences of all pairs of points, become
// one array for each component where vectors are joined to numbers or take one each. Loops then run along the many
// rather than along two or three: a component is every third number of what is in memory, or of what is to be.
#pragma once

#include <dfdx/graph/fuse.hpp>
#include <dfdx/graph/joins.hpp>
#include <dfdx/graph/simplify.hpp>
#include <dfdx/ops/binary.hpp>

namespace dfdx::graph {

/// The longest vectors that are taken apart, from so many of them on; and how many times more there must be than of
/// those that they repeat, and of sums that are made of them.
inline constexpr index_t most_components = most_columns, worth_components = 256, times_more_vectors = 8;
/// What one kernel takes of them: arrays that are computed (fewer of those that repeat others, which would be large
/// between several), and sums of components; of more vectors than `most_kept`, an array of which is no matter beside
/// the time, so few sums of rows that it certainly has registers for them.
inline constexpr index_t most_split = 64, most_made = 32, most_split_sums = 12, sure_row_sums = 3,
                         most_kept = 1 << 20;

namespace detail {

/// Splitter - rewrites a graph without such arrays. (A template: files without programs do not compile it.)
template <int = 0>
class Splitter {
  Graph const& g_;
  index_t worth_, times_;
  Vec<char> split_;

 public:
  constexpr Splitter(Graph const& g, index_t worth, index_t times)
      : g_(g), worth_(worth), times_(times), found(mark()), r_(found ? g.size() : 0) {}

  /// Whether there are any.
  bool const found;

  constexpr Graph rewritten(Aliases const& aliases) {
    r_.graph.take_frame(g_);
    to_.assign(g_.nodes.size(), -1);
    parts_.assign(g_.nodes.size() * most_components, -1);
    for (int id = 0; id < g_.size(); ++id) {
      Node n = g_[id];
      if (split_[id] != 0) {
        split(id);
      } else if (is_reduction(n) && (split_[n.in[0]] != 0 || joins_given(n))) {
        to_[id] = reduced(n, id);
      } else {
        for (int k = 0; k < n.op->arity; ++k) n.in[k] = whole(n.in[k]);
        to_[id] = r_.add(n);
      }
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      int const o = g_.outputs[k];
      int y = whole(o);
      // Written over what the vectors are made of once they are all there.
      if (split_[o] != 0 && k < aliases.size() && aliases[k] >= 0)
        y = r_.add(Node{&info<op::copy>, Attrs{}, g_[o].meta, {y}});
      r_.graph.outputs.push_back(y);
    }
    return without_dead(r_.graph);
  }

 private:
  static constexpr bool is_constant(Node const& n) { return n.op->code == Code::constant; }
  static constexpr bool maps(Node const& n) {
    return (n.op->elementwise && n.op->code != op::copy::code) || n.op->code == Code::cast;
  }
  static constexpr index_t components(Node const& n) { return n.meta.shape[n.meta.shape.rank - 1]; }
  constexpr bool joins_vectors(Node const& n) const {
    return is_reduction(n) && (n.attrs.i[0] >> (g_[n.in[0]].meta.shape.rank - 1) & 1) != 0;
  }
  // Whether it joins each vector by itself.
  constexpr bool joins_each(Node const& n) const {
    return joins_vectors(n) && (n.attrs.i[0] >> (g_[n.in[0]].meta.shape.rank - 2) & 1) == 0;
  }
  // Many vectors that are in memory anyway.
  constexpr bool joins_given(Node const& n) const {
    return is_reduction(n) && is_floating(n.meta.dtype) && are_many(g_[n.in[0]]) && joins_each(n) &&
           is_in_memory(g_[n.in[0]]);
  }
  // Whether a node gives each of many vectors a number of its own for all components.
  constexpr bool spreads(Node const& n) const {
    if (n.op->code != Code::expand || !are_many(n)) return false;
    Shape const &from = g_[n.in[0]].meta.shape, &to = n.meta.shape;
    int along = to.rank - 2;
    while (along > 0 && to[along] == 1) --along;
    return from[from.rank - 1] == 1 && from[along] == to[along] && to[along] != 1;
  }
  constexpr bool are_many(Node const& n) const {
    Shape const& s = n.meta.shape;
    if (s.rank < 2 || size_of(n.meta.dtype) == 2) return false;
    index_t const c = s[s.rank - 1];
    return c >= 2 && c <= most_components && (!s.is_static() || s.numel() >= c * worth_);
  }
  // An unknown number of vectors is thought to be large.
  constexpr bool is_less(Node const& n, Node const& than) const {
    Shape const &s = n.meta.shape, &t = than.meta.shape;
    return s.is_static() && (!t.is_static() || s.numel() * times_ <= t.numel());
  }

  // Marks what maps such arrays, or repeats what is less. Then takes back what cannot be taken apart, what gains
  // nothing by it, and what one kernel does not take: arrays between several would be in memory.
  constexpr bool mark() {
    bool any = false;
    for (Node const& n : g_.nodes) any = any || spreads(n) || (joins_vectors(n) && are_many(g_[n.in[0]]));
    if (!any) return false;
    split_.assign(g_.nodes.size(), 0);
    for (int id = 0; id < g_.size(); ++id)
      split_[id] = are_many(g_[id]) && (maps(g_[id]) || g_[id].op->code == Code::expand);
    do settle();
    while (keep_core() || keep_small());
    any = false;
    for (Node const& n : g_.nodes) any = any || joins_given(n);
    for (char c : split_) any = any || c != 0;
    return any;
  }
  constexpr void settle() {
    for (bool again = true; again;) {
      again = false;
      for (int id = 0; id < g_.size(); ++id) {
        Node const& n = g_[id];
        for (int k = 0; k < n.op->arity; ++k) {
          Node const& x = g_[n.in[k]];
          if (split_[id] != 0 && split_[n.in[k]] == 0 && !may_enter(n, x)) again = take_back(id) || again;
          if (split_[id] == 0 && split_[n.in[k]] != 0 && !may_leave(n, x))
            again = take_back(n.in[k]) || again;
        }
      }
    }
  }

  // What reductions are made of, and what reads a number for each vector, is better taken apart; so is what is made of
  // that alone, for it would be read from memory. Takes back the rest; whether there was any.
  constexpr bool keep_core() {
    Vec<char> core(g_.nodes.size(), 0);
    Vec<int> readers(g_.nodes.size(), 0);
    for (Node const& n : g_.nodes)
      for (int k = 0; k < n.op->arity; ++k) ++readers[n.in[k]];
    for (int id = g_.size() - 1; id >= 0; --id) {
      Node const& n = g_[id];
      bool reads = split_[id] != 0 && core[id] != 0;
      for (int k = 0; k < n.op->arity; ++k)
        reads = reads || (split_[id] != 0 ? spreads(g_[n.in[k]]) && split_[n.in[k]] != 0 : is_reduction(n));
      if (!reads) continue;
      core[id] = split_[id];
      for (int k = 0; k < n.op->arity; ++k) core[n.in[k]] = split_[n.in[k]];
    }
    Vec<char> const needed = core;
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      bool of_core = split_[id] != 0 && maps(n);
      for (int k = 0; k < n.op->arity; ++k) of_core = of_core && may_close(n.in[k], core);
      if (of_core) core[id] = 1;
    }
    for (int id = g_.size() - 1; id >= 0; --id) {
      Node const& n = g_[id];
      int operands = 0;
      bool last = core[id] != 0 && needed[id] == 0;
      for (int k = 0; k < n.op->arity; ++k) operands += !is_constant(g_[n.in[k]]);
      for (int x = id + 1; x < g_.size() && last; ++x)
        for (int k = 0; k < g_[x].op->arity; ++k) last = last && (g_[x].in[k] != id || core[x] == 0);
      // Its operand leaves as well: then it can be made of that.
      for (int k = 0; k < n.op->arity && last; ++k)
        if (operands == 1 && !is_constant(g_[n.in[k]]) && readers[n.in[k]] > 1) core[id] = 0;
      if (core[id] != 0)
        for (int k = 0; k < n.op->arity; ++k) core[n.in[k]] = split_[n.in[k]];
    }
    bool any = false;
    for (int id = 0; id < g_.size(); ++id)
      if (core[id] == 0) any = take_back(id) || any;
    return any;
  }
  constexpr bool may_close(int x, Vec<char> const& core) const {
    return is_constant(g_[x]) || core[x] != 0 || (split_[x] != 0 && g_[x].op->code == Code::expand);
  }

  // Takes back those that read one another where they are too many for a kernel, or no number is one of all components;
  // whether there were such.
  constexpr bool keep_small() {
    Vec<int> first(g_.nodes.size(), 0);  // of those that read one another, the first
    for (int id = 0; id < g_.size(); ++id) first[id] = id;
    for (bool again = true; again;) {
      again = false;
      for (int id = 0; id < g_.size(); ++id)
        for (int k = 0; k < g_[id].op->arity && split_[id] != 0; ++k) {
          int const x = g_[id].in[k];
          if (split_[x] == 0 || first[x] == first[id]) continue;
          (first[x] < first[id] ? first[id] : first[x]) = first[x] < first[id] ? first[x] : first[id];
          again = true;
        }
    }
    std::size_t const size = g_.nodes.size();
    Vec<index_t> arrays(size, 0), sums(size, 0), row_sums(size, 0);
    Vec<char> is_worth(size, 0), is_made(size, 0), is_joined(size, 0);
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      int const all = first[id];
      if (split_[id] != 0 && n.op->code != Code::expand) arrays[all] += components(n);
      else if (split_[id] != 0 && spreads(n)) is_worth[all] = 1;
      else if (split_[id] != 0 && components(g_[n.in[0]]) != 1) is_made[all] = 1;
      if (!is_reduction(n) || split_[n.in[0]] == 0) continue;
      int const of = first[n.in[0]];
      if (joins_vectors(n)) is_joined[of] = 1;
      if (joins_each(n)) is_worth[of] = 1;
      index_t const now = joins_vectors(n) ? 1 : components(g_[n.in[0]]);
      Shape const& vectors = g_[n.in[0]].meta.shape;
      if (joins_vectors(n) && extent::mul(n.meta.shape.numel(), vectors[vectors.rank - 1]) == vectors.numel())
        continue;  // a number for each vector is no sum of many
      sums[of] += now;
      if ((n.attrs.i[0] >> (n.meta.shape.rank - 2) & 1) != 0) row_sums[of] += now;
    }
    bool any = false;
    for (int id = 0; id < g_.size(); ++id) {
      int const all = first[id];
      bool const large = split_[id] != 0 && g_[id].meta.shape.numel() > components(g_[id]) * most_kept;
      if (arrays[all] > (is_made[all] != 0 ? most_made : most_split) || sums[all] > most_split_sums ||
          (large && row_sums[all] > sure_row_sums) ||
          (is_worth[all] == 0 && (is_made[all] == 0 || is_joined[all] == 0)))
        any = take_back(id) || any;
    }
    return any;
  }
  constexpr bool take_back(int id) {
    bool const was = split_[id] != 0;
    split_[id] = 0;
    return was;
  }
  // What vectors may be made of: numbers that kernels make, what is in memory anyway, fewer of them, or a number for
  // each.
  constexpr bool may_enter(Node const& n, Node const& x) const {
    if (n.op->code != Code::expand) return is_generated(x) || is_in_memory(x);
    return is_less(x, n) || x.meta.shape[x.meta.shape.rank - 1] == 1;
  }
  constexpr bool is_in_memory(Node const& x) const {
    Node const* under = &x;
    while (is_view(*under)) under = &g_[under->in[0]];
    return !is_generated(*under) && !maps(*under) && !is_reduction(*under);
  }
  // Whole vectors are laid out for what reads them so, but not for a map of them that is not taken apart, of 16 bits.
  constexpr bool may_leave(Node const& n, Node const& x) const {
    if (!is_reduction(n)) return !maps(n) || are_many(n);
    if (!is_floating(n.meta.dtype)) return false;
    return (n.attrs.i[0] >> (x.meta.shape.rank - 1) & 1) != 0 || is_less(n, x);
  }

  static constexpr Meta without_last(Meta m) {
    --m.shape.rank;
    return m;
  }
  constexpr int reshaped(int id, Meta const& m) { return r_.add(Node{&info<op::reshape>, Attrs{}, m, {id}}); }

  constexpr int& part(int id, index_t k) { return parts_[static_cast<index_t>(id) * most_components + k]; }
  constexpr void split(int id) {
    Node const& n = g_[id];
    for (index_t k = 0; k < components(n); ++k) {
      if (n.op->code == Code::expand) {
        part(id, k) = repeated(n, k);
        continue;
      }
      Node one{n.op, n.attrs, without_last(n.meta)};
      for (int i = 0; i < n.op->arity; ++i) one.in[i] = component(n.in[i], k);
      part(id, k) = r_.add(one);
    }
  }
  // Of what is not taken apart every c-th element, as it lies there.
  constexpr int component(int id, index_t k) {
    if (split_[id] != 0) return part(id, k);
    Node const& x = g_[id];
    Meta const one = without_last(x.meta);
    int const last = one.shape.rank;
    if (is_constant(x)) return r_.add(Node{x.op, x.attrs, one});
    if (x.op->code == Code::iota && x.attrs.i[0] != last) return r_.add(Node{x.op, x.attrs, one});
    if (x.op->code == Code::iota)
      return r_.add(Node{&info<op::constant>, Attrs{{}, {static_cast<double>(k)}}, one});
    Meta thin = x.meta;
    thin.shape[last] = 1;
    return reshaped(r_.add(Node{&info<op::slice>, Attrs{{16 | last, k, 1}}, thin, {to_[id]}}), one);
  }
  // A component of what repeats others. Where loops run along them, they are laid side by side for it.
  constexpr int repeated(Node const& n, index_t k) {
    Node const& x = g_[n.in[0]];
    Meta const few = without_last(x.meta);
    int from = to_[n.in[0]];
    bool const runs = few.shape.rank > 0 && few.shape[few.shape.rank - 1] != 1;
    if (components(x) == 1) {
      from = reshaped(from, few);
    } else if (split_[n.in[0]] != 0 || is_generated(x) || !runs) {
      from = component(n.in[0], k);
    } else {
      Meta rows{x.meta.dtype, with_first_axis(components(x), few.shape)}, one = rows;
      one.shape[0] = 1;
      int const turned = r_.add(Node{&info<op::permute>, Attrs{{last_first(rows.shape.rank)}}, rows, {from}});
      int const laid = r_.add(Node{&info<op::copy>, Attrs{}, rows, {turned}});
      from = reshaped(r_.add(Node{&info<op::slice>, Attrs{{16, k, 1}}, one, {laid}}), few);
    }
    return r_.add(Node{n.op, n.attrs, without_last(n.meta), {from}});
  }
  // A value as it was: where it was taken apart, its components as columns.
  constexpr int whole(int id) {
    if (split_[id] == 0 || to_[id] >= 0) return to_[id];
    Meta rows = g_[id].meta;
    int const last = rows.shape.rank - 1;
    index_t const c = components(g_[id]);
    rows.shape[last] = 1;
    Meta const one = rows;
    int all = reshaped(part(id, 0), one);
    for (index_t k = 1; k < c; ++k) {
      rows.shape[last] = k + 1;
      all = r_.add(Node{&info<op::concat>, Attrs{{last}}, rows, {all, reshaped(part(id, k), one)}});
    }
    return to_[id] = all;
  }

  // How components are joined.
  static constexpr OpInfo const* joining(Node const& n) {
    switch (n.op->code) {
      case Code::reduce_sum: return &info<op::add>;
      case Code::reduce_prod: return &info<op::mul>;
      case Code::reduce_max: return &info<op::maximum>;
      default: return &info<op::minimum>;
    }
  }
  constexpr int reduced(Node const& n, int self) {
    Meta const small = without_last(n.meta);
    index_t const c = components(g_[n.in[0]]), last = n.meta.shape.rank - 1;
    bool const of_components = (n.attrs.i[0] >> last & 1) != 0;
    index_t const others = n.attrs.i[0] & ~(index_t{1} << last);
    auto const over_others = [&](int id) {
      return others == 0 ? id : r_.add(Node{n.op, Attrs{{others}}, small, {id}});
    };
    int total = component(n.in[0], 0);
    if (of_components) {
      Meta const each = r_.graph[total].meta;
      for (index_t k = 1; k < c; ++k)
        total = r_.add(Node{joining(n), Attrs{}, each, {total, component(n.in[0], k)}});
      return reshaped(over_others(total), n.meta);
    }
    // Component by component, as they are made, and seen as vectors.
    Meta rows{n.meta.dtype, with_first_axis(1, small.shape)};
    Meta const one = rows;
    total = reshaped(over_others(total), one);
    for (index_t k = 1; k < c; ++k) {
      rows.shape[0] = k + 1;
      int const next = reshaped(over_others(part(n.in[0], k)), one);
      total = r_.add(Node{&info<op::concat>, Attrs{{0}}, rows, {total, next}});
    }
    int const seen =
        r_.add(Node{&info<op::permute>, Attrs{{first_last(n.meta.shape.rank)}}, n.meta, {total}});
    return is_shown(self) ? r_.add(Node{&info<op::copy>, Attrs{}, n.meta, {seen}}) : seen;
  }
  // Whether a value is a result, or what one is a view of: these lie in order.
  constexpr bool is_shown(int id) const {
    for (int o : g_.outputs)
      if (under_parts(g_, o) == id) return true;
    return false;
  }
  static constexpr index_t last_first(int rank) {
    int axes[max_rank] = {rank - 1};
    for (int i = 1; i < rank; ++i) axes[i] = i - 1;
    return op::pack_axes(axes, rank);
  }
  static constexpr index_t first_last(int rank) {
    int axes[max_rank] = {};
    for (int i = 0; i + 1 < rank; ++i) axes[i] = i + 1;
    return op::pack_axes(axes, rank);
  }

  Rewriter r_;
  Vec<int> to_, parts_;
};

}  // namespace detail

/// split_components - an equal graph, of a simplified one, whose arrays of many short vectors are arrays of their
/// components where this gains. Results that take over an input are copied there.
template <int = 0>
constexpr Graph split_components(Graph g, Aliases const& aliases = {}, index_t worth = worth_components,
                                 index_t times = times_more_vectors) {
  detail::Splitter<> s(g, worth, times);
  if (!s.found) return g;
  return s.rewritten(aliases);
}

}  // namespace dfdx::graph
