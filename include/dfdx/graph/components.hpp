// SPDX-License-Identifier: BSL-1.0
// Components: a large array of short vectors that exists for its sums alone, such as the differences of all pairs of
// points, becomes one array for each component. Its loops then run along the many rather than along two or three.
#pragma once

#include <dfdx/graph/fuse.hpp>
#include <dfdx/graph/simplify.hpp>
#include <dfdx/ops/binary.hpp>

namespace dfdx::graph {

/// The longest vectors that are taken apart, from so many of them on, and how many times more there must be than of
/// what they are made of and of what is made of them.
inline constexpr index_t most_components = 8, worth_components = 256, times_more_vectors = 8;
/// What one kernel takes of them: arrays that are computed, and sums of components; of more vectors than `most_kept`,
/// an array of which is no matter beside the time, so few sums of rows that it certainly has registers for them.
inline constexpr index_t most_split = 32, most_split_sums = 12, sure_row_sums = 3, most_kept = 1 << 20;

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

  constexpr Graph rewritten() {
    r_.graph.take_frame(g_);
    to_.assign(g_.nodes.size(), -1);
    parts_.assign(g_.nodes.size() * most_components, -1);
    for (int id = 0; id < g_.size(); ++id) {
      Node n = g_[id];
      if (split_[id] != 0) split(id);
      else if (is_sum(n) && split_[n.in[0]] != 0) to_[id] = sum(n, id);
      else {
        for (int k = 0; k < n.op->arity; ++k) n.in[k] = to_[n.in[k]];
        to_[id] = r_.add(n);
      }
    }
    for (int o : g_.outputs) r_.graph.outputs.push_back(to_[o]);
    return without_dead(r_.graph);
  }

 private:
  static constexpr bool is_sum(Node const& n) { return n.op->code == Code::reduce_sum; }
  static constexpr bool is_constant(Node const& n) { return n.op->code == Code::constant; }
  static constexpr bool maps(Node const& n) {
    return (n.op->elementwise && n.op->code != op::copy::code) || n.op->code == Code::cast;
  }
  static constexpr index_t components(Node const& n) { return n.meta.shape[n.meta.shape.rank - 1]; }
  constexpr bool sums_vectors(Node const& n) const {
    return is_sum(n) && (n.attrs.i[0] >> (g_[n.in[0]].meta.shape.rank - 1) & 1) != 0;
  }
  constexpr bool are_many(Node const& n) const {
    Shape const& s = n.meta.shape;
    if (s.rank < 2 || !s.is_static() || size_of(n.meta.dtype) == 2) return false;
    index_t const c = s[s.rank - 1];
    return c >= 2 && c <= most_components && s.numel() >= c * worth_;
  }
  constexpr bool is_less(Node const& n, Node const& than) const {
    return n.meta.shape.is_static() && n.meta.shape.numel() * times_ <= than.meta.shape.numel();
  }

  // Marks what maps such arrays, or repeats what is less; then takes back what others need, or what is made of more,
  // and what one kernel does not take: arrays between several would be in memory.
  constexpr bool mark() {
    bool any = false;
    for (Node const& n : g_.nodes) any = any || (sums_vectors(n) && are_many(g_[n.in[0]]));
    if (!any) return false;
    split_.assign(g_.nodes.size(), 0);
    for (int id = 0; id < g_.size(); ++id)
      split_[id] = are_many(g_[id]) && (maps(g_[id]) || g_[id].op->code == Code::expand);
    settle();
    if (keep_small()) settle();
    any = false;
    for (Node const& n : g_.nodes) any = any || (sums_vectors(n) && split_[n.in[0]] != 0);
    return any;
  }
  constexpr void settle() {
    for (bool again = true; again;) {
      again = false;
      for (int o : g_.outputs) again = take_back(o) || again;
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
  // Takes back those that read one another where they are too many for a kernel; whether there were such.
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
    Vec<index_t> arrays(g_.nodes.size(), 0), sums(g_.nodes.size(), 0), row_sums(g_.nodes.size(), 0);
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      if (split_[id] != 0 && n.op->code != Code::expand) arrays[first[id]] += components(n);
      if (!is_sum(n) || split_[n.in[0]] == 0) continue;
      index_t const now = sums_vectors(n) ? 1 : components(g_[n.in[0]]);
      sums[first[n.in[0]]] += now;
      if ((n.attrs.i[0] >> (n.meta.shape.rank - 2) & 1) != 0) row_sums[first[n.in[0]]] += now;
    }
    bool any = false;
    for (int id = 0; id < g_.size(); ++id) {
      int const all = first[id];
      bool const large = split_[id] != 0 && g_[id].meta.shape.numel() > components(g_[id]) * most_kept;
      if (arrays[all] > most_split || sums[all] > most_split_sums || (large && row_sums[all] > sure_row_sums))
        any = take_back(id) || any;
    }
    return any;
  }
  constexpr bool take_back(int id) {
    bool const was = split_[id] != 0;
    split_[id] = 0;
    return was;
  }
  // What vectors may be made of: constants, fewer of them, or a number for each.
  constexpr bool may_enter(Node const& n, Node const& x) const {
    if (n.op->code != Code::expand) return is_constant(x);
    return is_less(x, n) || x.meta.shape[x.meta.shape.rank - 1] == 1;
  }
  constexpr bool may_leave(Node const& n, Node const& x) const {
    if (!is_sum(n) || !is_floating(n.meta.dtype)) return false;
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
      for (int i = 0; i < n.op->arity; ++i) {
        Node const& x = g_[n.in[i]];
        one.in[i] = is_constant(x) ? r_.add(Node{x.op, x.attrs, without_last(x.meta)}) : part(n.in[i], k);
      }
      part(id, k) = r_.add(one);
    }
  }
  // A component of what repeats others, which are laid side by side for it.
  constexpr int repeated(Node const& n, index_t k) {
    Node const& x = g_[n.in[0]];
    Meta const few = without_last(x.meta);
    int from = to_[n.in[0]];
    if (split_[n.in[0]] != 0) {
      from = part(n.in[0], k);
    } else if (components(x) == 1) {
      from = reshaped(from, few);
    } else {
      Meta rows{x.meta.dtype, with_first_axis(components(x), few.shape)}, one = rows;
      one.shape[0] = 1;
      int const turned = r_.add(Node{&info<op::permute>, Attrs{{last_first(rows.shape.rank)}}, rows, {from}});
      int const laid = r_.add(Node{&info<op::copy>, Attrs{}, rows, {turned}});
      from = reshaped(r_.add(Node{&info<op::slice>, Attrs{{16, k, 1}}, one, {laid}}), few);
    }
    return r_.add(Node{n.op, n.attrs, without_last(n.meta), {from}});
  }

  constexpr int sum(Node const& n, int self) {
    Meta const small = without_last(n.meta);
    index_t const c = components(g_[n.in[0]]), last = n.meta.shape.rank - 1;
    bool const of_components = (n.attrs.i[0] >> last & 1) != 0;
    auto const over_others = [&](int id) {
      return r_.add(Node{n.op, Attrs{{n.attrs.i[0] & ~(index_t{1} << last)}}, small, {id}});
    };
    int total = part(n.in[0], 0);
    if (of_components) {
      Meta const each = r_.graph[total].meta;
      for (index_t k = 1; k < c; ++k)
        total = r_.add(Node{&info<op::add>, Attrs{}, each, {total, part(n.in[0], k)}});
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

/// split_components - an equal graph, of a simplified one, whose large arrays of short vectors are arrays of their
/// components where these are only summed.
template <int = 0>
constexpr Graph split_components(Graph g, index_t worth = worth_components,
                                 index_t times = times_more_vectors) {
  detail::Splitter<> s(g, worth, times);
  if (!s.found) return g;
  return s.rewritten();
}

}  // namespace dfdx::graph
