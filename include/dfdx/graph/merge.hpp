// SPDX-License-Identifier: BSL-1.0
// Merging: a loop whose values one other loop alone reads becomes part of it, unless that would read more several
// times. So the two halves of gelu's derivative are not stored while the product they are multiplied with is computed,
// and an optimizer's step is one loop.
#pragma once

#include <dfdx/graph/fuse.hpp>
#include <dfdx/ops/side_by_side.hpp>

namespace dfdx::graph::detail {

/// Merger - moves the members of such loop groups; those they were in are empty. Nothing else reads them, so that
/// no loop comes to wait for itself.
class Merger {
 public:
  constexpr Merger(Graph const& g, Fusion& f)
      : g_(g), nodes_(g.nodes.data()), access_(f.access.data()), place_(f.place.data()), f_(f) {
    for (bool again = true; again;) {  // what two loops read that have become one is read by one
      again = false;
      find_readers();
      for (std::size_t k = 0; k < f.groups.size(); ++k) again = merge(static_cast<int>(k)) || again;
      for (std::size_t k = 0; k < f.groups.size() && !again; ++k) again = join(static_cast<int>(k));
    }
  }

 private:
  static constexpr int nobody = -1, several = -2, no_level = 1 << 30;

  // A loop that could be part of another.
  constexpr bool is_plain(Group const& x) const {
    return x.kind == Group::Kind::loop && x.reductions == 0 && !x.members.empty();
  }

  constexpr void find_readers() {
    reader_.assign(f_.groups.size(), nobody);
    moved_to_.assign(f_.groups.size(), nobody);
    beside_.assign(f_.groups.size(), no_level);
    int* const reader = reader_.data();
    for (int id = 0, size = g_.size(); id < size; ++id) {
      Node const& n = nodes_[id];
      int const by = place_[id].group;
      // What is stacked, or a result, may be stored by any loop.
      if ((by < 0 && n.op->code != Code::carry) || n.op->code == Code::stack) continue;
      for (int k = 0; k < n.op->arity; ++k) {
        int const made = place_[access_[n.in[k]].root].group;
        if (made < 0 || made == by) continue;
        if (is_op<op::side_by_side>(*n.op)) {  // so may what lies beside others
          int const level = f_.groups[by].level;
          if (level < beside_[made]) beside_[made] = level;
          continue;
        }
        reader[made] = by >= 0 && (reader[made] == nobody || reader[made] == by) ? by : several;
      }
    }
  }

  // For each axis of the space of `from` the axis of the space of `into`.
  struct Axes {
    signed char to[max_rank] = {-1, -1, -1, -1, -1, -1, -1, -1};
  };
  // Adds what one read of a value of `from` says of the axes; false if the reads differ, or not all of it is walked.
  constexpr bool meet(Axes& axes, int user, int operand) const {
    Access const& a = access_[operand];
    Place const &there = place_[user], &made = place_[a.root];
    Shape const& shape = nodes_[a.root].meta.shape;
    if (!a.aligned || a.offset != 0 || a.turn >= 0) return false;
    for (int x = 0; x < shape.rank; ++x) {
      if (shape.dims[x] == 1) continue;
      int const driver = a.driver[x], from = made.axis[x];
      if (driver < 0 || there.axis[driver] < 0) return false;
      signed char& to = axes.to[from];
      if (to >= 0 && to != there.axis[driver]) return false;
      to = there.axis[driver];
    }
    return true;
  }
  // Whether both spaces are one, axes of extent 1 aside.
  static constexpr bool same_space(Axes const& axes, Shape const& from, Shape const& into) {
    unsigned used = 0;
    for (int a = 0; a < from.rank; ++a) {
      if (from.dims[a] == 1) continue;
      int const to = axes.to[a];
      if (to < 0 || from.dims[a] != into.dims[to] || (used >> to & 1u) != 0) return false;
      used |= 1u << to;
    }
    for (int a = 0; a < into.rank; ++a)
      if (into.dims[a] != 1 && (used >> a & 1u) == 0) return false;
    return true;
  }

  static constexpr void note(Vec<int>& values, int id) {
    for (int v : values)
      if (v == id) return;
    values.push_back(id);
  }
  // Values of the size of the space that members of a group read from memory.
  constexpr Vec<int> reads(Group const& x) const {
    Vec<int> found;
    for (int id : x.members)
      for (int k = 0; k < nodes_[id].op->arity; ++k) {
        int const root = access_[nodes_[id].in[k]].root;
        bool const inside = place_[root].group >= 0 && place_[root].group == place_[id].group;
        if (!inside && !is_generated(nodes_[root]) && nodes_[root].meta.shape.numel() == x.space.numel())
          note(found, root);
      }
    return found;
  }
  // A loop with sums reads a row several times.
  constexpr bool pays(int from, Group const& x, Group const& into) const {
    if (into.reductions == 0) return true;
    Vec<int> const before = reads(into), more = reads(x);
    int saved = 0, added = 0;
    for (int v : before) saved += place_[v].group == from ? 1 : 0;
    for (int v : more) {
      bool known = false;
      for (int b : before) known = known || b == v;
      added += known ? 0 : 1;
    }
    return added <= saved;
  }

  constexpr bool merge(int k) {
    if (!is_plain(f_.groups[k]) || reader_[k] < 0) return false;
    int into = reader_[k];
    while (moved_to_[into] >= 0) into = moved_to_[into];
    Group &x = f_.groups[k], &y = f_.groups[into];
    if (y.kind != Group::Kind::loop || y.region != x.region) return false;
    // A loop that reads what lies side by side comes after all loops that make it, and has a higher level.
    if (x.members.size() + y.members.size() > max_members || beside_[k] < y.level) return false;
    Axes axes;
    for (int id : x.members)
      if (is_view(nodes_[id])) return false;
    for (int id : y.members)
      for (int i = 0; i < nodes_[id].op->arity; ++i) {
        int const operand = nodes_[id].in[i];
        if (place_[access_[operand].root].group == k && !meet(axes, id, operand)) return false;
      }
    if (!same_space(axes, x.space, y.space) || !pays(k, x, y)) return false;
    for (int id : x.members) {
      insert_in_order(y.members, id);
      Place& p = place_[id];
      p.group = into;
      for (signed char& a : p.axis)
        if (a >= 0) a = axes.to[static_cast<int>(a)];
    }
    x.members = Vec<int>{};
    if (beside_[k] < beside_[into]) beside_[into] = beside_[k];
    y.read_by_others = y.read_by_others || beside_[k] != no_level;
    moved_to_[k] = into;
    return true;
  }

  // In a scan a kernel costs more than the number that it computes: what reads numbers of another loop becomes part of
  // that one, though others read these too. All else that it reads has to be there before.
  constexpr bool join(int k) {
    Group& x = f_.groups[k];
    if (!is_plain(x) || x.region < 0 || x.space.numel() != 1) return false;
    int into = -1;
    for (int id : x.members) {
      if (is_view(nodes_[id])) return false;
      for (int i = 0; i < nodes_[id].op->arity; ++i) {
        int const made = place_[access_[nodes_[id].in[i]].root].group;
        if (made < 0 || made == k) continue;
        int const region = f_.groups[made].region;
        if (region != x.region && !g_.encloses(region, x.region)) return false;  // of a loop in this one
        if (region == x.region && (into < 0 || f_.groups[made].level > f_.groups[into].level)) into = made;
      }
    }
    if (into < 0) return false;
    Group& y = f_.groups[into];
    if (!is_plain(y) || y.space.numel() != 1 || x.members.size() + y.members.size() > max_members)
      return false;
    for (int id : x.members)
      for (int i = 0; i < nodes_[id].op->arity; ++i) {
        int const made = place_[access_[nodes_[id].in[i]].root].group;
        if (made >= 0 && made != k && made != into && f_.groups[made].region == x.region &&
            f_.groups[made].level >= y.level)
          return false;
      }
    for (int id : x.members) {
      insert_in_order(y.members, id);
      place_[id] = Place{};
      place_[id].group = into;
    }
    x.members = Vec<int>{};
    return true;
  }

  Graph const& g_;
  Node const* nodes_;
  Access const* access_;
  Place* place_;
  Fusion& f_;
  Vec<int> reader_, moved_to_;
  Vec<int> beside_;  // for each group the least level of what joins its values with others, without a kernel
};

}  // namespace dfdx::graph::detail
