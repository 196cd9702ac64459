// SPDX-License-Identifier: BSL-1.0
// program<F, A...>: what the compiler makes of a function for argument types. All of it is constant: the graph, the plan,
// the layout of the arena. Running it is a sequence of kernel calls on memory that the caller owns.
#pragma once

#include <array>

#include <dfdx/graph/cost.hpp>
#include <dfdx/kernels/loop.hpp>
#include <dfdx/kernels/matmul.hpp>
#include <dfdx/program/trace.hpp>

namespace dfdx {

namespace detail {

template <class T, std::size_t N>
constexpr std::array<T, N> frozen(Vec<T> const& v) {
  std::array<T, N> r{};
  for (std::size_t i = 0; i < N; ++i) r[i] = v[i];
  return r;
}

struct GraphSize {
  std::size_t nodes, outputs, requirements;
};
struct PlanSize {
  std::size_t steps, code, arguments, buffers, results, own_kernels, requirements;
};

// Aliases that a transform asks for (train_step writes parameters in place).
template <class F, class... A>
constexpr graph::Aliases aliases_of() {
  if constexpr (requires { F::template aliases<argument_t<A>...>(); }) return F::template aliases<argument_t<A>...>();
  else return {};
}

template <std::size_t Nodes, std::size_t Outputs, std::size_t Requirements>
struct FrozenGraph {
  std::array<Node, Nodes> nodes;
  std::array<int, Outputs> outputs;
  std::array<SameExtent, Requirements> requirements;
  int inputs;

  /// The graph as passes take it.
  constexpr Graph thaw() const {
    Graph g;
    g.nodes.assign(nodes.begin(), nodes.end());
    g.outputs.assign(outputs.begin(), outputs.end());
    g.requirements.assign(requirements.begin(), requirements.end());
    g.inputs = inputs;
    return g;
  }
};

template <GraphSize S>
constexpr auto freeze_graph(Graph const& g) {
  return FrozenGraph<S.nodes, S.outputs, S.requirements>{
      frozen<Node, S.nodes>(g.nodes), frozen<int, S.outputs>(g.outputs),
      frozen<SameExtent, S.requirements>(g.requirements), g.inputs};
}

template <PlanSize S>
struct FrozenPlan {
  std::array<graph::Step, S.steps> steps;
  std::array<index_t, S.code> code;
  std::array<graph::Argument, S.arguments> arguments;
  std::array<graph::Buffer, S.buffers> buffers;
  std::array<graph::Result, S.results> results;
  std::array<graph::OwnKernel, S.own_kernels> own_kernels;
  std::array<SameExtent, S.requirements> requirements;
  int inputs, nodes;
  bool is_static;
};

template <PlanSize S>
constexpr auto freeze_plan(graph::Plan const& p) {
  return FrozenPlan<S>{frozen<graph::Step, S.steps>(p.steps),
                       frozen<index_t, S.code>(p.code),
                       frozen<graph::Argument, S.arguments>(p.arguments),
                       frozen<graph::Buffer, S.buffers>(p.buffers),
                       frozen<graph::Result, S.results>(p.results),
                       frozen<graph::OwnKernel, S.own_kernels>(p.own_kernels),
                       frozen<SameExtent, S.requirements>(p.requirements),
                       p.inputs,
                       p.nodes,
                       p.is_static};
}

// Part of a list of numbers as a type.
template <class Plan, int Begin, std::size_t... I>
auto numbers_of(std::index_sequence<I...>) -> kernels::Numbers<Plan::plan.code[static_cast<std::size_t>(Begin) + I]...>;

}  // namespace detail

/// program - the compiled form of F for arguments A...: its facts are constants, `run` executes it.
///
/// Cost      `arena_bytes` of memory (if no dim is dyn), `kernels` kernel calls, no allocation
/// Threading one arena serves one run at a time
template <class F, class... A>
struct program {
  using result = result_t<F, A...>;

  static constexpr Graph build() {
    return graph::prepare(graph::simplify(trace<F, A...>()), detail::aliases_of<F, A...>());
  }
  static constexpr graph::Plan build_plan() { return graph::make_plan(build(), detail::aliases_of<F, A...>()); }
  static constexpr detail::PlanSize plan_size = [] {
    graph::Plan const p = build_plan();
    return detail::PlanSize{p.steps.size(),   p.code.size(),        p.arguments.size(),   p.buffers.size(),
                            p.results.size(), p.own_kernels.size(), p.requirements.size()};
  }();
  /// The plan, a constant. It is all that running needs: the graph below is made only for those who ask for it.
  static constexpr auto plan = detail::freeze_plan<plan_size>(build_plan());

  static constexpr detail::GraphSize graph_size = [] {
    Graph const g = build();
    return detail::GraphSize{g.nodes.size(), g.outputs.size(), g.requirements.size()};
  }();
  /// The graph after simplification, a constant.
  static constexpr auto graph = detail::freeze_graph<graph_size>(build());

  static constexpr int inputs = plan.inputs;
  static constexpr int outputs = static_cast<int>(plan_size.results);
  static constexpr int nodes = plan.nodes;
  static constexpr int kernels = static_cast<int>(plan_size.steps);
  static constexpr bool is_static = plan.is_static;

  /// distinct_kernels - kernels that had to be compiled: steps with equal descriptions share one. This and the two
  /// below are functions, so that a program that nobody asks does not pay for the answer.
  static constexpr int distinct_kernels() { return graph::distinct_kernels(plan, graph.nodes); }
  /// flops, bytes_moved - of one run; -1 where a dim is dyn, unless the values of the symbolic extents are given.
  static constexpr index_t flops(index_t const* symbols = nullptr) {
    return is_static || symbols != nullptr ? graph::total_flops(graph.nodes, symbols) : -1;
  }
  static constexpr index_t bytes_moved(index_t const* symbols = nullptr) {
    return is_static || symbols != nullptr ? graph::total_bytes_moved(plan, graph.nodes, symbols) : -1;
  }

 private:
  using Offsets = std::array<index_t, plan_size.buffers + 1>;
  struct Layout {
    Offsets offsets{};
    index_t buffers = 0;    // bytes of all buffers
    index_t workspace = 0;  // bytes of scratch for matrix products, behind the buffers
  };

  static constexpr graph::Step step_at(int s) { return plan.steps[static_cast<std::size_t>(s)]; }
  template <int Begin, int End>
  using numbers =
      decltype(detail::numbers_of<program, Begin>(std::make_index_sequence<static_cast<std::size_t>(End - Begin)>{}));
  static constexpr int code_end(int s) { return step_at(s).code + step_at(s).code_size; }
  template <int S>
  static constexpr auto epilogue_of() {
    if constexpr (step_at(S).epilogue < 0) return std::type_identity<dfdx::kernels::store_sum>{};
    else
      return std::type_identity<dfdx::kernels::LoopEpilogue<numbers<step_at(S).epilogue, code_end(S)>, step_at(S).given,
                                                            step_at(S).stored, step_at(S).epilogue_reads_result>>{};
  }
  template <int S>
  using matmul_kernel = dfdx::kernels::Matmul<
      element_t<plan.arguments[static_cast<std::size_t>(step_at(S).argument)].dtype>,
      numbers<step_at(S).code, step_at(S).epilogue >= 0 ? step_at(S).epilogue : code_end(S)>,
      typename decltype(epilogue_of<S>())::type>;

  template <class G>
  static constexpr void for_steps(G g) {
    [&]<std::size_t... S>(std::index_sequence<S...>) {
      (g(std::integral_constant<int, static_cast<int>(S)>{}), ...);
    }(std::make_index_sequence<plan_size.steps>{});
  }

 public:
  static constexpr Layout layout(index_t const* symbols) {
    Layout r;
    r.buffers = graph::place_buffers(plan.buffers, symbols, r.offsets);
    for_steps([&](auto s) {
      constexpr int k = decltype(s)::value;
      if constexpr (step_at(k).kind == graph::Step::Kind::matmul) {
        auto const w = static_cast<index_t>(matmul_kernel<k>::workspace(symbols));
        if (w > r.workspace) r.workspace = w;
      }
    });
    return r;
  }

 private:
  static constexpr Layout static_layout = [] {
    if constexpr (is_static) return layout(nullptr);
    else return Layout{};
  }();

 public:
  /// Bytes of memory a run needs, for static programs.
  static constexpr index_t arena_bytes = static_layout.buffers + static_layout.workspace;

  /// Memory of one run: the arena, the inputs in order of their leaves, the values of symbolic extents, and the layout
  /// if it is not static.
  struct Frame {
    std::byte* arena = nullptr;
    std::byte* const* inputs = nullptr;
    index_t const* symbols = nullptr;
    Layout const* layout = nullptr;
  };

  /// Where an argument starts.
  static std::byte* address(graph::Argument const& a, Frame const& f) {
    if (a.kind == graph::Argument::Kind::none) return nullptr;
    std::byte* base = a.kind == graph::Argument::Kind::input
                          ? f.inputs[a.index]
                          : f.arena + (is_static ? static_layout : *f.layout).offsets[static_cast<std::size_t>(a.index)];
    return base + extent::resolve(a.offset, f.symbols) * static_cast<index_t>(size_of(a.dtype));
  }

  /// run - executes the plan.
  static void run(Frame const& f) {
    for_steps([&](auto s) { run_step<decltype(s)::value>(f); });
  }

 private:
  static void* workspace(Frame const& f) { return f.arena + (is_static ? static_layout : *f.layout).buffers; }

  template <int S>
  static void run_step(Frame const& f) {
    constexpr std::size_t first = static_cast<std::size_t>(step_at(S).argument), n = step_at(S).arguments;
    void* base[n + 1];
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((base[I] = address(plan.arguments[first + I], f)), ...);
    }(std::make_index_sequence<n>{});
    if constexpr (step_at(S).kind == graph::Step::Kind::loop) {
      dfdx::kernels::Loop<numbers<step_at(S).code, code_end(S)>>::run(base, f.symbols);
    } else if constexpr (step_at(S).kind == graph::Step::Kind::matmul) {
      matmul_kernel<S>::run(base, workspace(f), f.symbols);
    } else if constexpr (step_at(S).kind == graph::Step::Kind::move) {
      auto const bytes = extent::resolve(plan.code[static_cast<std::size_t>(step_at(S).code)], f.symbols) *
                         static_cast<index_t>(size_of(plan.arguments[first].dtype));
      std::memcpy(base[1], base[0], static_cast<std::size_t>(bytes));
    } else {
      run_opaque<S>(base, f);
    }
  }

  // An op with a kernel of its own: operands as the run-time kernel takes them.
  template <int S>
  static void run_opaque(void* const* base, Frame const& f) {
    constexpr std::size_t n = step_at(S).arguments;
    Operand operands[n];
    std::size_t at = static_cast<std::size_t>(step_at(S).code);
    for (std::size_t i = 0; i < n; ++i) {
      Operand& o = operands[i];
      o.data = base[i];
      o.meta.dtype = plan.arguments[static_cast<std::size_t>(step_at(S).argument) + i].dtype;
      o.meta.shape.rank = o.strides.rank = static_cast<int>(plan.code[at++]);
      for (int d = 0; d < o.meta.shape.rank; ++d) o.meta.shape[d] = extent::resolve(plan.code[at++], f.symbols);
      for (int d = 0; d < o.meta.shape.rank; ++d) o.strides[d] = extent::resolve(plan.code[at++], f.symbols);
    }
    constexpr graph::OwnKernel own = plan.own_kernels[static_cast<std::size_t>(step_at(S).own_kernel)];
    constexpr auto kernel = own.run;
    constexpr Attrs attrs = own.attrs;
    kernel(attrs, operands, operands[n - 1]);
  }
};

/// node_t - node I of a program as a type: the typed graph, open to metaprograms.
template <class Program, int I>
struct node_t {
  static constexpr Node const& node = Program::graph.nodes[static_cast<std::size_t>(I)];
  static constexpr OpInfo const& op = *node.op;
  static constexpr DType dtype = node.meta.dtype;
  static constexpr Shape shape = node.meta.shape;
  template <int K>
  using input = node_t<Program, node.in[K]>;
};

}  // namespace dfdx
