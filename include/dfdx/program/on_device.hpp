// SPDX-License-Identifier: BSL-1.0
// How a compiled program runs on a CUDA device: the steps of its plan are started one after another on the device's
// stream, each from the description that the CPU's kernel is made of. When it is called again with the same memory, the
// steps are captured into a CUDA graph, and from then on a call is one launch.
//
// Ops that have kernels of their own have one for the device too (program/own_step.hpp), or run on the CPU, on
// copies of their operands: what those are part of is not captured.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <dfdx/kernels/cuda/loop.hpp>
#include <dfdx/kernels/cuda/matmul.hpp>
#include <dfdx/kernels/cuda/replay.hpp>
#include <dfdx/program/own_step.hpp>
#include <dfdx/program/program.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// OnDevice - program P on a device.
template <class P>
class OnDevice {
  using Frame = typename P::Frame;
  using Start = cudaError_t (*)(void* const* base, void* workspace, index_t const* symbols, Device device,
                                cudaStream_t stream);
  using Kind = graph::Step::Kind;

  static constexpr int kernels = static_cast<int>(P::plan_size.kernels);
  template <int K>
  static constexpr int step_of = P::plan.kernels[static_cast<std::size_t>(K)];
  static constexpr graph::Step const& step_at(int s) { return P::steps[static_cast<std::size_t>(s)]; }

  struct Move {
    static constexpr index_t workspace(index_t const*) { return 0; }
  };
  template <int S>
  struct MoveStep : Move {
    static cudaError_t run(void* const* base, void*, index_t const* symbols, Device, cudaStream_t stream) {
      constexpr graph::Step step = step_at(S);
      auto const bytes =
          extent::resolve(P::code[static_cast<std::size_t>(step.code)], symbols) *
          static_cast<index_t>(size_of(P::plan.arguments[static_cast<std::size_t>(step.argument)].dtype));
      if (bytes == 0) return cudaSuccess;
      return cudaMemcpyAsync(base[1], base[0], static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                             stream);
    }
  };
  template <int S>
  static constexpr auto starter() {
    if constexpr (step_at(S).kind == Kind::loop)
      return std::type_identity<dfdx::kernels::cuda::LoopStep<step_code_t<P, S>>>{};
    else if constexpr (step_at(S).kind == Kind::matmul)
      return std::type_identity<dfdx::kernels::cuda::MatmulStep<typename P::template matmul_kernel<S>>>{};
    else if constexpr (step_at(S).kind == Kind::move) return std::type_identity<MoveStep<S>>{};
    else return std::type_identity<OwnStep<P, S>>{};
  }
  template <int K>
  using Starter = typename decltype(starter<step_of<K>>())::type;

  template <class G>
  static constexpr auto with_kernels(G g) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return g(std::type_identity<Starter<static_cast<int>(K)>>{}...);
    }(std::make_index_sequence<static_cast<std::size_t>(kernels)>{});
  }

  static constexpr bool is_captured = with_kernels([](auto... k) {
    auto const one = [](auto step) {
      if constexpr (requires { decltype(step)::type::is_on_device; })
        return decltype(step)::type::is_on_device;
      else return true;
    };
    return (one(k) && ... && true);
  });
  static constexpr int positions_needed = [] {
    int n = 0;
    for (graph::StepLoop const& l : P::plan.loops) n = l.region > n ? l.region : n;
    return n + 1;
  }();
  static constexpr int most_arguments = [] {
    int n = 0;
    for (graph::Step const& s : P::steps) n = s.arguments > n ? s.arguments : n;
    return n;
  }();

 public:
  /// Literals on a device, copied when first asked for and kept as long as the process lives.
  static std::byte* literals(std::byte* here, std::size_t bytes, Device device) {
    static std::mutex alone;
    static Vec<Array>& copies = *new Vec<Array>;  // never destroyed: the device may be gone by then
    std::lock_guard const lock(alone);
    for (Array const& c : copies)
      if (c.device() == device) return c.bytes();
    copies.push_back(moved(device, Array::borrow(here, Meta{DType::u8, make_shape(bytes)})));
    return copies.back().bytes();
  }

  /// Bytes of memory that a run needs behind the buffers.
  static index_t workspace(index_t const* symbols) {
    return with_kernels([&](auto... k) {
      index_t most = 0;
      ((most = decltype(k)::type::workspace(symbols) > most ? decltype(k)::type::workspace(symbols) : most),
       ...);
      return most;
    });
  }

  /// run - asks the device for all steps; it returns before they are done.
  ///
  /// Errors    "cuda: step 2 of 5, matmul [64, 10]: ...", with what the runtime says
  static void run(Frame const& f, std::byte* workspace) {
    cuda_runtime::Current const current(f.device);
    cudaStream_t const stream = cuda_runtime::stream(f.device);
    auto const steps = [&] { each_step(f, workspace, stream, [](int, auto const& start) { start(); }); };
    if constexpr (is_captured)
      if (cuda_options.capture) {
        static thread_local cuda_runtime::Replay replay;
        // Options say which kernels were captured.
        static thread_local CudaOptions options;
        if (options != cuda_options) replay.forget();
        options = cuda_options;
        cuda_runtime::Range const range("captured program");
        return replay.run(key_of(f), stream, steps);
      }
    steps();
  }

  /// time_each - the same, never captured: took(k, seconds) after each step, by the device's clock.
  template <class Took>
  static void time_each(Frame const& f, std::byte* workspace, Took const& took) {
    cuda_runtime::Current const current(f.device);
    cudaStream_t const stream = cuda_runtime::stream(f.device);
    cuda_runtime::Stopwatch watch(stream);
    each_step(f, workspace, stream, [&](int k, auto const& start) { took(k, watch.seconds(start)); });
  }

 private:
  static std::vector<std::uintptr_t> key_of(Frame const& f) {
    std::vector<std::uintptr_t> key{reinterpret_cast<std::uintptr_t>(f.arena),
                                    static_cast<std::uintptr_t>(f.device.index)};
    for (int i = 0; i < P::inputs; ++i) key.push_back(reinterpret_cast<std::uintptr_t>(f.inputs[i]));
    if (!P::is_static)
      for (int i = 0; i < max_symbols; ++i) key.push_back(static_cast<std::uintptr_t>(f.symbols[i]));
    return key;
  }

  template <class Watch>
  static void each_step(Frame const& f, void* workspace, cudaStream_t stream, Watch const& watch) {
    index_t positions[positions_needed] = {};
    Frame here = f;
    here.positions = positions;
    graph::run_steps(P::plan.loops, 0, 0, P::kernels, positions, [&](int k) {
      graph::Step const& s = P::plan.steps[static_cast<std::size_t>(k)];
      void* base[most_arguments + 1];
      for (int i = 0; i < s.arguments; ++i)
        base[i] = P::address(P::plan.arguments[static_cast<std::size_t>(s.argument + i)], here);
      cuda_runtime::Range const range(name_of_step(k));
      watch(k, [&] {
        cudaError_t const said =
            table()[static_cast<std::size_t>(s.kernel)](base, workspace, f.symbols, f.device, stream);
        if (said != cudaSuccess) failed(k, f.symbols, said);
      });
    });
  }
  static auto const& table() {
    static constexpr auto all =
        with_kernels([](auto... k) { return std::array<Start, sizeof...(k)>{&decltype(k)::type::run...}; });
    return all;
  }

  static char const* name_of_step([[maybe_unused]] int k) {
#if defined(DFDX_NVTX)
    return program_graph<P>.nodes[static_cast<std::size_t>(step_at(k).node)].op->name;
#else
    return nullptr;
#endif
  }
  [[noreturn]] static void failed(int k, index_t const* symbols, cudaError_t said) {
    Node const& n = program_graph<P>.nodes[static_cast<std::size_t>(step_at(k).node)];
    Shape shape = n.meta.shape;
    for (int i = 0; i < shape.rank; ++i) shape[i] = extent::resolve(shape[i], symbols);
    Text what;
    what.put("step ").put(k + 1).put(" of ").put(P::kernels).put(", ").put(n.op->name).put(" ").put(shape);
    cuda_runtime::failed(what.c_str(), said);
  }
};

}  // namespace dfdx::detail::inline DFDX_TARGET
