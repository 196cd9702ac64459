// SPDX-License-Identifier: BSL-1.0
// Batching of a graph: appends, for nodes that were recorded for one example, the nodes that compute all examples at
// once, along a new first axis. One walk; an op says itself how its attributes change (OpInfo::batched).
//
// What does not depend on the examples is computed once. An op that has no rule runs example by example, in a region.
// A region with something of the examples in it is recorded anew as a whole.
#pragma once

#include <span>

#include <dfdx/graph/views.hpp>
#include <dfdx/ops/index_copy.hpp>
#include <dfdx/ops/matmul.hpp>
#include <dfdx/ops/onto.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/vocabulary/apply.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

namespace detail {

// (Lazy: a template, so that only programs that batch instantiate the ops it uses.)
template <int Lazy>
class Batching {
 public:
  /// The nodes `sources`, later than all regions up to now, stand for one example of `examples`, [count, S...] each.
  constexpr Batching(Graph& g, std::span<int const> sources, std::span<Sym const> examples, index_t count,
                     int regions, int last)
      : graph_(g), count_(count), known_regions_(regions) {
    auto const size = static_cast<std::size_t>(last) + 1;
    made_.resize(size);
    depends_.assign(size, 0);
    region_.assign(g.regions.size(), -1);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      depends_[sources[k]] = 1;
      made_[sources[k]] = Made{examples[k].id, 0};
    }
    int first = last + 1;
    for (int s : sources) first = s < first ? s : first;
    find_dependents(first, last);
    for (int i = first; i <= last; ++i)
      if (made_[i].id < 0 && (depends(i) || is_anew(i))) {
        if (is_exit(graph_[i])) ready_for_exits(region_behind(graph_[i]), i, last);
        make(i);
      }
  }

  /// All examples of a node, along the first axis; of one that is the same for all, repeated.
  constexpr Sym all(int id) {
    if (!batched(id)) {
      if (repeated_.size() <= static_cast<std::size_t>(id)) repeated_.resize(graph_.nodes.size());
      int const known_as = repeated_[id].id;
      Sym const one = known(id);
      Sym const r = known_as >= 0 ? Sym{&graph_, known_as} : broadcast_to(one, more(one.shape()), "vmap");
      repeated_[id].id = r.id;
      return r;
    }
    Made& m = made_[id];
    if (m.axis != 0) m = Made{swapped(Sym{&graph_, m.id}).id, 0};
    return {&graph_, m.id};
  }

 private:
  // What stands for a node: itself where id is -1; the axis of the examples, or -1 if it is one value for all.
  struct Made {
    int id = -1;
    int axis = -1;
  };

  constexpr bool depends(int id) const { return depends_[id] != 0; }
  constexpr bool batched(int id) const {
    return static_cast<std::size_t>(id) < made_.size() && made_[id].axis >= 0;
  }
  constexpr Sym known(int id) {
    bool const itself = static_cast<std::size_t>(id) >= made_.size() || made_[id].id < 0;
    return {&graph_, itself ? id : made_[id].id};
  }
  constexpr bool is_own(int region) const { return region >= known_regions_; }
  // Whether a node lies in, or leaves, a region that is recorded anew.
  constexpr bool is_anew(int id) const {
    Node const& n = graph_[id];
    int const r = is_exit(n) ? region_behind(n) : n.region;
    return is_own(r) && renewed_[r] != 0;
  }

  constexpr void find_dependents(int first, int last) {
    renewed_.assign(graph_.regions.size(), 0);
    for (bool again = true; again;) {
      again = false;
      for (int i = first; i <= last; ++i) {
        Node const& n = graph_[i];
        char& mine = depends_[i];
        for (int k = 0; k < n.op->arity; ++k)
          if (depends(n.in[k])) mine = 1;
        if (mine == 0) continue;
        for (int r = is_exit(n) ? region_behind(n) : n.region; is_own(r); r = region_at(r).parent)
          renewed_[r] = 1;
        if (n.op->code != Code::last || depends(n.in[0])) continue;
        depends_[n.in[0]] = 1;  // what a carry becomes, it is in the next iteration
        again = true;
      }
    }
    // A loop inside of one that is recorded anew reads its values.
    for (std::size_t r = 0; r < renewed_.size(); ++r)
      if (int const around = region_at(static_cast<int>(r)).parent; is_own(around))
        renewed_[r] = renewed_[r] | renewed_[around];
  }
  constexpr Region const& region_at(int r) const { return graph_.regions[r]; }

  constexpr Shape more(Shape const& s) const {
    if (s.rank == max_rank) raise("vmap: no room for another axis beside those of ", s);
    return with_first_axis(count_, s);
  }
  constexpr Meta more(Meta const& m) const { return {m.dtype, more(m.shape)}; }

  // The first two axes in the other order.
  static constexpr Sym swapped(Sym const& x) {
    int axes[max_rank];
    for (int i = 0; i < max_rank; ++i) axes[i] = i < 2 ? 1 - i : i;
    return bind<op::permute>(Attrs{{op::pack_axes(axes, x.shape().rank)}}, x);
  }

  // All of a region, and what leaves it, is there before its first exit.
  constexpr void ready_for_exits(int region, int first, int last) {
    for (int i = first; i <= last; ++i)
      if (is_exit(graph_[i]) && region_behind(graph_[i]) == region && depends(i))
        all(graph_[i].in[graph_[i].op->arity - 1]);
  }

  constexpr void make(int i) {
    Node const n = graph_[i];
    Made made{-1, depends(i) ? 0 : -1};
    switch (n.op->code) {
      case Code::carry:
        made.id = carry_in(anew(n.attrs), depends(i) ? all(n.in[0]) : known(n.in[0])).id;
        break;
      case Code::each:
        made.id = each_of(anew(n.attrs), depends(i) ? swapped(all(n.in[0])) : known(n.in[0])).id;
        break;
      case Code::last:
        made.id = last_of(anew(n.attrs), known(n.in[0]), depends(i) ? all(n.in[1]) : known(n.in[1])).id;
        break;
      case Code::stack:
        made.id = stack_of(anew(n.attrs), depends(i) ? all(n.in[0]) : known(n.in[0])).id;
        if (depends(i)) made.axis = 1;
        break;
      default: made.id = depends(i) ? batch(n).id : again(n).id;
    }
    made_[i] = made;
  }
  // The region that stands for the one in an op's attributes.
  constexpr int anew(Attrs const& a) {
    auto const r = static_cast<std::size_t>(a.i[0]);
    if (region_[r] < 0) {
      Region const original = graph_.regions[r];
      int const parent = original.parent;
      int const made =
          graph_.open(is_own(parent) ? region_[parent] : parent, original.count, original.reversed);
      graph_.regions[made].recomputed = original.recomputed;
      region_[r] = made;
    }
    return region_[r];
  }
  constexpr Sym again(Node n) {
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = known(n.in[k]).id;
    return graph_.push(n);
  }

  constexpr Sym batch(Node const& n) {
    bool first_only = batched(n.in[0]);
    for (int k = 1; k < n.op->arity; ++k) first_only = first_only && !batched(n.in[k]);
    // Rows times one matrix are rows.
    bool const is_flat_product = n.op->code == Code::matmul && n.meta.shape.rank == 2;
    if (first_only && (n.op->examples == Examples::join || is_flat_product)) return joined(n);
    if (n.op->code == Code::matmul && n.meta.shape.rank == 2 && !batched(n.in[0]))
      return matrix_times_each(n);
    if (is_op<op::take>(*n.op)) return take(n);
    if (is_op<op::rows_add>(*n.op)) return rows_add(n);
    if (is_op<op::rows_onto>(*n.op)) return rows_onto(n);
    if (is_op<op::index_copy>(*n.op) && !batched(n.in[1])) return index_copy(n);
    if (n.op->examples == Examples::one_by_one || n.op->examples == Examples::join) return one_by_one(n);
    Node m = n;
    m.attrs = moved_on(n.op->examples, n.attrs);
    m.meta = more(n.meta);
    for (int k = 0; k < n.op->arity; ++k) m.in[k] = all(n.in[k]).id;
    return graph_.push(m);
  }

  // Attributes for operands with one more axis in front.
  static constexpr Attrs moved_on(Examples how, Attrs a) {
    if (how == Examples::axis) ++a.i[0];
    if (how == Examples::axes) a.i[0] <<= 1;
    if (how == Examples::order) {
      int axes[max_rank] = {};
      for (int i = 1; i < max_rank; ++i) axes[i] = op::axis_of(a.i[0], i - 1) + 1;
      a.i[0] = op::pack_axes(axes, max_rank);
    }
    return a;
  }

  // One matrix times many is the transpose of their rows times its transpose: (a x)' = x' a'.
  constexpr Sym matrix_times_each(Node const& n) {
    auto const turned = [](Sym const& x) {
      int axes[max_rank] = {};
      int const r = x.shape().rank;
      for (int i = 0; i < r; ++i) axes[i] = i + 2 < r ? i : 2 * r - 3 - i;
      return bind<op::permute>(Attrs{{op::pack_axes(axes, r)}}, x);
    };
    Sym const rows = turned(all(n.in[1])), a = turned(known(n.in[0]));
    Shape const s = rows.shape();
    Sym const flat =
        bind_as<op::reshape>(Meta{rows.dtype(), make_shape(extent::mul(s[0], s[1]), s[2])}, Attrs{}, rows);
    Sym const product = bind<op::matmul>(Attrs{}, flat, a);
    Shape const to = make_shape(s[0], s[1], a.shape()[1]);
    return turned(bind_as<op::reshape>(Meta{product.dtype(), to}, Attrs{}, product));
  }

  constexpr Sym joined(Node const& n) {
    auto const fold = [&](Meta m) {
      m.shape[0] = extent::mul(count_, m.shape[0]);
      return m;
    };
    Node m = n;
    m.meta = fold(n.meta);
    m.in[0] = bind_as<op::reshape>(fold(graph_[n.in[0]].meta), Attrs{}, all(n.in[0])).id;
    for (int k = 1; k < n.op->arity; ++k) m.in[k] = known(n.in[k]).id;
    return bind_as<op::reshape>(more(n.meta), Attrs{}, graph_.push(m));
  }

  // Rows of one table for all examples are rows; where each has its own, they are elements along the second axis.
  constexpr Sym take(Node const& n) {
    Shape const table = graph_[n.in[0]].meta.shape;
    if (!batched(n.in[0])) return bind_as<op::take>(more(n.meta), n.attrs, known(n.in[0]), all(n.in[1]));
    Shape rows = more(table);
    rows[1] = graph_[n.in[1]].meta.shape.numel();
    Sym const found = bind<op::gather>(of_rows(n), all(n.in[0]), for_rows(all(n.in[1]), rows));
    return bind_as<op::reshape>(more(n.meta), Attrs{}, found);
  }
  constexpr Sym rows_add(Node const& n) {
    Meta rows = more(n.meta);
    rows.shape[1] = graph_[n.in[1]].meta.shape.numel();
    Sym const x = bind_as<op::reshape>(rows, Attrs{}, all(n.in[0]));
    return bind_as<op::scatter>(more(n.meta), of_rows(n), x, for_rows(all(n.in[1]), rows.shape));
  }
  constexpr Sym rows_onto(Node const& n) {
    Meta rows = more(n.meta);
    rows.shape[1] = graph_[n.in[1]].meta.shape.numel();
    Sym const src = bind_as<op::reshape>(rows, Attrs{}, all(n.in[2]));
    return bind<op::scatter_onto>(of_rows(n), all(n.in[0]), for_rows(all(n.in[1]), rows.shape), src);
  }
  constexpr Sym index_copy(Node const& n) {
    return bind_as<op::index_copy>(more(n.meta), moved_on(Examples::axis, n.attrs), all(n.in[0]),
                                   known(n.in[1]), all(n.in[2]));
  }
  static constexpr Attrs of_rows(Node const& n) {
    return Attrs{{1, 0, n.attrs.i[2] != 0 ? n.attrs.i[2] : static_cast<index_t>(op::Caller::take)}};
  }
  // The index of a row, repeated for its elements.
  static constexpr Sym for_rows(Sym const& index, Shape const& rows) {
    Shape narrow = rows;
    for (int i = 2; i < narrow.rank; ++i) narrow[i] = 1;
    return broadcast_to(bind_as<op::reshape>(Meta{index.dtype(), narrow}, Attrs{}, index), rows, "vmap");
  }

  constexpr Sym one_by_one(Node n) {
    if (count_ < 0) raise("vmap: ", n.op->name, ": a mapped axis of static extent required");
    bool is_batched[max_arity] = {};
    int around = graph_.inside;
    for (int k = 0; k < n.op->arity; ++k) {
      is_batched[k] = batched(n.in[k]);
      n.in[k] = (is_batched[k] ? all(n.in[k]) : known(n.in[k])).id;
      around = graph_[n.in[k]].region > around ? graph_[n.in[k]].region : around;
    }
    int const r = graph_.open(around, count_, false);
    for (int k = 0; k < n.op->arity; ++k)
      if (is_batched[k]) n.in[k] = each_of(r, Sym{&graph_, n.in[k]}).id;
    return stack_of(r, graph_.push(n));
  }

  Graph& graph_;
  index_t count_;
  int known_regions_;
  Vec<Made> made_, repeated_;
  Vec<char> depends_, renewed_;
  Vec<int> region_;
};

}  // namespace detail

/// Batch - nodes recorded for one example, and then computed for all. `one(xs)` stands for one example of xs; what is
/// recorded from there on may use it; `all(ends)` are those values for every example.
///
/// Math      all(f(one(x)))[b] = f(x[b])
/// Shapes    xs: [count, S...] -> one: [S...]; end: [R...] -> all: [count, R...]
/// Errors    "vmap: solve: a mapped axis of static extent required", of ops that run example by example
/// Source    jax.vmap
template <int Lazy = 0>
class Batch {
 public:
  constexpr Batch(Graph& g, index_t count)
      : graph_(g), count_(count), regions_(static_cast<int>(g.regions.size())) {}

  constexpr Sym one(Sym const& xs) {
    Meta m{xs.dtype(), {}};
    for (int i = 1; i < xs.shape().rank; ++i) m.shape.push_back(xs.shape()[i]);
    Sym const s = graph_.push(Node{&info<op::constant>, Attrs{}, m, {}});
    sources_.push_back(s.id);
    examples_.push_back(xs);
    return s;
  }
  constexpr Vec<Sym> all(std::span<Sym const> ends) {
    detail::Batching<Lazy> batching(graph_, sources_, examples_, count_, regions_, graph_.size() - 1);
    Vec<Sym> r;
    for (Sym const& e : ends) r.push_back(batching.all(e.id));
    return r;
  }

 private:
  Graph& graph_;
  index_t count_;
  int regions_;
  Vec<int> sources_;
  Vec<Sym> examples_;
};

}  // namespace dfdx::graph
