// SPDX-License-Identifier: BSL-1.0
// Graphs and plans as constants: what the passes leave in growing arrays, kept in arrays of its size.
#pragma once

#include <array>

#include <dfdx/graph/absorb.hpp>
#include <dfdx/graph/casts.hpp>
#include <dfdx/graph/components.hpp>
#include <dfdx/graph/plan.hpp>
#include <dfdx/graph/scalars.hpp>
#include <dfdx/program/trace.hpp>

namespace dfdx::detail {

struct GraphSize {
  std::size_t nodes, outputs, requirements, regions;

  constexpr bool fits(GraphSize const& most) const {
    return nodes <= most.nodes && outputs <= most.outputs && requirements <= most.requirements &&
           regions <= most.regions;
  }
};
struct PlanSize {
  std::size_t steps, code, kernels, arguments, buffers, results, own_kernels, requirements, loops, turns;

  constexpr bool fits(PlanSize const& most) const {
    return steps <= most.steps && code <= most.code && kernels <= most.kernels &&
           arguments <= most.arguments && buffers <= most.buffers && results <= most.results &&
           own_kernels <= most.own_kernels && requirements <= most.requirements && loops <= most.loops &&
           turns <= most.turns;
  }
};

// Aliases that a transform asks for (train_step writes parameters in place).
template <class F, class... A>
constexpr graph::Aliases aliases_of() {
  if constexpr (requires { F::template aliases<argument_t<A>...>(); })
    return F::template aliases<argument_t<A>...>();
  else return {};
}

template <GraphSize S>
struct FrozenGraph {
  std::array<Node, S.nodes> nodes{};
  std::array<int, S.outputs> outputs{};
  std::array<SameExtent, S.requirements> requirements{};
  std::array<Region, S.regions> regions{};
  int inputs = 0;
  LiteralInputs literal_inputs{};

  /// The graph as passes take it; `size` is how much of the arrays is in use.
  constexpr Graph thaw(GraphSize const& size = S) const {
    Graph g;
    g.nodes.assign(nodes.data(), nodes.data() + size.nodes);
    g.outputs.assign(outputs.data(), outputs.data() + size.outputs);
    g.requirements.assign(requirements.data(), requirements.data() + size.requirements);
    g.regions.assign(regions.data(), regions.data() + size.regions);
    g.inputs = inputs;
    g.literal_inputs = literal_inputs;
    return g;
  }
};

template <PlanSize S>
struct FrozenPlan {
  std::array<graph::Step, S.steps> steps{};
  std::array<index_t, S.code> code{};
  std::array<int, S.kernels> kernels{};
  std::array<graph::Argument, S.arguments> arguments{};
  std::array<graph::Buffer, S.buffers> buffers{};
  std::array<graph::Result, S.results> results{};
  std::array<graph::OwnKernel, S.own_kernels> own_kernels{};
  std::array<SameExtent, S.requirements> requirements{};
  std::array<graph::StepLoop, S.loops> loops{};
  std::array<graph::Turn, S.turns> turns{};
  int inputs = 0, nodes = 0;
  LiteralInputs literal_inputs{};
  bool is_static = true;
};

// Copies what two arrays, of which one may be larger, have in common.
template <class To, class From>
constexpr void copy_elements_of(To& to, From const& from) {
  std::size_t const n = to.size() < from.size() ? to.size() : from.size();
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}
template <GraphSize S, class G>
constexpr FrozenGraph<S> freeze_graph(G const& g) {
  FrozenGraph<S> r;
  copy_elements_of(r.nodes, g.nodes);
  copy_elements_of(r.outputs, g.outputs);
  copy_elements_of(r.requirements, g.requirements);
  copy_elements_of(r.regions, g.regions);
  r.inputs = g.inputs;
  r.literal_inputs = g.literal_inputs;
  return r;
}
template <PlanSize S, class P>
constexpr FrozenPlan<S> freeze_plan(P const& p) {
  FrozenPlan<S> r;
  copy_elements_of(r.steps, p.steps);
  copy_elements_of(r.code, p.code);
  copy_elements_of(r.kernels, p.kernels);
  copy_elements_of(r.arguments, p.arguments);
  copy_elements_of(r.buffers, p.buffers);
  copy_elements_of(r.results, p.results);
  copy_elements_of(r.own_kernels, p.own_kernels);
  copy_elements_of(r.requirements, p.requirements);
  copy_elements_of(r.loops, p.loops);
  copy_elements_of(r.turns, p.turns);
  r.inputs = p.inputs;
  r.literal_inputs = p.literal_inputs;
  r.nodes = p.nodes;
  r.is_static = p.is_static;
  return r;
}

// Graphs and plans in arrays that are large enough for most, and how much of them is in use: so that the passes run
// once, not once for the sizes and once for the content. What is larger leaves only its size.
constexpr GraphSize likely_graph_size(int leaves) {
  auto const n = static_cast<std::size_t>(leaves);
  return {12 * n + 512, 2 * n + 64, 64, 64};
}
constexpr PlanSize likely_plan_size(std::size_t nodes) {
  std::size_t const third = nodes / 3 + 16, some = nodes / 8 + 16;
  return {third, 4 * nodes + 512, third, 3 * nodes / 2 + 64, third, third, some, some, some, some};
}
template <GraphSize Most>
struct RoomyGraph {
  FrozenGraph<Most> graph;
  GraphSize size;

  constexpr Graph thaw() const { return graph.thaw(size); }
};
template <PlanSize Most>
struct RoomyPlan {
  FrozenPlan<Most> plan;
  PlanSize size;
};
template <GraphSize Most>
constexpr RoomyGraph<Most> keep_graph(Graph const& g) {
  GraphSize const size{g.nodes.size(), g.outputs.size(), g.requirements.size(), g.regions.size()};
  return {size.fits(Most) ? freeze_graph<Most>(g) : FrozenGraph<Most>{}, size};
}
template <PlanSize Most>
constexpr RoomyPlan<Most> keep_plan(graph::Plan const& p) {
  PlanSize const size{p.steps.size(),   p.code.size(),    p.kernels.size(),     p.arguments.size(),
                      p.buffers.size(), p.results.size(), p.own_kernels.size(), p.requirements.size(),
                      p.loops.size(),   p.turns.size()};
  return {size.fits(Most) ? freeze_plan<Most>(p) : FrozenPlan<Most>{}, size};
}

// The graph as the plan takes it. A function may say what its simplified graph is (program/fixed.hpp).
template <class F, class... A>
constexpr Graph build_graph() {
  auto const ready = [](Graph g) {
    auto const aliases = aliases_of<F, A...>();
    Graph split = graph::split_components(graph::place_casts(std::move(g)), aliases);
    return graph::prepare(graph::scalarize(graph::absorb(std::move(split))), aliases);
  };
  if constexpr (requires { F::template graph<A...>(); }) return ready(F::template graph<A...>());
  else return ready(graph::simplify(trace<F, A...>()));
}

}  // namespace dfdx::detail
