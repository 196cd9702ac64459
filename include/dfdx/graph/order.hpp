// SPDX-License-Identifier: BSL-1.0
// The order in which a plan runs the groups of a graph, and which of them may write their results where an input
// lies.
#pragma once

#include <dfdx/graph/epilogues.hpp>
#include <dfdx/graph/homes.hpp>

namespace dfdx::graph {

namespace detail {

/// Order - sorts groups by level. `alias` says which input's memory a node takes over (-1 for none); a node whose
/// group cannot write there in place loses its alias and is `moved` there at the end. Products run with their
/// epilogues.
class Order {
 public:
  constexpr Order(Graph const& g, Fusion const& f, Vec<int>& alias, Epilogues const& epilogues,
                  Homes const& homes)
      : g_(g),
        nodes_(g.nodes.data()),
        access_(f.access.data()),
        place_(f.place.data()),
        groups_(f.groups.data()),
        f_(f),
        alias_(alias),
        epilogues_(epilogues),
        homes_(homes) {
    sort_groups();
    order_groups();
  }

  /// Those outside of regions, in their order; and all of them, by level.
  Vec<int> groups, by_level;
  Vec<int> moved, moved_to;

 private:
  constexpr int group_of(int id) const { return place_[id].group; }

  constexpr Vec<int> readers_in_region(int k) const {
    int const r = f_.groups[k].behind;
    Vec<int> found;
    for (int id = 0; id < g_.size(); ++id)
      if (nodes_[id].region >= 0 && g_.encloses(r, nodes_[id].region)) found.push_back(id);
    return found;
  }

  // A node of a group reads an input of the program; `first` of its group.
  struct Read {
    int input, node;
    bool in_place, first;
  };
  // What each group outside of regions reads, group after group.
  constexpr void find_reads() {
    reads_begin_.reserve(f_.groups.size() + 1);
    for (std::size_t k = 0, n = f_.groups.size(); k < n; ++k) {
      reads_begin_.push_back(static_cast<int>(reads_.size()));
      if (epilogues_.joined[k] == 0 && groups_[k].region < 0) add_reads(static_cast<int>(k));
    }
    reads_begin_.push_back(static_cast<int>(reads_.size()));
  }
  // All that group k reads, or all groups of the region that it is.
  constexpr void add_reads(int k) {
    std::size_t const begin = reads_.size();
    if (groups_[k].kind == Group::Kind::region) {
      for (int id : readers_in_region(k)) add_reads(k, id, begin);
      return;
    }
    for (int id : groups_[k].members) add_reads(k, id, begin);
    if (int const p = epilogues_.product[k]; p >= 0) add_reads(k, groups_[p].members[0], begin);
  }
  // What a node of group k reads; the reads of the group are those from `begin` on.
  constexpr void add_reads(int k, int id, std::size_t begin) {
    Node const& n = nodes_[id];
    for (int i = 0; i < n.op->arity; ++i) {
      Access const& a = access_[n.in[i]];
      Node const& root = nodes_[a.root];
      if (root.op->code != Code::input) continue;
      auto const input = static_cast<int>(root.attrs.i[0]);
      bool first = true;
      for (std::size_t r = begin; r < reads_.size(); ++r) first = first && reads_[r].input != input;
      // Written over safely if each element is read where it will be written.
      bool const in_place = a.offset == 0 && a.turn < 0 && group_of(id) == k && goes_in_order(id) &&
                            is_contiguous(n.meta.shape, a.strides);
      reads_.push_back(Read{input, id, in_place, first});
    }
  }
  template <class F>
  constexpr void for_inputs_read(int k, F f) const {
    int const begin = reads_begin_[k], end = reads_begin_[k + 1];
    for (int r = begin; r < end; ++r) f(reads_[r]);
  }

  // Whether a node walks its own axes in the order of the group's; beside it a transposed value may do otherwise.
  constexpr bool goes_in_order(int id) const {
    Place const& p = place_[id];
    for (int a = 0; a < max_rank; ++a)
      if (p.axis[a] >= 0 && p.axis[a] != a) return false;
    return true;
  }

  // Stable order by level. In a loop, what waits for nothing there (values computed again for a backward pass) comes
  // right before its first reader, so that its results are not kept for longer than they must.
  constexpr void sort_groups() {
    int levels = 0;
    for (Group const& x : f_.groups) levels = x.level + 1 > levels ? x.level + 1 : levels;
    Vec<int> start(static_cast<std::size_t>(levels) + 1, 0);
    by_level.assign(f_.groups.size(), 0);
    for (Group const& x : f_.groups) ++start[x.level + 1];
    for (std::size_t l = 1; l < start.size(); ++l) start[l] += start[l - 1];
    for (std::size_t k = 0, n = f_.groups.size(); k < n; ++k)
      by_level[start[groups_[k].level]++] = static_cast<int>(k);
    if (!g_.regions.empty()) delay();
  }

  constexpr void delay() {
    auto const n = static_cast<int>(f_.groups.size());
    Vec<int> runs_in, at(f_.groups.size(), 0);  // a product runs in its epilogue
    for (int k = 0; k < n; ++k) runs_in.push_back(k);
    for (int k = 0; k < n; ++k) {
      if (epilogues_.product[k] >= 0) runs_in[epilogues_.product[k]] = k;
      at[by_level[k]] = k;
    }
    Vec<int> due(f_.groups.size(), n);  // where the first reader of a group stands; -1: in another loop
    for (int id = 0; id < g_.size(); ++id) {
      int const reader = group_of(id) < 0 ? -1 : runs_in[group_of(id)];
      for (int i = 0; i < nodes_[id].op->arity; ++i) {
        int const made_by = group_of(access_[nodes_[id].in[i]].root);
        if (made_by < 0 || made_by == reader || (is_view(nodes_[id]) && access_[id].root != id)) continue;
        bool const beside = reader >= 0 && groups_[reader].region == groups_[made_by].region;
        int const when = beside && !is_exit(nodes_[id]) ? at[reader] : -1;
        due[made_by] = when < due[made_by] ? when : due[made_by];
      }
    }
    auto const is_late = [&](int k) {
      Group const& x = groups_[k];
      return x.region >= 0 && x.level == 0 && x.kind == Group::Kind::loop && epilogues_.joined[k] == 0 &&
             due[k] >= 0 && due[k] < n;
    };
    // For each place the late groups due there.
    Vec<int> first(f_.groups.size(), -1), next(f_.groups.size(), -1);
    for (int i = n; i-- > 0;) {
      int const k = by_level[i];
      if (!is_late(k)) continue;
      next[k] = first[due[k]];
      first[due[k]] = k;
    }
    Vec<int> sorted;
    for (int k : by_level) {
      for (int late = first[at[k]]; late >= 0; late = next[late]) sorted.push_back(late);
      if (!is_late(k)) sorted.push_back(k);
    }
    by_level = sorted;
  }

  // A group that overwrites an input comes after all groups that read it; nothing but outputs may depend on such a
  // group, else (or if two such groups wait for each other) the result is moved there at the end.
  constexpr void order_groups() {
    find_reads();
    readers_.assign(static_cast<std::size_t>(g_.inputs), 0);
    for (std::size_t k = 0, n = f_.groups.size(); k < n; ++k)
      if (epilogues_.joined[k] == 0 && groups_[k].region < 0)
        for_inputs_read(static_cast<int>(k), [&](Read const& r) { readers_[r.input] += r.first ? 1 : 0; });
    Vec<int> waiting;
    auto const take = [&](int k) {
      groups.push_back(k);
      for_inputs_read(k, [&](Read const& r) { readers_[r.input] -= r.first ? 1 : 0; });
    };
    auto const take_ready = [&] {
      for (bool again = true; again;) {
        again = false;
        for (int& k : waiting) {
          if (k < 0 || !may_overwrite(k)) continue;
          take(k);
          k = -1;
          again = true;
        }
      }
    };
    for (int k : by_level) {
      if (epilogues_.joined[k] != 0 || groups_[k].region >= 0) continue;
      if (overwrites(k) && !may_overwrite(k)) {
        if (!groups_[k].read_by_others) {
          waiting.push_back(k);
          continue;
        }
        move_results(k);
      }
      take(k);
      // Groups wait for the last reader of an input; only a group that read one can have released any.
      if (!waiting.empty() && reads_inputs(k)) take_ready();
    }
    for (int k : waiting) {
      if (k < 0) continue;
      if (!may_overwrite(k)) move_results(k);
      take(k);
    }
  }

  constexpr bool reads_inputs(int k) const { return reads_begin_[k] < reads_begin_[k + 1]; }
  constexpr bool overwrites(int k) const {
    int const* const alias = alias_.data();
    if (groups_[k].kind == Group::Kind::region) {
      for (int id = 0; id < g_.size(); ++id)
        if (alias[id] >= 0 && is_stack_of(id, k)) return true;
      return false;
    }
    for (int id : groups_[k].members)
      if (alias[id] >= 0) return true;
    return false;
  }
  // Whether group k may write its results onto the inputs now: it is their only reader left, element by element.
  constexpr bool may_overwrite(int k) const {
    Group const& x = f_.groups[k];
    if (x.kind == Group::Kind::opaque) return may_take_over(k);
    if (x.kind == Group::Kind::region) {
      bool ok = true;
      for (int id = 0; id < g_.size(); ++id)
        if (alias_[id] >= 0 && is_stack_of(id, k)) ok = ok && may_stack_over(id, k);
      return ok;
    }
    if (x.kind != Group::Kind::loop || x.split >= 0) return false;
    bool ok = true;
    for (int id : x.members) {
      int const input = alias_[id];
      if (input < 0) continue;
      int own = 0, loaded = id;  // once, for the first node that reads it, and before the result is stored
      for_inputs_read(k, [&](Read const& r) {
        if (r.input != input) return;
        loaded = own == 0 || r.node < loaded ? r.node : loaded;
        own = 1;
        ok = ok && r.in_place;
      });
      ok = ok && loaded <= id;
      ok = ok && readers_[input] == own && nodes_[id].meta.shape == x.space && goes_in_order(id);
    }
    return ok;
  }
  // An op with a kernel of its own may if it takes over that very input, which it reads once.
  constexpr bool may_take_over(int k) const {
    int const id = f_.groups[k].members[0], input = alias_[id];
    Node const& n = nodes_[id];
    if (n.op->takes_over < 0 || readers_[input] != 1) return false;
    int reads = 0;
    for_inputs_read(k, [&](Read const& r) { reads += r.input == input ? 1 : 0; });
    Access const& a = access_[n.in[n.op->takes_over]];
    Node const& root = nodes_[a.root];
    return reads == 1 && root.op->code == Code::input && root.attrs.i[0] == input && root.meta == n.meta &&
           is_contiguous(n.meta.shape, a.strides) && a.offset == 0 && a.turn < 0;
  }
  constexpr bool is_stack_of(int id, int k) const {
    return nodes_[id].op->code == Code::stack && region_behind(nodes_[id]) == groups_[k].behind;
  }
  // A region, group k, may stack values where an input lies if nothing else has still to read that input, and an
  // iteration reads no more of it than what it overwrites: before it does, or there and then, element by element.
  constexpr bool may_stack_over(int id, int k) const {
    int const input = alias_[id], x = nodes_[id].in[0], r = groups_[k].behind, writer = group_of(x);
    Meta const& part = nodes_[x].meta;
    Turn const own{r, part.shape.numel(), 0, 0, -1};
    Home const home = homes_.of(x);
    if (homes_.of(id).owner >= 0 || home.owner != id || home.offset != 0 || writer < 0) return false;
    if (home.turn < 0 || !(f_.turns[home.turn] == own) || groups_[writer].region != r) return false;
    int at = 0;
    for (std::size_t i = 0; i < by_level.size(); ++i)
      if (by_level[i] == writer) at = static_cast<int>(i);
    int own_reads = 0;
    bool ok = true;
    for_inputs_read(k, [&](Read const& read) {
      bool const looks_only = is_view(nodes_[read.node]) && access_[read.node].root != read.node;
      if (read.input != input) return;
      own_reads = 1;
      if (looks_only) return;
      ok = ok && nodes_[read.node].region == r && reads_part(read.node, input, own);
      if (ok) ok = goes_before(read.node, input, x, at);
    });
    return ok && readers_[input] == own_reads;
  }
  // Whether all that a node reads of an input is the part of an iteration.
  constexpr bool reads_part(int id, int input, Turn const& own) const {
    Node const& n = nodes_[id];
    for (int i = 0; i < n.op->arity; ++i) {
      Access const& a = access_[n.in[i]];
      Node const& root = nodes_[a.root];
      if (root.op->code != Code::input || root.attrs.i[0] != input) continue;
      if (a.offset != 0 || a.turn < 0 || !(f_.turns[a.turn] == own)) return false;
      if (root.meta.shape.numel() != extent::mul(own.step, g_.regions[own.region].count)) return false;
    }
    return true;
  }
  // Whether a node has read its part of an input when x, of a group at place `at`, is stored there.
  constexpr bool goes_before(int id, int input, int x, int at) const {
    int const mine = group_of(id), writer = group_of(x);
    if (mine != writer) {
      int runs_in = mine;
      for (std::size_t k = 0; k < f_.groups.size(); ++k)
        if (epilogues_.product[k] == mine && mine >= 0) runs_in = static_cast<int>(k);
      for (int i = 0; i < at; ++i)
        if (by_level[i] == runs_in) return true;
      return false;
    }
    Group const& group = groups_[writer];
    if (group.kind != Group::Kind::loop || group.split >= 0 || id > x) return false;
    if (!(nodes_[x].meta.shape == group.space) || !goes_in_order(x) || !goes_in_order(id)) return false;
    Node const& n = nodes_[id];
    for (int i = 0; i < n.op->arity; ++i) {
      Access const& a = access_[n.in[i]];
      Node const& root = nodes_[a.root];
      bool const read = root.op->code == Code::input && root.attrs.i[0] == input;
      bool const one_by_one = nodes_[n.in[i]].meta.shape == n.meta.shape;
      if (read && !(one_by_one && is_contiguous(n.meta.shape, a.strides))) return false;
    }
    return true;
  }
  constexpr void move_result(int id) {
    moved.push_back(id);
    moved_to.push_back(alias_[id]);
    alias_[id] = -1;
  }
  constexpr void move_results(int k) {
    for (int id : f_.groups[k].members)
      if (alias_[id] >= 0) move_result(id);
    if (groups_[k].kind != Group::Kind::region) return;
    for (int id = 0; id < g_.size(); ++id)
      if (alias_[id] >= 0 && is_stack_of(id, k) && !may_stack_over(id, k)) move_result(id);
  }

  Graph const& g_;
  Node const* nodes_;
  Access const* access_;
  Place const* place_;
  Group const* groups_;
  Fusion const& f_;
  Vec<int>& alias_;
  Epilogues const& epilogues_;
  Homes const& homes_;
  Vec<int> readers_, reads_begin_;
  Vec<Read> reads_;
};

}  // namespace detail

}  // namespace dfdx::graph
