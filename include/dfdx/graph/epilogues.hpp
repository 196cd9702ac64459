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
      : g_(g), f_(f), stored_(stored) {
    find();
  }

  /// For each group the product it is the epilogue of, or -1.
  Vec<int> product;
  /// Products that are computed with the group after them.
  Vec<char> joined;

  /// is_result - whether a member of a group can be what the kernel of the product `made` stores.
  constexpr bool is_result(int id, int made) const {
    Place const& p = f_.place[id];
    return stored_[id] != 0 && !is_view(g_[id]) && g_[id].meta == g_[made].meta && p.axis[0] == 0 &&
           p.axis[1] == 1;
  }

 private:
  constexpr Access const& access(int id) const { return f_.access[id]; }
  constexpr int group_of(int id) const { return f_.place[id].group; }

  constexpr void find() {
    Vec<int> reader(g_.nodes.size(), -1);  // the one group that reads a value, -2 for several
    constexpr int several = -2;
    for (int id = 0; id < g_.size(); ++id) {
      Node const& n = g_[id];
      int const mine = group_of(id);
      if (n.code() == Code::carry) reader[access(n.in[0]).root] = several;
      if (mine < 0) continue;
      for (int i = 0; i < n.arity(); ++i) {
        int& r = reader[access(n.in[i]).root];
        r = r == -1 || r == mine ? mine : several;
      }
    }
    for (int o : g_.outputs) reader[access(o).root] = several;
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
    Meta const& result = g_[made].meta;
    if (x.kind != Group::Kind::loop || x.reductions != 0 || x.region != g_[made].region ||
        !(x.space == result.shape) || x.space.rank != 2)
      return false;
    if (x.space[0] == 1 || x.space[1] == 1) return false;
    if (result.dtype != DType::f32 && result.dtype != DType::f64) return false;
    bool stores = false;
    for (int id : x.members) {
      Place const& p = f_.place[id];
      for (int i = 0; i < g_[id].arity(); ++i) {
        Access const& a = access(g_[id].in[i]);
        if (a.root != made) continue;
        // Read where it is made: same axes, same places.
        Shape const& shape = g_[g_[id].in[i]].meta.shape;
        bool const in_place = a.offset == 0 && a.turn < 0 && is_contiguous(shape, a.strides) &&
                              shape == result.shape && p.axis[0] == 0 && p.axis[1] == 1;
        if (!in_place) return false;
      }
      stores = stores || is_result(id, made);
    }
    return stores;
  }

  Graph const& g_;
  Fusion const& f_;
  Vec<char> const& stored_;
};

}  // namespace dfdx::graph::detail
