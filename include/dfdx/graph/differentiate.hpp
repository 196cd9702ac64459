// SPDX-License-Identifier: BSL-1.0
// Differentiation of a graph: reverse mode appends the cotangent nodes of some values, forward mode the tangent
// nodes. One walk each; the rules are the ops' own. Only nodes on a path between the two ends are visited.
//
// A region is differentiated as a whole, into a new region: the one of reverse mode goes through the iterations
// backwards, and what it needs of the first one's values is stacked there and read here, position by position. While it
// is recorded the graph is inside of it, for rules that record loops or differentiate.
#pragma once

#include <span>
#include <utility>

#include <dfdx/graph/mirror.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

namespace detail {

// Which of the nodes up to `last` depend on one of `sources` through floating values.
constexpr Vec<char> dependents(Graph const& g, std::span<int const> sources, int last) {
  Vec<char> active(static_cast<std::size_t>(last) + 1, 0);
  for (int s : sources)
    if (s <= last) active[s] = 1;
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i <= last; ++i) {
      Node const& n = g[i];
      if (!is_floating(n.meta.dtype)) continue;
      for (int k = 0; k < n.op->arity; ++k)
        if (active[n.in[k]] != 0) active[i] = 1;
      // What a carry becomes, it is in the next iteration.
      if (n.op->code != Code::last || active[i] == 0) continue;
      char& carry = active[n.in[0]];
      again = again || carry == 0;
      carry = 1;
    }
  }
  return active;
}

// The last node that says what a carry up to `last` becomes, or `last` itself.
constexpr int with_carries(Graph const& g, int last) {
  if (g.regions.empty()) return last;
  for (int i = last + 1; i < g.size(); ++i)
    if (g[i].op->code == Code::last && g[i].in[0] <= last) last = i;
  return last;
}

constexpr Sym plus(Sym const& a, Sym const& b) { return a ? bind<op::add>(Attrs{}, a, b) : b; }

// What both modes know of the nodes up to `last`: whether they matter, and what flows at them.
class Differentiation : protected Mirror {
 protected:
  constexpr Differentiation(Graph& g, std::span<int const> sources, int last)
      : Mirror(g, last),
        active_(dependents(g, sources, last)),
        flow_(active_.size()),
        given_(active_.size(), 0),
        region_(g.inside) {}

  constexpr bool active(int id) const { return active_[id] != 0; }
  // Whether a node passes on what flows at it: it lies between the two ends.
  constexpr bool flows_through(int id) const { return active(id) && given_[id] == 0; }
  constexpr Sym& flow(int id) { return flow_[id]; }
  // What flows at a node, zeros if nothing does.
  constexpr Sym flow_or_zero(int id) { return flow(id) ? flow(id) : full_as(symbol(id), graph_[id].meta, 0); }
  constexpr void add_flow(int id, Sym const& s) { flow(id) = plus(flow(id), s); }

  // The node as its op's rules see it, in the region where they are applied.
  struct Use {
    Node node;
    Sym x[max_arity];
    constexpr Use(Differentiation& d, int id) : node(d.graph_[id]) {
      for (int k = 0; k < node.op->arity; ++k) x[k] = d.value(node.in[k]);
    }
  };

  // Whether a node is of the region that is being differentiated. Where that began, in the body of a loop if one is
  // being recorded, the values outside of it are as good as its own.
  constexpr bool is_here(int id) const {
    int const r = graph_[id].region;
    return r == region_ || (region_ == graph_.inside && graph_.encloses(r, region_));
  }
  // What a walk does at a node: a region is differentiated as a whole at the first of its exits.
  constexpr bool is_loop(int id) const {
    return is_exit(graph_[id]) && is_here(id) && lowest_exit(region_behind(graph_[id])) == id;
  }
  constexpr bool is_step(int id) const { return is_here(id) && flows_through(id) && !is_exit(graph_[id]); }

  Vec<char> active_;
  Vec<Sym> flow_;
  Vec<char> given_;
  int region_;
};

class Reverse : Differentiation {
 public:
  constexpr Reverse(Graph& g, std::span<Sym const> ends, std::span<Sym const> cts, std::span<int const> wrt,
                    int last)
      : Differentiation(g, wrt, last) {
    for (std::size_t k = 0; k < ends.size(); ++k) add_flow(ends[k].id, cts[k]);
    for (int w : wrt) given_[w] = 1;
    for (int i = last; i >= 0; --i) visit(i);
  }
  constexpr Sym cotangent(int id) { return flow_or_zero(id); }

 private:
  // A cotangent for a value outside of the region in which it arises, once for each iteration.
  struct Arrival {
    int id;
    Sym ct;
  };

  constexpr void visit(int i) {
    if (is_loop(i)) reverse(region_behind(graph_[i]));
    else if (is_step(i)) step(i);
  }

  constexpr void step(int i) {
    Sym const ct = flow(i);
    if (!ct) return;
    Use const use(*this, i);
    Site<Sym> const site{use.x, value(i), use.node.attrs};
    for (int k = 0; k < use.node.op->arity; ++k) {
      int const operand = use.node.in[k];
      if (!active(operand)) continue;
      if (Sym const d = use.node.op->vjp(ct, site, k)) arrive(operand, d);
    }
  }

  constexpr void arrive(int id, Sym ct) {
    if (!active(id)) return;
    // What was repeated outside for the sake of a loop is summed inside of it: that is smaller.
    while (!is_here(id) && flows_through(id) && is_rearranged(graph_[id].op->code)) {
      Use const use(*this, id);
      ct = use.node.op->vjp(ct, Site<Sym>{use.x, symbol(id), use.node.attrs}, 0);
      id = use.node.in[0];
      if (!active(id)) return;
    }
    if (is_here(id)) return add_flow(id, ct);
    for (Arrival& a : arrivals_)
      if (a.id == id) return static_cast<void>(a.ct = plus(a.ct, ct));
    arrivals_.push_back(Arrival{id, ct});
  }

  static constexpr bool is_rearranged(Code c) {
    return c == Code::reshape || c == Code::permute || c == Code::expand;
  }

  constexpr void reverse(int r) {
    Region const region = graph_.regions[r];
    Exits const exits = exits_of(r);
    bool any = false;
    for (int e : exits) any = any || (flows_through(e) && flow(e));
    if (!any) return;
    int const outer = region_, back = open_mirror(r, !region.reversed);
    Vec<Arrival> outer_arrivals;
    std::swap(outer_arrivals, arrivals_);
    region_ = r;
    int const around = std::exchange(graph_.inside, back);

    Vec<int> carries;
    Vec<Sym> carried;
    for (int e : exits) {
      Node const n = graph_[e];
      if (!flows_through(e)) continue;
      if (n.op->code == Code::stack) {
        if (flow(e)) arrive(n.in[0], each_of(back, flow(e)));
        continue;
      }
      Sym const c = carry_in(back, flow_or_zero(e));
      carries.push_back(n.in[0]);
      carried.push_back(c);
      arrive(n.in[1], c);
    }
    Vec<int> slices;
    for (int i = exits[0] - 1; i >= region.first; --i) {
      if (graph_[i].region == r && graph_[i].op->code == Code::each && flow(i)) slices.push_back(i);
      else if (graph_[i].op->code != Code::carry || graph_[i].region != r) visit(i);
    }

    // Sums over the iterations are carries too, unless there is but one. The exits of a region come one after another.
    Vec<Sym> next, out;
    for (int c : carries) next.push_back(flow_or_zero(c));
    for (Arrival const& a : arrivals_) {
      if (region.count == 1) continue;
      Sym const sum = carry_in(back, full_as(symbol(a.id), graph_[a.id].meta, 0));
      carried.push_back(sum);
      next.push_back(bind<op::add>(Attrs{}, sum, a.ct));
    }
    for (std::size_t k = 0; k < carried.size(); ++k) out.push_back(last_of(back, carried[k], next[k]));
    if (region.count == 1)
      for (Arrival const& a : arrivals_) out.push_back(stack_of(back, a.ct));
    for (int s : slices) out.push_back(stack_of(back, flow(s)));

    std::swap(outer_arrivals, arrivals_);
    region_ = outer;
    graph_.inside = around;
    close_mirror(r);
    std::size_t k = 0;
    for (int c : carries) arrive(graph_[c].in[0], out[k++]);
    for (Arrival const& a : outer_arrivals) arrive(a.id, reshape_to(out[k++], graph_[a.id].meta.shape));
    for (int s : slices) arrive(graph_[s].in[0], out[k++]);
  }

  Vec<Arrival> arrivals_;
};

class Forward : Differentiation {
 public:
  constexpr Forward(Graph& g, std::span<int const> wrt, std::span<Sym const> tangents, int last)
      : Differentiation(g, wrt, last) {
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      if (wrt[k] > last) continue;
      flow(wrt[k]) = tangents[k];
      given_[wrt[k]] = 1;
    }
    for (int i = 0; i <= last; ++i) visit(i);
  }
  constexpr Sym tangent(int id) { return flow_or_zero(id); }

 private:
  constexpr void visit(int i) {
    if (is_loop(i)) advance(region_behind(graph_[i]));
    else if (is_step(i)) step(i);
  }

  constexpr void step(int i) {
    Use const use(*this, i);
    Sym tangents[max_arity];
    for (int k = 0; k < use.node.op->arity; ++k) tangents[k] = flow(use.node.in[k]);
    if (!use.node.op->has_jvp) raise(use.node.op->name, ": has no rule for forward mode");
    Site<Sym> const site{use.x, value(i), use.node.attrs, tangents};
    for (int k = 0; k < use.node.op->arity; ++k) {
      if (!tangents[k]) continue;
      if (Sym const d = use.node.op->jvp(tangents[k], site, k)) add_flow(i, d);
    }
  }

  constexpr void advance(int r) {
    Region const region = graph_.regions[r];
    Exits const exits = exits_of(r);
    bool any = false;
    for (int e : exits) any = any || flows_through(e);
    if (!any) return;
    int const outer = region_, beside = open_mirror(r, region.reversed);
    region_ = r;
    int const around = std::exchange(graph_.inside, beside);
    for (int i = region.first; i < exits[0]; ++i) {
      Node const n = graph_[i];
      if (n.region != r || (n.op->code != Code::carry && n.op->code != Code::each)) visit(i);
      else if (!flows_through(i)) continue;
      else if (n.op->code == Code::carry) flow(i) = carry_in(beside, flow_or_zero(n.in[0]));
      else if (flow(n.in[0])) flow(i) = each_of(beside, flow(n.in[0]));
    }
    region_ = outer;
    graph_.inside = around;
    for (int e : exits) {
      Node const n = graph_[e];
      if (!flows_through(e)) continue;
      if (n.op->code == Code::last) flow(e) = last_of(beside, flow(n.in[0]), flow_or_zero(n.in[1]));
      else if (flow(n.in[0])) flow(e) = stack_of(beside, flow(n.in[0]));
    }
    close_mirror(r);
  }
};

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
  last = detail::with_carries(g, last);
  detail::Reverse reverse(g, ends, cts, wrt, last);
  Vec<Sym> result;
  for (int w : wrt) result.push_back(reverse.cotangent(w));
  return result;
}

/// can_push_forward - whether forward mode has rules for all that depends on the nodes `wrt` and comes before `end`.
constexpr bool can_push_forward(Graph const& g, std::span<int const> wrt, Sym const& end) {
  Vec<char> const active = detail::dependents(g, wrt, detail::with_carries(g, end.id));
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i] != 0 && g[static_cast<int>(i)].op->arity > 0 && !g[static_cast<int>(i)].op->has_jvp)
      return false;
  return true;
}

/// push_forward - appends the nodes of forward mode: given tangents of the nodes `wrt`, those of `ends`.
///
/// Math      tangent_y = sum_k partial_k tangent_{x_k}
/// Source    Wengert 1964
constexpr Vec<Sym> push_forward(Graph& g, std::span<int const> wrt, std::span<Sym const> tangents,
                                std::span<Sym const> ends) {
  int last = -1;
  for (Sym const& e : ends) last = e.id > last ? e.id : last;
  last = detail::with_carries(g, last);
  detail::Forward forward(g, wrt, tangents, last);
  Vec<Sym> result;
  for (Sym const& e : ends) result.push_back(forward.tangent(e.id));
  return result;
}

}  // namespace dfdx::graph
