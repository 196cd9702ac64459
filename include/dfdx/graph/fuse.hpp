// SPDX-License-Identifier: BSL-1.0
// Fusion: partitions a graph into groups that each become one kernel. A loop group is a nest over one index space
// in which every member has its place; reductions over the inner axes are phases of that nest. Matrix products and
// ops with kernels of their own are groups by themselves.
//
// Groups have levels: a group's level exceeds those of all groups it reads from, so that no two of them can wait
// for each other. A node may join a group it reads from if that stays true. One pass over the nodes.
#pragma once

#include <dfdx/graph/views.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

/// Group - nodes that one kernel computes; or a whole region, whose groups are seen from outside as this one.
struct Group {
  enum class Kind : unsigned char { loop, matmul, opaque, region } kind = Kind::loop;
  /// Above those of all groups of its region that it reads from.
  int level = 0;
  /// The region that it runs in, and the one that it is.
  int region = -1, behind = -1;
  /// The index space of the loop nest.
  Shape space{};
  /// First axis of the space that phases reduce over; -1 while no member asks for one.
  int split = -1;
  int reductions = 0;
  /// Of these the ones that need a register while a row is walked.
  int row_sums = 0;
  /// Those of a phase, eight bits each. (nvcc 13 does not move groups with arrays in constant expressions.)
  std::uint64_t phase_sums = 0;
  bool read_by_others = false;
  Vec<int> members;
};

/// Place - where a node stands in its group.
struct Place {
  int group = -1;
  /// For each axis of the node (of its operand, if it reduces or copies) the axis of the space; -1 for extent 1.
  signed char axis[max_rank] = {-1, -1, -1, -1, -1, -1, -1, -1};
  /// A reduction over other axes than the inner ones: its result is complete only after the whole nest.
  bool accumulated = false;
  /// The first phase of the group in which its value is there.
  int phase = 0;
  /// How far apart its elements lie where it lives (graph/homes.hpp).
  index_t apart = 1;

  constexpr Strides strides_of(Shape const& shape) const {
    Strides r = contiguous(shape);
    for (int x = 0; x < r.rank && apart != 1; ++x) r[x] = extent::mul(r[x], apart);
    return r;
  }
};

struct Fusion {
  Vec<Access> access;
  Vec<Turn> turns;
  Vec<Place> place;
  Vec<Group> groups;
  /// For each region the group that it is to its surroundings.
  Vec<int> units;
};

inline constexpr std::size_t max_members = 40;
/// Sums of rows that a group has, and those of one phase, for which kernels have registers (kernels/loop_body.hpp).
inline constexpr int max_row_sums = 5, max_phase_sums = 4;

namespace detail {

/// insert_in_order - adds a member to those of a group, which ascend.
constexpr void insert_in_order(Vec<int>& members, int id) {
  members.push_back(id);
  for (std::size_t i = members.size() - 1; i > 0 && members[i - 1] > id; --i)
    std::swap(members[i - 1], members[i]);
}

class Fuser {
 public:
  constexpr explicit Fuser(Graph const& g) {
    f.access = accesses(g, f.turns);
    f.place = Vec<Place>(g.nodes.size());
    nodes_ = g.nodes.data();
    access_ = f.access.data();
    place_ = f.place.data();
    f.groups.reserve(g.nodes.size() / 3 + g.regions.size());
    walker_.assign(g.nodes.size(), -1);
    waiting_ = Vec<char>(g.nodes.size());
    for (std::size_t r = 0; r < g.regions.size(); ++r) {
      Group unit;
      unit.kind = Group::Kind::region;
      unit.region = g.regions[r].parent;
      unit.behind = static_cast<int>(r);
      f.units.push_back(static_cast<int>(f.groups.size()));
      f.groups.push_back(unit);
    }
    groups_ = f.groups.data();
    int const size = g.size();
    for (int id = 0; id < size; ++id) add(id);
    for (int id = 0; id < size && still_waiting_ != 0; ++id) settle(id);
  }

  Fusion f;

 private:
  // The group that computes what `id` reads, -1 if that is an input or generated.
  constexpr int group_under(int id) { return place_[access_[id].root].group; }

  constexpr void add(int id) {
    Node const& n = nodes_[id];
    if (n.op->code == Code::input || is_generated(n)) return;
    bool const copied = is_view(n) && access_[id].root == id;
    if (is_view(n) && !copied) return;
    if (n.op->code == Code::carry) {
      settle(access_[n.in[0]].root);
      return read(unit(static_cast<int>(n.attrs.i[0])), n.in[0]);
    }
    if (is_exit(n)) {
      settle(access_[n.in[n.op->arity - 1]].root);
      place_[id].group = unit(region_behind(n));
      return;
    }
    if (n.op->elementwise || n.op->code == Code::cast || is_reduction(n) || copied) {
      for (int k = 0; k < n.op->arity && still_waiting_ != 0; ++k)
        if (!adoptable(n, n.in[k])) settle(access_[n.in[k]].root);
      for (int k = 0; k < n.op->arity; ++k)
        if (try_join(id, group_under(n.in[k]))) return;
      // Else beside a nest that walks the same values already, so that they are read once.
      for (int k = 0; k < n.op->arity; ++k)
        if (walks_all_of(n.in[k]) && try_join(id, walker_[access_[n.in[k]].root])) return;
      if (may_wait(n)) {
        ++still_waiting_;
        return static_cast<void>(waiting_[id] = 1);
      }
      if (settle_operands(n))
        for (int k = 0; k < n.op->arity; ++k)
          if (try_join(id, group_under(n.in[k]))) return;
      return start(id, Group::Kind::loop);
    }
    if (int const k = made_with(n); k >= 0) {
      place_[id].group = k;
      return groups_[k].members.push_back(id);
    }
    settle_operands(n);
    start(id, n.op->code == Code::matmul ? Group::Kind::matmul : Group::Kind::opaque);
  }

  // A cheap value of inputs alone has no group to join: it waits for the first that reads it, and is computed there,
  // or else by itself. So the mask of a cross entropy does not keep its loops apart.
  // So does a sum of an input over its rows: a loop that walks that input computes it too.
  constexpr bool may_wait(Node const& n) const {
    bool ok =
        (n.op->elementwise && n.op->cost <= 2) || (is_reduction(n) && !sums_rows(n) && walks_all_of(n.in[0]));
    for (int k = 0; k < n.op->arity; ++k) {
      int const root = access_[n.in[k]].root;
      ok = ok && place_[root].group < 0 && !waits(root);
    }
    return ok;
  }
  constexpr bool waits(int id) const { return waiting_[id] != 0; }
  // Whether an operand, if it waits, can be computed where n is: n walks all of it.
  constexpr bool adoptable(Node const& n, int operand) const {
    int const root = access_[operand].root;
    return !waits(root) ||
           (operand == root && !is_reduction(nodes_[root]) && nodes_[root].region == n.region &&
            !is_view(n) && nodes_[root].meta.shape == walked(n));
  }
  constexpr void settle(int id) {
    if (waiting_[id] == 0) return;
    stop_waiting(id);
    Node const& n = nodes_[id];
    if (is_reduction(n) && try_join(id, walker_[access_[n.in[0]].root])) return;
    start(id, Group::Kind::loop);
  }

  constexpr void stop_waiting(int id) {
    waiting_[id] = 0;
    --still_waiting_;
  }
  // Whether one of them did wait.
  constexpr bool settle_operands(Node const& n) {
    int const before = still_waiting_;
    for (int k = 0; k < n.op->arity && still_waiting_ != 0; ++k) settle(access_[n.in[k]].root);
    return still_waiting_ != before;
  }

  // Whether a view is all of the memory under it, each element once and in order.
  constexpr bool walks_all_of(int id) const {
    Access const& a = access_[id];
    Shape const& shape = nodes_[id].meta.shape;
    if (a.root == id) return !is_generated(nodes_[id]) && shape.numel() != 1;
    Node const& root = nodes_[a.root];
    return a.offset == 0 && a.turn < 0 && !is_generated(root) && is_contiguous(shape, a.strides) &&
           shape.numel() == root.meta.shape.numel() && shape.numel() != 1;
  }

  // The group whose kernel makes both a node and its last operand, or -1.
  constexpr int made_with(Node const& n) const {
    if (!n.op->has_run_both) return -1;
    int const last = n.op->arity - 1;
    Node const& beside = nodes_[n.in[last]];
    bool ok = beside.region == n.region && beside.op->arity == last && beside.attrs == n.attrs;
    for (int k = 0; ok && k < last; ++k) ok = beside.in[k] == n.in[k];
    int const group = place_[n.in[last]].group;
    return ok && group >= 0 && groups_[group].members.size() == 1 ? group : -1;
  }

  // What a node iterates over: its operands' shape.
  constexpr Shape const& walked(Node const& n) const { return nodes_[n.in[0]].meta.shape; }

  constexpr void start(int id, Group::Kind kind) {
    Node const& n = nodes_[id];
    Group fresh;
    fresh.kind = kind;
    fresh.region = n.region;
    if (kind == Group::Kind::loop) fresh.space = walked(n);
    int const k = static_cast<int>(f.groups.size());
    f.groups.push_back(std::move(fresh));
    groups_ = f.groups.data();
    Place p;
    for (int a = 0; kind == Group::Kind::loop && a < walked(n).rank; ++a)
      if (walked(n).dims[a] != 1) p.axis[a] = static_cast<signed char>(a);
    enter(id, k, p);
  }

  constexpr void enter(int id, int k, Place p) {
    Node const& n = nodes_[id];
    Group& mine = groups_[k];
    for (int i = 0; i < n.op->arity; ++i) read(k, n.in[i]);
    if (mine.kind == Group::Kind::loop)
      for (int i = 0; i < n.op->arity; ++i)
        if (walks_all_of(n.in[i])) walker_[access_[n.in[i]].root] = k;
    p.group = k;
    p.phase = phase_of(n, k);
    if (is_reduction(n)) settle_reduction(n, mine, p);
    place_[id] = p;
    insert_in_order(mine.members, id);
  }

  constexpr int unit(int region) const { return f.units[region]; }

  // Of a group and one that it reads from, in a region around its own: the group or the region that stands beside
  // the other.
  constexpr int beside(int k, int other) const {
    while (groups_[k].region != groups_[other].region) k = unit(groups_[k].region);
    return k;
  }

  // Group k reads a value: it comes after the group that makes it, and so does a region that it is in.
  constexpr void read(int k, int id) {
    int const other = group_under(id);
    if (other < 0 || other == k) return;
    Group& mine = groups_[beside(k, other)];
    groups_[other].read_by_others = true;
    if (mine.level > groups_[other].level) return;
    if (mine.kind == Group::Kind::region && mine.read_by_others)
      raise("fuse: a loop reads what comes after it");
    mine.level = groups_[other].level + 1;
  }

  // Axes of the space that a reduction sums over, as a mask.
  static constexpr unsigned reduced_axes(Node const& n, Place const& p) {
    unsigned r = 0;
    for (int a = 0; a < max_rank; ++a)
      if ((n.attrs.i[0] >> a & 1) != 0 && p.axis[a] >= 0) r |= 1u << p.axis[a];
    return r;
  }

  // Whether a reduction goes over the last axis, so that it may need a register for each row.
  constexpr bool sums_rows(Node const& n) const {
    Shape const& s = walked(n);
    int last = s.rank - 1;
    while (last > 0 && s[last] == 1) --last;
    return last < 0 || (n.attrs.i[0] >> last & 1) != 0;
  }

  // Where the sums of a phase are counted.
  static constexpr int bits_of(int phase) { return 8 * (phase < 7 ? phase : 7); }
  // The phase of group k in which all that the node reads is there.
  constexpr int phase_of(Node const& n, int k) const {
    int r = 0;
    for (int i = 0; i < n.op->arity; ++i) {
      int const root = access_[n.in[i]].root;
      bool const here = place_[root].group == k;
      int const its = here ? place_[root].phase : waits(root) ? phase_of(nodes_[root], k) : 0;
      if (its > r) r = its;
    }
    return r;
  }

  // A reduction over exactly the innermost axes is a phase; any other adds up in memory.
  constexpr void settle_reduction(Node const& n, Group& mine, Place& p) {
    unsigned const reduced = reduced_axes(n, p);
    int first = 0;
    while (first < max_rank && (reduced >> first & 1u) == 0) ++first;
    bool suffix = reduced != 0;
    for (int a = first; a < mine.space.rank; ++a)
      if (mine.space[a] != 1 && (reduced >> a & 1u) == 0) suffix = false;
    ++mine.reductions;
    if (sums_rows(n)) ++mine.row_sums, mine.phase_sums += std::uint64_t{1} << bits_of(p.phase);
    ++p.phase;
    if (suffix && (mine.split < 0 || mine.split == first)) mine.split = first;
    else p.accumulated = true;
  }

  constexpr bool try_join(int id, int k) {
    if (k < 0 || groups_[k].kind != Group::Kind::loop || groups_[k].members.size() >= max_members)
      return false;
    Node const& n = nodes_[id];
    if (groups_[k].region != n.region) return false;
    if (is_reduction(n) && sums_rows(n)) {
      auto const together = static_cast<int>(groups_[k].phase_sums >> bits_of(phase_of(n, k)) & 255);
      if (groups_[k].row_sums >= max_row_sums || together >= max_phase_sums) return false;
    }
    for (int i = 0; i < n.op->arity; ++i) {
      int const other = group_under(n.in[i]);
      if (other < 0 || other == k || groups_[other].region != n.region ||
          groups_[other].level < groups_[k].level)
        continue;
      // The group would have to move after `other`; it may, if nothing waits for it yet.
      if (groups_[k].read_by_others) return false;
    }
    Place p;
    if (!align(n, k, p)) return false;
    for (int i = 0; i < n.op->arity && still_waiting_ != 0; ++i) {
      int const operand = n.in[i];
      if (!waits(operand)) continue;
      stop_waiting(operand);
      enter(operand, k, p);
    }
    enter(id, k, p);
    return true;
  }

  // Finds an axis of the group's space for each axis that the node walks.
  constexpr bool align(Node const& n, int k, Place& p) {
    Shape const &space = groups_[k].space, &own = walked(n);
    for (int i = 0; i < n.op->arity; ++i) {
      Access const& a = access_[n.in[i]];
      Place const& q = place_[a.root];
      if (q.group != k) continue;
      // A copied reshape stands in the space with the axes of its operand, not with its own.
      if (!a.aligned || q.accumulated || is_view(nodes_[a.root])) return false;
      Shape const& under = nodes_[a.root].meta.shape;
      for (int x = 0; x < under.rank; ++x) {
        if (under.dims[x] == 1) continue;
        signed char const mine = a.driver[x];
        if (mine < 0) return false;
        signed char& slot = p.axis[static_cast<int>(mine)];
        if (slot >= 0 && slot != q.axis[x]) return false;
        slot = q.axis[x];
      }
    }
    // Axes that no operand in the group moves along: aligned at the last axis, as broadcasting would.
    for (int x = 0; x < own.rank; ++x) {
      if (own.dims[x] == 1 || p.axis[x] >= 0) continue;
      int const s = x + space.rank - own.rank;
      if (s < 0) return false;
      p.axis[x] = static_cast<signed char>(s);
    }
    unsigned used = 0;
    for (int x = 0; x < own.rank; ++x) {
      if (own.dims[x] == 1) continue;
      int const s = p.axis[x];
      if (space.dims[s] != own.dims[x] || (used >> s & 1u) != 0) return false;
      used |= 1u << s;
    }
    return walks_all(groups_[k], used);
  }

  // Whether a node that moves along the axes `used` is computed once for each of its elements: it moves along all
  // axes of the space, or along all outer ones and no inner one. Another would be computed again along the axes it
  // misses, its sums added up again, or never where such an axis is empty.
  static constexpr bool walks_all(Group const& in, unsigned used) {
    bool inner = true, outer = true, any_inner = false;
    for (int a = 0; a < in.space.rank; ++a) {
      if (in.space.dims[a] == 1) continue;
      bool const along = (used >> a & 1u) != 0;
      bool const is_inner = in.split >= 0 && a >= in.split;
      if (is_inner) inner = inner && along, any_inner = any_inner || along;
      else outer = outer && along;
    }
    return outer && (inner || !any_inner);
  }

  // In constant expressions an index costs a call, and one through a pointer does not.
  Node const* nodes_ = nullptr;
  Access const* access_ = nullptr;
  Place* place_ = nullptr;
  Group* groups_ = nullptr;
  Vec<int> walker_;  // for each value the loop group that last walked all of it, or -1
  Vec<char> waiting_;
  int still_waiting_ = 0;
};

}  // namespace detail

/// fuse - the groups of a graph, each before those that read from it when sorted by level.
constexpr Fusion fuse(Graph const& g) { return detail::Fuser(g).f; }

}  // namespace dfdx::graph
