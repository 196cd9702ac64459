// SPDX-License-Identifier: BSL-1.0
// Which matrix products are computed together with the loop after them: an elementwise group that alone reads a
// product, element by element, becomes part of the product's kernel.
#pragma once

#include <dfdx/graph/fuse.hpp>

namespace dfdx::graph::detail {

/// Epilogues - products and the groups after them that are one kernel. `stored` says which nodes must be in memory.
class Epilogues {
 public:
  constexpr Epilogues(Graph const& g, Fusion const& f, Vec<char> const& stored)
      : g_(g),
        nodes_(g.nodes.data()),
        access_(f.access.data()),
        place_(f.place.data()),
        f_(f),
        stored_(stored) {
    find();
  }

  /// For each group the product it is the epilogue of, or -1.
  Vec<int> product;
  /// Products that are computed with the group after them.
  Vec<char> joined;

  /// is_result - whether a member of a group can be what the kernel of the product `made` stores.
  constexpr bool is_result(int id, int made) const {
    Node const& n = nodes_[id];
    Shape const& space = f_.groups[group_of(id)].space;
    return stored_[id] != 0 && !is_view(n) && place_[id].apart == 1 &&
           n.meta.dtype == nodes_[made].meta.dtype && is_matrix(n.meta.shape, nodes_[made].meta.shape) &&
           walks_as(n.meta.shape, place_[id], space);
  }

 private:
  // Whether a shape is that of a product, its rows along any number of axes (none, if it is a row).
  static constexpr bool is_matrix(Shape const& s, Shape const& made) {
    if (s.rank < 1 || s[s.rank - 1] != made[1]) return false;
    index_t rows = 1;
    for (int a = 0; a + 1 < s.rank; ++a) rows = extent::mul(rows, s[a]);
    return rows == made[0];
  }
  // Whether a value stands in the space of its group with its last axes.
  static constexpr bool walks_as(Shape const& s, Place const& p, Shape const& space) {
    bool ok = s.rank <= space.rank;
    for (int a = 0; ok && a < s.rank; ++a) ok = s[a] == 1 || p.axis[a] == a + space.rank - s.rank;
    return ok;
  }
  constexpr int group_of(int id) const { return place_[id].group; }

  constexpr void find() {
    Vec<int> readers(g_.nodes.size(), -1);  // the one group that reads a value, -2 for several
    int* const reader = readers.data();
    constexpr int several = -2;
    for (int id = 0, size = g_.size(); id < size; ++id) {
      Node const& n = nodes_[id];
      int const mine = place_[id].group;
      if (n.op->code == Code::carry) reader[access_[n.in[0]].root] = several;
      if (mine < 0) continue;
      for (int i = 0; i < n.op->arity; ++i) {
        int& r = reader[access_[n.in[i]].root];
        r = r == -1 || r == mine ? mine : several;
      }
    }
    for (int o : g_.outputs) reader[access_[o].root] = several;
    product.assign(f_.groups.size(), -1);
    joined.assign(f_.groups.size(), 0);
    for (std::size_t k = 0; k < f_.groups.size(); ++k) {
      if (f_.groups[k].kind != Group::Kind::matmul) continue;
      int const made = f_.groups[k].members[0], user = reader[made];
      if (user < 0 || product[user] >= 0 || !fits(user, made)) continue;
      product[user] = static_cast<int>(k);
      joined[k] = 1;
    }
  }
  constexpr bool fits(int k, int made) const {
    Group const& x = f_.groups[k];
    Meta const& result = nodes_[made].meta;
    if (x.kind != Group::Kind::loop || x.reductions != 0 || x.region != nodes_[made].region) return false;
    if (result.shape.rank != 2 || result.shape[1] == 1 || !is_matrix(x.space, result.shape)) return false;
    if (result.dtype != DType::f32 && result.dtype != DType::f64) return false;
    bool stores = false;
    for (int id : x.members) {
      Place const& p = place_[id];
      for (int i = 0; i < nodes_[id].op->arity; ++i) {
        Access const& a = access_[nodes_[id].in[i]];
        if (a.root != made) continue;
        // Read where it is made: same axes, same places.
        Shape const& shape = nodes_[nodes_[id].in[i]].meta.shape;
        bool const in_place = a.offset == 0 && a.turn < 0 && is_contiguous(shape, a.strides) &&
                              is_matrix(shape, result.shape) && walks_as(shape, p, x.space);
        if (!in_place) return false;
      }
      stores = stores || is_result(id, made);
    }
    return stores;
  }

  Graph const& g_;
  Node const* nodes_;
  Access const* access_;
  Place const* place_;
  Fusion const& f_;
  Vec<char> const& stored_;
};

}  // namespace dfdx::graph::detail
