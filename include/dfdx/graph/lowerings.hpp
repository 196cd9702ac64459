// SPDX-License-Identifier: BSL-1.0
// Loop groups that are like one another are lowered once: a network of many equal blocks costs little more than one.
// Alike are groups whose members do the same to operands that are walked alike, wherever these lie.
#pragma once

#include <dfdx/graph/lower.hpp>

namespace dfdx::graph::detail {

/// Lowerings - lower(), with memory. Groups with equal descriptions are found by hash and compared in full.
class Lowerings {
 public:
  constexpr Lowerings(Graph const& g, Fusion const& f, Vec<char> const& stored)
      : g_(g),
        f_(f),
        stored_(stored),
        nodes_(g.nodes.data()),
        access_(f.access.data()),
        place_(f.place.data()) {
    std::size_t places = 16;
    while (places < f.groups.size()) places *= 2;
    first_.assign(places, -1);
  }

  /// How many groups have been lowered, and how often two of one hash have been compared and were not alike.
  constexpr std::size_t size() const { return known_.size(); }
  constexpr std::size_t misses() const { return misses_; }
  /// The description of a group, and where its operands start; good until the next call.
  constexpr Lowered const& of(Group const& group, bool by_rows = false) {
    int& first = first_[hash(group, by_rows) & (first_.size() - 1)];
    for (int i = first; i >= 0; i = known_[i].next) {
      Known& k = known_[i];
      if (k.by_rows == by_rows && alike(*k.group, group)) return k.moved_to(group, *this);
      ++misses_;
    }
    known_.push_back(Known{&group, by_rows, first, lower(g_, f_, group, stored_, by_rows)});
    first = static_cast<int>(known_.size()) - 1;
    return known_.back().lowered;
  }

 private:
  struct Known {
    Group const* group = nullptr;
    bool by_rows = false;
    int next = -1;
    Lowered lowered{};

    constexpr Lowered const& moved_to(Group const& other, Lowerings const& in) {
      for (Memory& m : lowered.memory) {
        if (m.kind != Memory::Kind::node) continue;
        int const id = other.members[m.member];
        m.what = m.operand < 0 ? id : in.access_[in.nodes_[id].in[m.operand]].root;
      }
      return lowered;
    }
  };

  constexpr std::uint64_t hash(Group const& x, bool by_rows) const {
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
    std::size_t const size = x.members.size();
    std::uint64_t h = by_rows ? 2 * size + 1 : 2 * size;
    for (int m : x.members) {
      Node const& n = nodes_[m];
      h = (h ^ static_cast<std::uint64_t>(n.op->code)) * odd;
      // What tells groups apart that do the same: numbers, and where parts of a value begin.
      for (int k = 0; k < n.op->arity; ++k) {
        Access const& a = access_[n.in[k]];
        Node const& root = nodes_[a.root];
        if (root.op->code == Code::constant) h = mixed(h, std::bit_cast<std::uint64_t>(root.attrs.f[0]));
        else if (a.offset != 0) h = mixed(h, static_cast<std::uint64_t>(a.offset));
      }
    }
    for (int a = 0; a < x.space.rank; ++a) h = (h ^ static_cast<std::uint64_t>(x.space.dims[a])) * odd;
    return h ^ (h >> 32);
  }

  // Values outside of two groups, in the order in which they are met: loads of one value are joined.
  struct Met {
    int values[max_arity * (max_members + 1)], others[max_arity * (max_members + 1)], n = 0;

    // Whether two are the same among those met, or new.
    constexpr bool alike(int a, int b) {
      for (int i = 0; i < n; ++i)
        if (values[i] == a || others[i] == b) return values[i] == a && others[i] == b;
      values[n] = a;
      others[n++] = b;
      return true;
    }
  };

  // The high bits as well: those below are 0 in small whole numbers.
  static constexpr std::uint64_t mixed(std::uint64_t h, std::uint64_t v) {
    return (h ^ v ^ (v >> 43)) * 0x9E3779B97F4A7C15u;
  }

  constexpr bool alike(Group const& a, Group const& b) const {
    if (a.members.size() != b.members.size() || a.split != b.split || !(a.space == b.space)) return false;
    int const *const x = a.members.data(), *const y = b.members.data();
    int const n = static_cast<int>(a.members.size());
    Met met;
    for (int m = 0; m < n; ++m) {
      Node const &p = nodes_[x[m]], &q = nodes_[y[m]];
      if (p.op->code != q.op->code || p.meta.dtype != q.meta.dtype || p.attrs.i[0] != q.attrs.i[0] ||
          stored_[x[m]] != stored_[y[m]] || !(p.meta.shape == q.meta.shape) || !same_place(x[m], y[m]))
        return false;
      for (int k = 0; k < p.op->arity; ++k) {
        int const root = access_[p.in[k]].root, other = access_[q.in[k]].root;
        if (!(nodes_[p.in[k]].meta == nodes_[q.in[k]].meta)) return false;
        if (nodes_[root].op->code == Code::constant) {
          if (!same_constant(nodes_[root], nodes_[other])) return false;
        } else if (is_inside(root, x[m]) != is_inside(other, y[m])) {
          return false;
        } else if (is_inside(root, x[m])) {
          int at = 0;
          while (x[at] != root) ++at;
          if (y[at] != other) return false;
        } else if (!same_walk(p.in[k], q.in[k]) || !met.alike(root, other)) {
          return false;
        }
      }
    }
    return true;
  }

  // Whether a value is handed from member to member, not through memory.
  constexpr bool is_inside(int root, int member) const {
    return place_[root].group == place_[member].group && !is_view(nodes_[root]);
  }
  constexpr bool same_place(int a, int b) const {
    Place const &p = place_[a], &q = place_[b];
    for (int i = 0; i < max_rank; ++i)
      if (p.axis[i] != q.axis[i]) return false;
    return p.accumulated == q.accumulated && p.apart == q.apart;
  }
  static constexpr bool same_constant(Node const& a, Node const& b) {
    return b.op->code == Code::constant &&
           std::bit_cast<index_t>(a.attrs.f[0]) == std::bit_cast<index_t>(b.attrs.f[0]);
  }
  // Walked alike: from the same offset, with the same strides, in the same turns.
  constexpr bool same_walk(int a, int b) const {
    Access const &p = access_[a], &q = access_[b];
    Node const &under = nodes_[p.root], &other = nodes_[q.root];
    if (p.offset != q.offset || p.turn != q.turn || !(p.strides == q.strides)) return false;
    if (other.op->code == Code::constant || (under.op->code == Code::iota) != (other.op->code == Code::iota))
      return false;
    if (under.op->code != Code::iota) return true;
    for (int i = 0; i < max_rank; ++i)
      if (p.driver[i] != q.driver[i]) return false;
    return under.attrs.i[0] == other.attrs.i[0] && under.meta == other.meta;
  }
  Graph const& g_;
  Fusion const& f_;
  Vec<char> const& stored_;
  Node const* nodes_;
  Access const* access_;
  Place const* place_;
  Vec<int> first_;
  Vec<Known> known_;
  std::size_t misses_ = 0;
};

}  // namespace dfdx::graph::detail
