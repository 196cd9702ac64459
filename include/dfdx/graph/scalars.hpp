// SPDX-License-Identifier: BSL-1.0
// Scalars: in a loop whose values are a few numbers each, every value becomes that many numbers, and what rearranges
// them goes away. Such a loop is one kernel (graph/roll.hpp) with its numbers in registers; a kernel for each vector of
// two or four would cost more than its arithmetic. So filters, equations of motion and their gradients run as loops
// that somebody would write by hand.
#pragma once

#include <dfdx/graph/fuse.hpp>
#include <dfdx/graph/simplify.hpp>
#include <dfdx/ops/binary.hpp>

namespace dfdx::graph {

/// Numbers that an iteration may read, compute and leave behind: what one kernel takes (graph/roll.hpp).
inline constexpr index_t most_numbers = 400;
/// The arithmetic, in additions, that costs as much as calling a kernel.
inline constexpr index_t additions_of_a_call = 32;
/// That of a costly op (OpInfo::cost) for a number by itself.
inline constexpr index_t additions_of_a_cost = 3;

namespace detail {

/// Scalarizer - writes the values of one region as numbers. (A template: files without programs do not compile it.)
template <int = 0>
class Scalarizer {
  Graph const& g_;
  int region_;

 public:
  constexpr Scalarizer(Graph const& g, int region, index_t call)
      : g_(g), region_(region), found(weigh(call)), r_(found ? g.size() : 0) {}

  /// Whether that can be done, and is worth it.
  bool const found;

  constexpr Graph rewritten() {
    r_.graph.take_frame(g_);
    to_.assign(g_.nodes.size(), -1);
    first_.assign(g_.nodes.size(), -1);
    bool left = false;
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      if (!left && is_exit(n) && region_behind(n) == region_) left = true, gather();
      if (is_computed(n)) compute(id);
      else if (n.region != region_ || is_entry(n)) keep(id);
    }
    for (int o : g_.outputs) r_.graph.outputs.push_back(to_[o]);
    return without_dead(r_.graph);
  }

 private:
  static constexpr bool is_entry(Node const& n) {
    return n.op->code == Code::carry || n.op->code == Code::each;
  }
  static constexpr bool is_padding(Node const& n) { return is_op<op::pad>(*n.op); }
  static constexpr bool is_concat(Node const& n) { return is_op<op::concat>(*n.op); }
  static constexpr bool only_moves(Node const& n) {
    Code const c = n.op->code;
    bool const is_view = c == Code::reshape || c == Code::permute || c == Code::expand || c == Code::slice ||
                         c == Code::windows;
    return is_view || is_padding(n) || is_concat(n);
  }
  // Of the region, with arithmetic.
  constexpr bool is_computed(Node const& n) const {
    return n.region == region_ && !is_entry(n) && !only_moves(n);
  }
  static constexpr bool is_sum(Node const& n) {
    return n.op->code == Code::reduce_sum || n.op->code == Code::matmul;
  }
  static constexpr index_t terms(Graph const& g, Node const& n) {
    Shape const& x = g[n.in[0]].meta.shape;
    if (n.op->code == Code::matmul) return x[x.rank - 1];
    return n.meta.shape.numel() == 0 ? 0 : x.numel() / n.meta.shape.numel();
  }

  // Whether what reads a rearrangement needs a kernel apart from what computes it.
  constexpr bool separates(Node const& n, Vec<int>& separated) const {
    if (is_padding(n) || is_concat(n)) return true;
    if (n.op->code == Code::reshape || n.op->code == Code::expand) return false;
    int const of = under_parts(g_, n.in[0]);
    if (!is_computed(g_[of]) || g_[of].op->code == Code::matmul) return false;
    return ++separated[of] == 1;
  }

  constexpr bool weigh(index_t call) const {
    Region const& region = g_.regions[region_];
    if (region.count < 2) return false;
    for (Region const& other : g_.regions)
      if (other.parent == region_) return false;
    index_t numbers = 0, additions = 0, calls = 1;
    bool any = false;
    Vec<char> read(g_.nodes.size(), 0);
    Vec<int> separated(g_.nodes.size(), 0);
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      bool const leaves = is_exit(n) && region_behind(n) == region_;
      if (n.region != region_ && !leaves) continue;
      Meta const& made = leaves ? g_[n.in[n.op->arity - 1]].meta : n.meta;
      if (!made.shape.is_static() || size_of(made.dtype) == 2) return false;
      index_t const size = made.shape.numel();
      if (size == 0 || size > most_numbers) return false;
      if (leaves || is_entry(n)) {
        numbers += size;
      } else if (only_moves(n)) {
        any = any || is_padding(n) || is_concat(n);
        calls += separates(n, separated) ? 1 : 0;
      } else {
        index_t const each = is_sum(n) ? 2 * terms(g_, n) : 1;
        bool const known =
            n.op->elementwise || n.op->code == Code::cast || (is_sum(n) && is_floating(made.dtype));
        if (!known || each > most_numbers) return false;
        any = any || size > 1 || is_sum(n);
        calls += is_sum(n) ? 2 : 0;
        numbers += size * each;
        bool const is_costly =
            n.op->elementwise && n.op->cost > 2;  // a vector of them takes no longer than one
        additions += is_costly ? (size - 1) * n.op->cost * additions_of_a_cost : size * each;
      }
      for (int k = 0; k < n.op->arity && !leaves && !is_entry(n); ++k) {
        Node const& x = g_[n.in[k]];
        if (x.region == region_ || is_generated(x) || read[n.in[k]] != 0) continue;
        if (!x.meta.shape.is_static() || size_of(x.meta.dtype) == 2 || x.meta.shape.numel() > most_numbers)
          return false;
        read[n.in[k]] = 1;
        numbers += x.meta.shape.numel();
      }
      if (numbers > most_numbers) return false;
    }
    return any && additions <= calls * call;
  }

  constexpr void keep(int id) {
    Node n = g_[id];
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = to_[n.in[k]];
    to_[id] = r_.add(n);
  }

  constexpr void compute(int id) {
    Node const& n = g_[id];
    first_[id] = static_cast<int>(numbers_.size());
    for (index_t i = 0; i < n.meta.shape.numel(); ++i)
      numbers_.push_back(is_sum(n) ? sum(n, i) : mapped(n, i));
  }
  constexpr int both(OpInfo const& op, DType dtype, int x, int y) {
    return r_.add(Node{&op, Attrs{}, Meta{dtype, {}}, {x, y}});
  }
  constexpr int mapped(Node const& n, index_t i) {
    Node one{n.op, n.attrs, Meta{n.meta.dtype, {}}};
    for (int k = 0; k < n.op->arity; ++k) one.in[k] = element(n.in[k], i);
    return r_.add(one);
  }
  constexpr int sum(Node const& n, index_t i) {
    Shape const& x = g_[n.in[0]].meta.shape;
    int total = -1;
    auto const add = [&](int term) {
      total = total < 0 ? term : both(info<op::add>, n.meta.dtype, total, term);
    };
    if (n.op->code == Code::matmul) {
      Shape const& y = g_[n.in[1]].meta.shape;
      index_t const columns = y[y.rank - 1], inner = x[x.rank - 1];
      index_t const row = i / columns, batch = row / x[x.rank - 2];
      for (index_t k = 0; k < inner; ++k)
        add(both(info<op::mul>, n.meta.dtype, element(n.in[0], row * inner + k),
                 element(n.in[1], (batch * inner + k) * columns + i % columns)));
      return total;
    }
    for (index_t at = 0; at < x.numel(); ++at) {
      index_t rest = at, place = 0, step = 1;  // of the result, whose summed axes have extent 1
      for (int a = x.rank - 1; a >= 0; --a) {
        if (n.meta.shape[a] != 1) place += rest % x[a] * step, step *= x[a];
        rest /= x[a];
      }
      if (place == i) add(element(n.in[0], at));
    }
    return total;
  }

  /// The number at place i, in row-major order, of a value: found behind what only moves it.
  constexpr int element(int id, index_t i) {
    for (;;) {
      Node const& n = g_[id];
      bool const here = n.region == region_;
      if (here && is_computed(n)) return numbers_[first_[id] + i];
      if (!only_moves(n) || (!here && !is_part(n) && n.op->code != Code::expand)) return read(id, i);
      if (n.op->code == Code::reshape) {
        id = n.in[0];
        continue;
      }
      Shape const& to = n.meta.shape;
      index_t at[max_rank] = {}, rest = i;
      for (int a = to.rank - 1; a >= 0; --a) at[a] = rest % to[a], rest /= to[a];
      int from = n.in[0];
      if (n.op->code == Code::permute) {
        index_t old[max_rank] = {};
        for (int a = 0; a < to.rank; ++a) old[op::axis_of(n.attrs.i[0], a)] = at[a];
        for (int a = 0; a < to.rank; ++a) at[a] = old[a];
      } else if (n.op->code == Code::expand) {
        for (int a = 0; a < to.rank; ++a)
          if (g_[from].meta.shape[a] == 1) at[a] = 0;
      } else if (n.op->code == Code::slice) {
        int const axis = op::slice::axis(n.attrs);
        at[axis] = n.attrs.i[1] + op::slice::step(n.attrs) * at[axis];
      } else if (n.op->code == Code::windows) {
        int const axis = op::windows::axis(n.attrs);
        at[axis] = op::windows::step(n.attrs) * at[axis] + at[to.rank - 1];
      } else if (is_padding(n)) {
        int const axis = op::pad::axis(n.attrs);
        index_t const step = op::pad::gap(n.attrs) + 1, behind = at[axis] - n.attrs.i[1];
        bool const inside = behind >= 0 && behind % step == 0 && behind / step < g_[from].meta.shape[axis];
        if (!inside)
          return r_.add(Node{&info<op::constant>, Attrs{{}, {n.attrs.f[0]}}, Meta{n.meta.dtype, {}}, {}});
        at[axis] = behind / step;
      } else {
        auto const axis = static_cast<int>(n.attrs.i[0]);
        index_t const first = g_[from].meta.shape[axis];
        if (at[axis] >= first) at[axis] -= first, from = n.in[1];
      }
      id = from;
      i = 0;
      for (int a = 0; a < g_[id].meta.shape.rank; ++a) i = i * g_[id].meta.shape[a] + at[a];
    }
  }
  // A number of a value that lies in memory.
  constexpr int read(int id, index_t i) {
    int at = to_[id];
    Meta part = g_[id].meta;
    for (int a = part.shape.rank - 1; a >= 0; --a) {
      index_t const n = part.shape[a];
      part.shape[a] = 1;
      if (n != 1) at = r_.add(Node{&info<op::slice>, Attrs{{a + 16, i % n, 1}}, part, {at}});
      i /= n;
    }
    return r_.add(Node{&info<op::reshape>, Attrs{}, Meta{part.dtype, {}}, {at}});
  }

  // What the region leaves behind lies in memory again. Made before the first of its exits: these come one after
  // another.
  constexpr void gather() {
    for (Node const& n : g_.nodes) {
      if (!is_exit(n) || region_behind(n) != region_) continue;
      int const id = n.in[n.op->arity - 1];
      if (to_[id] >= 0) continue;
      index_t at = 0;
      to_[id] = joined(id, 0, at);
    }
  }
  // Axis by axis, so that each part is one piece of the whole (graph/joins.hpp).
  constexpr int joined(int id, int axis, index_t& at) {
    Meta part = g_[id].meta;
    for (int a = 0; a < axis; ++a) part.shape[a] = 1;
    if (axis == part.shape.rank) {
      int const one = element(id, at++);
      return axis == 0 ? one : r_.add(Node{&info<op::reshape>, Attrs{}, part, {own(one)}});
    }
    index_t const n = part.shape[axis];
    int all = -1;
    for (index_t i = 0; i < n; ++i) {
      int const next = joined(id, axis + 1, at);
      part.shape[axis] = i + 1;
      all = i == 0 ? next : r_.add(Node{&info<op::concat>, Attrs{{axis}}, part, {all, next}});
    }
    return all;
  }

  // A number computed in the region that has no other place yet: it, or a copy. Copies are told apart by a number, so
  // that equal ones stay two.
  constexpr int own(int x) {
    Node const& n = r_.graph[x];
    bool fresh = n.region == region_ && (n.op->elementwise || n.op->code == Code::cast);
    for (int y : placed_) fresh = fresh && y != x;
    if (fresh) return placed_.push_back(x), x;
    int const copy = r_.add(Node{&info<op::copy>, Attrs{{0, ++copies_}}, r_.graph[x].meta, {x}});
    r_.graph[copy].region = region_;
    return copy;
  }

  Rewriter r_;
  index_t copies_ = 0;
  Vec<int> to_, placed_;
  Vec<int> numbers_, first_;  // those of all values, and where each value's begin
};

}  // namespace detail

/// scalarize - an equal graph, of a simplified one, whose small loops compute numbers; `call` is what calling a kernel
/// costs, in additions.
template <int = 0>
constexpr Graph scalarize(Graph g, index_t call = additions_of_a_call) {
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    detail::Scalarizer<> s(g, static_cast<int>(r), call);
    if (!s.found) continue;
    Graph next = s.rewritten();
    g = std::move(next);
  }
  return g;
}

}  // namespace dfdx::graph
