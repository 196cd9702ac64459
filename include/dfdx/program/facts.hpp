// SPDX-License-Identifier: BSL-1.0
// What can be said of a program, gathered in a constant expression and without the descriptors of its ops, so that
// one function can print every program (program/explain.hpp). A program that nobody asks pays nothing for this
// header.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dfdx/program/train_step.hpp>

namespace dfdx {

namespace detail {

/// NodeFacts - what is said of a node. Not its op's descriptor: that would bring the op's rules into the program's
/// text.
struct NodeFacts {
  char const* name = "";
  Code code = Code::opaque;
  int arity = 0;
  Meta meta{};
  index_t input = -1;
  std::array<std::int32_t, max_arity> in{};
  int step = -1;  // the step that computes it; views and constants have none
};

struct StepFacts {
  index_t flops = 0, bytes = 0;  // if static
  int same_as = -1;              // an earlier step that runs the same kernel
};

/// ProgramFacts - all of the above for one program, seen through views of its constants.
struct ProgramFacts {
  std::span<NodeFacts const> nodes;
  std::span<StepFacts const> costs;
  std::span<int const> outputs;
  std::span<graph::Step const> steps;
  std::span<index_t const> code;
  std::span<graph::Argument const> arguments;
  std::span<graph::Buffer const> buffers;
  std::span<graph::StepLoop const> loops;
  std::span<graph::Turn const> turns;
  bool is_static = false;
  int distinct_kernels = 0;
  index_t flops = 0, bytes_moved = 0, arena_bytes = 0;
  std::vector<std::string> inputs;  // names
};

template <class P>
constexpr auto node_facts() {
  std::array<NodeFacts, static_cast<std::size_t>(P::nodes)> r{};
  graph::Fusion const f = graph::plan_fusion(program_graph<P>.thaw());
  std::vector<int> step_of(f.groups.size(), -1);
  int k = 0;
  for (graph::Step const& s : P::plan.steps) {
    for (int node : {s.node, s.epilogue_node})
      if (node >= 0 && s.kind != graph::Step::Kind::move)
        step_of[static_cast<std::size_t>(f.place[static_cast<std::size_t>(node)].group)] = k;
    for (std::size_t i = 0; s.rolled >= 0 && i < f.groups.size(); ++i)
      if (f.groups[i].region == s.rolled) step_of[i] = k;
    ++k;
  }
  for (std::size_t i = 0; i < r.size(); ++i) {
    Node const& n = program_graph<P>.nodes[i];
    int const group = f.place[i].group;
    r[i] = NodeFacts{n.op->name,
                     n.op->code,
                     n.op->arity,
                     n.meta,
                     n.op->code == Code::input ? n.attrs.i[0] : -1,
                     {},
                     group < 0 ? -1 : step_of[static_cast<std::size_t>(group)]};
    for (std::size_t a = 0; a < max_arity; ++a) r[i].in[a] = n.in[a];
  }
  return r;
}
template <class P>
inline constexpr auto node_facts_of = node_facts<P>();

template <class P>
inline constexpr auto step_facts_of = [] {
  std::array<StepFacts, static_cast<std::size_t>(P::kernels)> r{};
  for (std::size_t k = 0; k < r.size(); ++k) {
    auto const first = static_cast<int>(graph::first_with_kernel(P::plan, program_graph<P>.nodes, k));
    if (first != static_cast<int>(k)) r[k].same_as = first;
    if (P::is_static) r[k].bytes = graph::bytes_moved(P::plan, program_graph<P>.nodes, P::plan.steps[k]);
  }
  for (std::size_t i = 0; P::is_static && i < node_facts_of<P>.size(); ++i) {
    Node const& n = program_graph<P>.nodes[i];
    if (n.op->arity == 0 || node_facts_of<P>[i].step < 0) continue;
    auto const step = static_cast<std::size_t>(node_facts_of<P>[i].step);
    int const rolled = P::plan.steps[step].rolled;
    index_t const times = rolled < 0 ? 1 : program_graph<P>.regions[static_cast<std::size_t>(rolled)].count;
    r[step].flops += times * graph::flops(n, program_graph<P>.nodes);
  }
  return r;
}();

// The arrays of a plan without the graph beside them, for the same reason.
template <class P>
inline constexpr auto plan_of = P::plan;
template <class P>
inline constexpr auto outputs_of = program_graph<P>.outputs;

template <class F>
std::string argument_name(std::size_t i) {
  if constexpr (requires { F::argument_name(i); }) return F::argument_name(i);
  else return "arg" + std::to_string(i);
}

template <class F, class... A>
ProgramFacts facts_of(program<F, A...>) {
  using P = program<F, A...>;
  constexpr int distinct = P::distinct_kernels();
  constexpr index_t flops = P::flops(), bytes = P::bytes_moved();
  ProgramFacts r{node_facts_of<P>,
                 step_facts_of<P>,
                 outputs_of<P>,
                 plan_of<P>.steps,
                 plan_of<P>.code,
                 plan_of<P>.arguments,
                 plan_of<P>.buffers,
                 plan_of<P>.loops,
                 plan_of<P>.turns,
                 P::is_static,
                 distinct,
                 flops,
                 bytes,
                 P::arena_bytes,
                 {}};
  std::size_t i = 0;
  auto const name = [&](auto const& tree) {
    visit_named(
        tree, [&](std::string const& path, auto const&) { r.inputs.push_back(path); }, argument_name<F>(i++));
  };
  (name(unfixed(argument_t<A>{})), ...);
  for (int k = 0; k < P::plan.literal_inputs.count; ++k) r.inputs.push_back("literal" + std::to_string(k));
  for (int k = 0; static_cast<int>(r.inputs.size()) < P::inputs; ++k)  // program/fixed.hpp
    r.inputs.push_back("kept" + std::to_string(k));
  return r;
}

}  // namespace detail

}  // namespace dfdx
