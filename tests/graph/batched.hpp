// SPDX-License-Identifier: BSL-1.0
// A graph for one example as a graph for several, and whether it computes what the one does, example by example.
#pragma once

#include <dfdx/graph/batch.hpp>
#include <dfdx/testing/interpret.hpp>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace batched {

using namespace dfdx;

/// The graph of `count` examples: inputs k with mapped[k] have a first axis of them.
inline Graph batch(Graph const& one, std::vector<bool> const& mapped, index_t count) {
  Graph g = testing::new_graph();
  std::vector<Sym> inputs(mapped.size());
  std::vector<int> at(one.nodes.size(), -1);
  for (int i = 0; i < one.size(); ++i) {
    if (one[i].op->code != Code::input) continue;
    auto const k = static_cast<std::size_t>(one[i].attrs.i[0]);
    Meta m = one[i].meta;
    if (mapped[k]) {
      m.shape = make_shape(count);
      for (int a = 0; a < one[i].meta.shape.rank; ++a) m.shape.push_back(one[i].meta.shape[a]);
    }
    inputs[k] = testing::add_input(g, m).sym();
    g[inputs[k].id].attrs = one[i].attrs;
    if (!mapped[k]) at[static_cast<std::size_t>(i)] = inputs[k].id;
  }
  graph::Batch<> examples(g, count);
  for (int i = 0; i < one.size(); ++i)
    if (one[i].op->code == Code::input && at[static_cast<std::size_t>(i)] < 0) {
      Sym const& all = inputs[static_cast<std::size_t>(one[i].attrs.i[0])];
      at[static_cast<std::size_t>(i)] = examples.one(all).id;
    }
  int const first = g.size();
  for (Region r : one.regions) {
    r.first += first;
    g.regions.push_back(r);
  }
  for (int i = 0; i < one.size(); ++i) {
    Node n = one[i];
    if (n.op->code == Code::input) continue;
    for (int k = 0; k < n.op->arity; ++k) n.in[k] = at[static_cast<std::size_t>(n.in[k])];
    at[static_cast<std::size_t>(i)] = g.push(n).id;
  }
  Vec<Sym> ends;
  for (int o : one.outputs) ends.push_back(Sym{&g, at[static_cast<std::size_t>(o)]});
  for (Sym const& s : examples.all(ends)) g.outputs.push_back(s.id);
  return g;
}

inline Array at(Array const& all, index_t i) { return dfdx::detail::packed(all.part(i)); }

/// What differs between the examples of the batched graph and the graph on each; empty if nothing does, not even a
/// bit. A NaN is one whatever its bits.
inline std::string difference(Graph const& one, std::vector<bool> const& mapped,
                              std::vector<Array> const& inputs, index_t count) {
  std::vector<Array> const all = testing::interpret(batch(one, mapped, count), inputs);
  for (index_t i = 0; i < count; ++i) {
    std::vector<Array> mine = inputs;
    for (std::size_t k = 0; k < mine.size(); ++k)
      if (mapped[k]) mine[k] = at(mine[k], i);
    std::vector<Array> const want = testing::interpret(one, mine);
    for (std::size_t k = 0; k < want.size(); ++k) {
      Array const x = at(all[k], i), y = dfdx::detail::packed(want[k]);
      if (!(x.meta() == y.meta())) return "another shape or dtype";
      for (index_t e = 0; e < x.size(); ++e) {
        double const a = read_real(x.operand(), e), b = read_real(y.operand(), e);
        if (a != b && (a == a || b == b))
          return "result " + std::to_string(k) + ", example " + std::to_string(i) + ", element " +
                 std::to_string(e) + ": " + std::to_string(a) + " for " + std::to_string(b);
      }
    }
  }
  return {};
}

/// The same values several times, the floating ones each time a little smaller.
inline Array examples_like(Array const& x, index_t count) {
  std::vector<Array> parts;
  for (index_t i = 0; i < count; ++i)
    parts.push_back(is_floating(x.dtype()) ? Array(x * (1.0 - 0.0625 * static_cast<double>(i))) : x);
  return stack(std::span<Array const>(parts), 0);
}

}  // namespace batched
