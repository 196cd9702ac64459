// SPDX-License-Identifier: BSL-1.0
// The last rewriting of a graph before it is fused: every output, and every operand of a kernel that reads memory,
// gets memory to stand in. Copies are inserted where a value is only an input, a constant or a view.
#pragma once

#include <dfdx/graph/views.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

/// Aliases - for each output the input whose memory it takes over when the program is done with that input, or -1.
using Aliases = Vec<int>;

/// prepare - the same graph with copies where memory is needed.
constexpr Graph prepare(Graph const& g, Aliases const& aliases) {
  Vec<Access> const access = accesses(g);
  Vec<int> to(g.nodes.size(), -1), copied(g.nodes.size(), -1);
  Graph out;
  out.inputs = g.inputs;
  out.requirements = g.requirements;
  auto const copy_of = [&](int id) {
    int& c = copied[static_cast<std::size_t>(id)];
    if (c < 0) c = bind<op::copy>(Attrs{}, Sym{&out, to[static_cast<std::size_t>(id)]}).id;
    return c;
  };
  auto const code_under = [&](int id) { return g[access[static_cast<std::size_t>(id)].root].code(); };
  for (int id = 0; id < g.size(); ++id) {
    Node n = g[id];
    bool const reads_memory =
        !is_view(n) && !n.op->elementwise && (n.code() == Code::opaque || n.code() == Code::matmul);
    for (int k = 0; k < n.arity(); ++k) {
      int const x = g[id].in[k];
      bool const generated = code_under(x) == Code::constant || code_under(x) == Code::iota;
      n.in[k] = reads_memory && generated ? copy_of(x) : to[static_cast<std::size_t>(x)];
    }
    to[static_cast<std::size_t>(id)] = out.push(n).id;
  }
  Vec<char> taken(g.nodes.size(), 0);
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    int const id = g.outputs[k];
    Code const under = code_under(id);
    bool const no_memory = under == Code::input || under == Code::constant || under == Code::iota;
    bool const aliased = k < aliases.size() && aliases[k] >= 0;
    auto& used = taken[static_cast<std::size_t>(id)];
    if (aliased && (is_view(g[id]) || no_memory || used != 0))
      out.outputs.push_back(bind<op::copy>(Attrs{}, Sym{&out, to[static_cast<std::size_t>(id)]}).id);
    else out.outputs.push_back(no_memory ? copy_of(id) : to[static_cast<std::size_t>(id)]);
    if (aliased) used = 1;
  }
  return out;
}

}  // namespace dfdx::graph
