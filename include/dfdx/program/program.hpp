// SPDX-License-Identifier: BSL-1.0
// program<F, A...>: what the compiler makes of a function for argument types. All of it is constant: the graph,
// the plan, the layout of the arena. Running it is a sequence of kernel calls on memory that the caller owns.
#pragma once

#include <array>

#include <dfdx/graph/cost.hpp>
#include <dfdx/kernels/divided_loop.hpp>
#include <dfdx/kernels/matmul.hpp>
#include <dfdx/program/freeze.hpp>
#include <dfdx/program/opaque_step.hpp>

namespace dfdx::inline DFDX_TARGET {
template <class F, class... A>
struct program;
}

namespace dfdx::detail::inline DFDX_TARGET {

// These are not members of program: g++ evaluates such a member once with the class and once for itself.
// Graph and plan are constants of their own: a compiler bounds the work for each.
template <GraphSize Most, class F, class... A>
inline constexpr RoomyGraph<Most> graph_within = keep_graph<Most>(build_graph<F, A...>());
// Counted here: nvcc 13 fails at leaf_count where a class template asks for it.
template <class... A>
constexpr GraphSize likely_graph_of(A... args) {
  int leaves = 0;
  (visit(args, [&](auto const&) { ++leaves; }), ...);
  return likely_graph_size(leaves);
}
// (A function: g++ 12 fails at arrays in arguments of a constant's initialiser.)
template <class... A>
constexpr GraphSize likely_graph() {
  constexpr GraphSize r = likely_graph_of(argument_t<A>{}...);
  return r;
}
// Whether F can be recorded; where it cannot the compiler has said why, and is to say no more.
template <class F, class... A>
concept has_graph =
    requires { typename std::bool_constant<(graph_within<likely_graph<A...>(), F, A...>.size.nodes > 0)>; };
template <class F, class... A>
constexpr auto const& roomy_graph() {
  constexpr GraphSize likely = likely_graph<A...>();
  constexpr GraphSize size = graph_within<likely, F, A...>.size;
  if constexpr (size.fits(likely)) return graph_within<likely, F, A...>;
  else return graph_within<size, F, A...>;
}
template <PlanSize Most, class F, class... A>
inline constexpr RoomyPlan<Most> plan_within =
    keep_plan<Most>(graph::make_plan(roomy_graph<F, A...>().thaw(), aliases_of<F, A...>()));
template <class F, class... A>
constexpr auto const& roomy_plan() {
  constexpr PlanSize likely = likely_plan_size(roomy_graph<F, A...>().size.nodes);
  constexpr PlanSize size = plan_within<likely, F, A...>.size;
  if constexpr (size.fits(likely)) return plan_within<likely, F, A...>;
  else return plan_within<size, F, A...>;
}

// What is known of program P before it is planned: its result's type and its graph.
template <class P>
struct Recorded;
template <class F, class... A>
struct Recorded<program<F, A...>> {
  using result = result_t<F, A...>;
  static constexpr bool make() {
    if constexpr (!has_graph<F, A...>) return false;
    else return static_cast<void>(roomy_graph<F, A...>()), true;
  }
};
// What runs P asks this in a function that leaves everything else of P to a function that it calls, of a type that
// need not be deduced: g++ frees memory between functions only, and so between recording and planning.
template <class P>
inline constexpr bool is_recorded = Recorded<P>::make();

// Part of a list of numbers as a type.
template <class Plan, int Begin, std::size_t... I>
auto numbers_of(std::index_sequence<I...>)
    -> kernels::Numbers<Plan::code[static_cast<std::size_t>(Begin) + I]...>;

// The graph of program P after simplification, a constant of its size. Not a member of program: it would be made
// with the class, and only reports and constant expressions ask for it.
template <class P>
inline constexpr auto program_graph = freeze_graph<P::graph().size>(P::graph().graph);

// A result copied onto the input whose memory it takes over.
template <class P, int S>
void run_move(void* const* base, void*, index_t const* symbols) {
  constexpr graph::Step step = P::plan.steps[static_cast<std::size_t>(S)];
  auto const bytes =
      extent::resolve(P::plan.code[static_cast<std::size_t>(step.code)], symbols) *
      static_cast<index_t>(size_of(P::plan.arguments[static_cast<std::size_t>(step.argument)].dtype));
  std::memcpy(base[1], base[0], static_cast<std::size_t>(bytes));
}

// Whether programs can run on other devices than the CPU, and how one does: program/on_device.hpp.
#if defined(DFDX_WITH_CUDA)
inline constexpr bool has_devices = true;
#else
inline constexpr bool has_devices = false;
#endif
template <class P>
class OnDevice;
/// require_kernels - refuses a device that this build has no kernels for.
inline void require_kernels(Device device) {
  if (!has_devices && !device.is_cpu())
    raise("program: arguments on ", device, ", this build has kernels for the CPU only");
}

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// program - the compiled form of F for arguments A...: its facts are constants, `run` executes it.
///
/// Cost      `arena_bytes` of memory (if no dim is dyn), `kernels` kernel calls, no allocation
/// Threading one arena serves one run at a time
template <class F, class... A>
struct program {
  using result = result_t<F, A...>;

  static constexpr auto const& graph() { return detail::roomy_graph<F, A...>(); }

  static constexpr detail::PlanSize plan_size = detail::roomy_plan<F, A...>().size;
  /// The plan, a constant. It is all that running needs: the graph below is made only for those who ask for it.
  static constexpr detail::FrozenPlan<plan_size> plan =
      detail::freeze_plan<plan_size>(detail::roomy_plan<F, A...>().plan);

  // Parts of the plan by themselves: to read an element of a constant, g++ first copies all of it.
  static constexpr auto steps = plan.steps;
  static constexpr auto code = plan.code;

  static constexpr int inputs = plan.inputs;
  static constexpr int outputs = static_cast<int>(plan_size.results);
  static constexpr int nodes = plan.nodes;
  static constexpr int kernels = static_cast<int>(plan_size.steps);
  static constexpr bool is_static = plan.is_static;

  /// distinct_kernels - kernels that had to be compiled: steps with equal descriptions share one. This and the two
  /// below are functions, so that a program that nobody asks does not pay for the answer.
  static constexpr int distinct_kernels() {
    return graph::distinct_kernels(plan, detail::program_graph<program>.nodes);
  }
  /// flops, bytes_moved - of one run; -1 where a dim is dyn, unless the values of the symbolic extents are given.
  static constexpr index_t flops(index_t const* symbols = nullptr) {
    return is_static || symbols != nullptr ? graph::total_flops(detail::program_graph<program>, symbols) : -1;
  }
  static constexpr index_t bytes_moved(index_t const* symbols = nullptr) {
    return is_static || symbols != nullptr
               ? graph::total_bytes_moved(plan, detail::program_graph<program>.nodes, symbols)
               : -1;
  }

 private:
  using Offsets = std::array<index_t, plan_size.buffers + 1>;

 public:
  /// Layout - where everything lies in the arena.
  struct Layout {
    Offsets offsets{};
    index_t buffers = 0;    // bytes of all buffers
    index_t workspace = 0;  // bytes of scratch for matrix products, behind the buffers
  };

 private:
  friend detail::OnDevice<program>;
  static constexpr graph::Step const& step_at(int s) { return steps[static_cast<std::size_t>(s)]; }
  template <int Begin, int End>
  using numbers = decltype(detail::numbers_of<program, Begin>(
      std::make_index_sequence<static_cast<std::size_t>(End - Begin)>{}));
  static constexpr int code_end(int s) { return step_at(s).code + step_at(s).code_size; }
  template <int S>
  static constexpr auto epilogue_of() {
    if constexpr (step_at(S).epilogue < 0) return std::type_identity<dfdx::kernels::store_sum>{};
    else
      return std::type_identity<
          dfdx::kernels::LoopEpilogue<numbers<step_at(S).epilogue, code_end(S)>, step_at(S).given,
                                      step_at(S).stored, step_at(S).epilogue_reads_result>>{};
  }
  template <int S, int Which>
  using factor_of = element_t<plan.arguments[static_cast<std::size_t>(step_at(S).argument + Which)].dtype>;
  template <int S>
  using matmul_kernel = dfdx::kernels::Matmul<
      element_t<static_cast<DType>(step_at(S).dtype)>,
      numbers<step_at(S).code, step_at(S).epilogue >= 0 ? step_at(S).epilogue : code_end(S)>,
      typename decltype(epilogue_of<S>())::type, factor_of<S, 0>, factor_of<S, 1>>;

  template <std::size_t N, class G>
  static constexpr void for_each_below(G g) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (g(std::integral_constant<int, static_cast<int>(I)>{}), ...);
    }(std::make_index_sequence<N>{});
  }
  /// A step that runs kernel K.
  template <int K>
  static constexpr int step_of = plan.kernels[static_cast<std::size_t>(K)];

 public:
  static constexpr Layout layout(index_t const* symbols) {
    Layout r;
    r.buffers = graph::place_buffers(plan.buffers, symbols, r.offsets);
    for_each_below<plan_size.kernels>([&](auto kernel) {
      constexpr int k = step_of<decltype(kernel)::value>;
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

  /// arena_on - bytes of memory that a run needs on a device, where the layout of static programs may be left out.
  static index_t arena_on(Device device, Layout const* layout, index_t const* symbols) {
    index_t bytes = layout == nullptr ? arena_bytes : layout->buffers + layout->workspace;
    if constexpr (detail::has_devices)
      if (!device.is_cpu()) bytes += detail::OnDevice<program>::workspace(symbols);
    return bytes;
  }

  /// Memory of one run: the arena, the inputs in order of their leaves, the values of symbolic extents, and the
  /// layout if it is not static.
  struct Frame {
    std::byte* arena = nullptr;
    std::byte* const* inputs = nullptr;
    index_t const* symbols = nullptr;
    Layout const* layout = nullptr;
    Device device{};
    /// Where the loops around a step are.
    index_t const* positions = nullptr;
  };

  /// Where an argument starts.
  static std::byte* address(graph::Argument const& a, Frame const& f) {
    if (a.kind == graph::Argument::Kind::none) return nullptr;
    std::byte* base =
        a.kind == graph::Argument::Kind::input
            ? f.inputs[a.index]
            : f.arena + (is_static ? static_layout : *f.layout).offsets[static_cast<std::size_t>(a.index)];
    index_t at = extent::resolve(a.offset, f.symbols);
    if constexpr (plan_size.turns != 0)
      if (a.turn >= 0) at += graph::turned(plan.turns, a.turn, f.positions, f.symbols);
    return base + at * static_cast<index_t>(size_of(a.dtype));
  }

  /// The same of argument I: where the program is static, an address and a number.
  template <std::size_t I>
  static std::byte* address(Frame const& f) {
    constexpr graph::Argument a = plan.arguments[I];
    if constexpr (a.kind == graph::Argument::Kind::none) return nullptr;
    else if constexpr (!is_static) return address(a, f);
    else {
      constexpr bool is_input = a.kind == graph::Argument::Kind::input;
      constexpr index_t from = is_input ? 0 : static_layout.offsets[static_cast<std::size_t>(a.index)];
      constexpr index_t by = from + a.offset * static_cast<index_t>(size_of(a.dtype));
      std::byte* const base = is_input ? f.inputs[a.index] : f.arena;
      if constexpr (a.turn < 0) return base + by;
      else return base + (by + turned<a.turn>(f) * static_cast<index_t>(size_of(a.dtype)));
    }
  }

  /// run - executes the plan: a table of kernels and one loop over it, or, if they are few, straight calls. On a device
  /// it returns before that has run them.
  static void run(Frame const& f) {
    if constexpr (detail::has_devices)
      if (!f.device.is_cpu())
        return detail::OnDevice<program>::run(f, f.arena + (is_static ? static_layout : *f.layout).buffers);
    void* const work = f.arena + (is_static ? static_layout : *f.layout).buffers;
    if constexpr (plan_size.loops != 0) {
      index_t positions[positions_needed] = {};
      Frame here = f;
      here.positions = positions;
      graph::run_steps(plan.loops, 0, 0, kernels, positions, [&](int k) {
        if constexpr (is_static && plan_size.steps <= few_looped_steps) {
          for_each_below<plan_size.steps>([&](auto s) {
            if (k == decltype(s)::value) run_step<decltype(s)::value>(here, work);
          });
        } else {
          run_step(static_cast<std::size_t>(k), here, work);
        }
      });
    } else if constexpr (plan_size.steps <= few_steps) {
      for_each_below<plan_size.steps>([&](auto s) { run_step<decltype(s)::value>(f, work); });
    } else {
      for (std::size_t k = 0; k < plan_size.steps; ++k) run_step(k, f, work);
    }
  }

  /// run_each - the same, kernel by kernel: watch(k, call) is to call `call`. For measuring.
  template <class Watch>
  static void run_each(Frame const& f, Watch const& watch) {
    void* const work = f.arena + (is_static ? static_layout : *f.layout).buffers;
    index_t positions[positions_needed] = {};
    Frame here = f;
    here.positions = positions;
    graph::run_steps(plan.loops, 0, 0, kernels, positions,
                     [&](int k) { watch(k, [&] { run_step(static_cast<std::size_t>(k), here, work); }); });
  }

 private:
  static void run_step(std::size_t k, Frame const& f, void* work) {
    graph::Step const& s = plan.steps[k];
    void* base[most_arguments + 1];
    for (int i = 0; i < s.arguments; ++i)
      base[i] = address(plan.arguments[static_cast<std::size_t>(s.argument + i)], f);
    table[static_cast<std::size_t>(s.kernel)](base, work, f.symbols);
  }

  // The same of a step that the compiler knows, whose addresses are sums of numbers.
  template <int K>
  static void run_step(Frame const& f, void* work) {
    constexpr graph::Step step = step_at(K);
    void* base[step.arguments + 1];
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((base[I] = address<static_cast<std::size_t>(step.argument) + I>(f)), ...);
    }(std::make_index_sequence<static_cast<std::size_t>(step.arguments)>{});
    kernel_of<step_of<step.kernel>>()(base, work, f.symbols);
  }

  // graph::turned where every size is known.
  template <int T>
  static index_t turned(Frame const& f) {
    if constexpr (T < 0) return 0;
    else {
      constexpr graph::Turn t = plan.turns[static_cast<std::size_t>(T)];
      return graph::steps_of(t, f.positions) * t.step + turned<t.next>(f);
    }
  }

  static constexpr int positions_needed = [] {
    int n = 0;
    for (graph::StepLoop const& l : plan.loops) n = l.region > n ? l.region : n;
    return n + 1;
  }();
  // A step of a loop is called once a round.
  static constexpr std::size_t few_steps = 6, few_looped_steps = [] {
    for (graph::StepLoop const& l : plan.loops)
      if (l.count >= 64) return std::size_t{64};
    return std::size_t{16};
  }();
  using KernelFunction = void (*)(void* const* base, void* workspace, index_t const* symbols);

  static constexpr int most_arguments = [] {
    int n = 0;
    for (graph::Step const& s : plan.steps) n = s.arguments > n ? s.arguments : n;
    return n;
  }();

  template <int S>
  static constexpr KernelFunction kernel_of() {
    if constexpr (step_at(S).kind == graph::Step::Kind::loop)
      return dfdx::kernels::loop_kernel<numbers<step_at(S).code, code_end(S)>>();
    else if constexpr (step_at(S).kind == graph::Step::Kind::matmul) return &matmul_kernel<S>::run;
    else if constexpr (step_at(S).kind == graph::Step::Kind::move) return &detail::run_move<program, S>;
    else return detail::own_kernel<program, S>();
  }
  static constexpr auto table = []<std::size_t... K>(std::index_sequence<K...>) {
    return std::array<KernelFunction, sizeof...(K)>{kernel_of<step_of<static_cast<int>(K)>>()...};
  }(std::make_index_sequence<plan_size.kernels>{});
};

/// step_code_t - the description of step S of a program as a type, which backends generate a kernel from.
template <class Program, int S>
using step_code_t = decltype(detail::numbers_of<Program, Program::steps[static_cast<std::size_t>(S)].code>(
    std::make_index_sequence<static_cast<std::size_t>(
        Program::steps[static_cast<std::size_t>(S)].code_size)>{}));

/// node_t - node I of a program as a type: the typed graph, open to metaprograms.
template <class Program, int I>
struct node_t {
  // auto: nvcc loses the initialiser of a reference whose type does not depend on the parameters.
  static constexpr auto const& node = detail::program_graph<Program>.nodes[static_cast<std::size_t>(I)];
  static constexpr auto const& op = *node.op;
  static constexpr DType dtype = node.meta.dtype;
  static constexpr Shape shape = node.meta.shape;
  template <int K>
  using input = node_t<Program, node.in[K]>;
};

}  // namespace dfdx::inline DFDX_TARGET
