// SPDX-License-Identifier: BSL-1.0
// The order in which a plan runs the groups of a graph, and which of them may write their results where an input
// lies.
#pragma once

#include <dfdx/graph/fuse.hpp>

namespace dfdx::graph {

namespace detail {

/// Order - sorts groups by level. `alias` says which input's memory a node takes over (-1 for none); a node whose
/// group cannot write there in place loses its alias and is `moved` there at the end. Groups that are `joined` run
/// with the one whose `product` they are.
class Order {
 public:
  constexpr Order(Graph const& g, Fusion const& f, Vec<int>& alias, Vec<char> const& joined,
                  Vec<int> const& product)
      : g_(g), f_(f), alias_(alias), joined_(joined), product_(product) {
    sort_groups();
    order_groups();
  }

  /// Those outside of regions, in their order; and all of them, by level.
  Vec<int> groups, by_level;
  Vec<int> moved, moved_to;

 private:
  constexpr Access const& access(int id) const { return f_.access[at(id)]; }
  constexpr int group_of(int id) const { return f_.place[at(id)].group; }
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // The nodes whose operands group k reads, or all groups of the region that it is.
  constexpr Vec<int> readers_in(int k) const {
    if (f_.groups[at(k)].kind == Group::Kind::region) return readers_in_region(k);
    Vec<int> r = f_.groups[at(k)].members;
    if (product_[at(k)] >= 0) r.push_back(f_.groups[at(product_[at(k)])].members[0]);
    return r;
  }
  constexpr Vec<int> readers_in_region(int k) const {
    int const r = f_.groups[at(k)].behind;
    Vec<int> found;
    for (int id = 0; id < g_.size(); ++id)
      if (g_[id].region >= 0 && g_.encloses(r, g_[id].region)) found.push_back(id);
    return found;
  }

  template <class F>
  constexpr void for_inputs_read(int k, F f) const {
    Vec<int> seen;
    for (int id : readers_in(k))
      for (int i = 0; i < g_[id].arity(); ++i) {
        Access const& a = access(g_[id].in[i]);
        if (g_[a.root].code() != Code::input) continue;
        auto const input = static_cast<int>(g_[a.root].attrs.i[0]);
        bool again = false;
        for (int s : seen) again = again || s == input;
        // Written over safely if each element is read where it will be written.
        bool const in_place = group_of(id) == k && goes_in_order(id) &&
                              is_contiguous(g_[id].meta.shape, a.strides) && a.offset == 0 && a.turn < 0;
        f(input, in_place, !again);
        seen.push_back(input);
      }
  }

  // Whether a node walks its own axes in the order of the group's; beside it a transposed value may do otherwise.
  constexpr bool goes_in_order(int id) const {
    Place const& p = f_.place[at(id)];
    for (int a = 0; a < max_rank; ++a)
      if (p.axis[a] >= 0 && p.axis[a] != a) return false;
    return true;
  }

  // Stable order by level.
  constexpr void sort_groups() {
    Vec<int> const level = late_levels();
    int levels = 0;
    for (int l : level) levels = l + 1 > levels ? l + 1 : levels;
    Vec<int> start(at(levels) + 1, 0);
    by_level.assign(f_.groups.size(), 0);
    for (int l : level) ++start[at(l) + 1];
    for (std::size_t l = 1; l < start.size(); ++l) start[l] += start[l - 1];
    for (std::size_t k = 0; k < f_.groups.size(); ++k)
      by_level[at(start[at(level[k])]++)] = static_cast<int>(k);
  }

  // In a loop, what waits for nothing there (values computed again for a backward pass) comes right before its first
  // reader, so that its results are not kept for longer than they must.
  constexpr Vec<int> late_levels() const {
    constexpr int none = 1 << 30;
    Vec<int> level, first(f_.groups.size(), none);
    for (Group const& x : f_.groups) level.push_back(x.level);
    for (int id = 0; id < g_.size() && !g_.regions.empty(); ++id)
      for (int i = 0; i < g_[id].arity(); ++i) {
        int const made_by = group_of(access(g_[id].in[i]).root), reader = group_of(id);
        if (made_by < 0 || made_by == reader || is_view(g_[id])) continue;
        bool const beside = reader >= 0 && f_.groups[at(reader)].region == f_.groups[at(made_by)].region;
        int const l = beside && !is_exit(g_[id]) ? f_.groups[at(reader)].level : 0;
        first[at(made_by)] = l < first[at(made_by)] ? l : first[at(made_by)];
      }
    for (std::size_t k = 0; k < level.size(); ++k) {
      Group const& x = f_.groups[k];
      if (x.region >= 0 && x.level == 0 && x.kind == Group::Kind::loop && joined_[k] == 0 && first[k] != none)
        level[k] = first[k] > 0 ? first[k] - 1 : 0;
    }
    return level;
  }

  // A group that overwrites an input comes after all groups that read it; nothing but outputs may depend on such a
  // group, else (or if two such groups wait for each other) the result is moved there at the end.
  constexpr void order_groups() {
    readers_.assign(at(g_.inputs), 0);
    for (std::size_t k = 0; k < f_.groups.size(); ++k)
      if (joined_[k] == 0 && f_.groups[k].region < 0)
        for_inputs_read(static_cast<int>(k),
                        [&](int input, bool, bool first) { readers_[at(input)] += first ? 1 : 0; });
    Vec<int> waiting;
    auto const take = [&](int k) {
      groups.push_back(k);
      for_inputs_read(k, [&](int input, bool, bool first) { readers_[at(input)] -= first ? 1 : 0; });
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
      if (joined_[at(k)] != 0 || f_.groups[at(k)].region >= 0) continue;
      if (overwrites(k) && !f_.groups[at(k)].read_by_others && !may_overwrite(k)) {
        waiting.push_back(k);
        continue;
      }
      if (overwrites(k) && !may_overwrite(k)) move_results(k);
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

  constexpr bool reads_inputs(int k) const {
    bool any = false;
    for_inputs_read(k, [&](int, bool, bool) { any = true; });
    return any;
  }
  constexpr bool overwrites(int k) const {
    for (int id : f_.groups[at(k)].members)
      if (alias_[at(id)] >= 0) return true;
    return false;
  }
  // Whether group k may write its results onto the inputs now: it is their only reader left, element by element.
  constexpr bool may_overwrite(int k) const {
    Group const& x = f_.groups[at(k)];
    if (x.kind != Group::Kind::loop || x.split >= 0) return false;
    bool ok = true;
    for (int id : x.members) {
      int const input = alias_[at(id)];
      if (input < 0) continue;
      int own = 0;
      for_inputs_read(k, [&](int i, bool in_place, bool) {
        if (i != input) return;
        own = 1;
        ok = ok && in_place;
      });
      ok = ok && readers_[at(input)] == own && g_[id].meta.shape == x.space && goes_in_order(id);
    }
    return ok;
  }
  constexpr void move_results(int k) {
    for (int id : f_.groups[at(k)].members)
      if (alias_[at(id)] >= 0) {
        moved.push_back(id);
        moved_to.push_back(alias_[at(id)]);
        alias_[at(id)] = -1;
      }
  }

  Graph const& g_;
  Fusion const& f_;
  Vec<int>& alias_;
  Vec<char> const& joined_;
  Vec<int> const& product_;
  Vec<int> readers_;
};

}  // namespace detail

}  // namespace dfdx::graph
