// SPDX-License-Identifier: BSL-1.0
// profile: how long each kernel of a program takes on this machine, beside what explain says of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iosfwd>

#include <dfdx/program/explain.hpp>

namespace dfdx {

/// KernelTime - one kernel in a run of a program: all its calls, if it stands in a loop.
struct KernelTime {
  std::string title;             ///< as explain names it
  double seconds = 0;            ///< median over the runs
  index_t flops = 0, bytes = 0;  ///< as explain counts them; 0 where dims are dyn
};

/// Profile - what profile returns.
struct Profile {
  std::vector<KernelTime> kernels;
  double seconds = 0;  ///< the sum of the medians
  int runs = 0;

  /// text - a table, a line for each kernel: time, share of the program, and where they are known the rate of its
  /// arithmetic and of the memory it moves.
  std::string text() const {
    std::string r;
    char line[160];
    auto const put = [&](char const* format, auto... x) {
      std::snprintf(line, sizeof line, format, x...);
      r += line;
    };
    put("%.4g ms in %zu kernels, medians of %d runs\n", seconds * 1e3, kernels.size(), runs);
    for (KernelTime const& k : kernels) {
      put("%9.4f ms %5.1f %%", k.seconds * 1e3, seconds > 0 ? 100 * k.seconds / seconds : 0.0);
      double const unit = k.seconds > 0 ? 1e-9 / k.seconds : 0;
      if (k.bytes > 0)
        put(" %7.2f GFLOP/s %7.2f GB/s", static_cast<double>(k.flops) * unit,
            static_cast<double>(k.bytes) * unit);
      r += "  " + k.title + "\n";
    }
    return r;
  }
};

/// out << p - prints p.text(). A template, so that <ostream> is included by whoever uses it.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, Profile const& p) {
  return out << p.text();
}

namespace detail {

// Runs program P on these arguments, again and again for about a quarter of a second, with a clock around each kernel.
// (On a device its steps are not captured: it waits for each.)
template <class P, class... A>
Profile profile_program(A const&... args) {
  using Clock = std::chrono::steady_clock;
  constexpr auto n = static_cast<std::size_t>(P::kernels);
  Inputs<P> inputs;
  (inputs.add(args), ...);
  inputs.complete();
  require_kernels(inputs.device);
  Kept<P> kept;
  kept.add_to(inputs, args...);
  auto const layout = P::layout(inputs.symbols);
  Array const arena(Meta{DType::u8, make_shape(P::arena_on(inputs.device, &layout, inputs.symbols))},
                    inputs.device);
  typename P::Frame const frame{arena.bytes(), inputs.data, inputs.symbols, &layout, inputs.device};

  std::vector<std::vector<double>> times(n);
  auto const begin = Clock::now();
  auto const since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  // Seconds that each kernel takes are added to `to`: of a device, by its own clock.
  auto const run_once = [&](std::vector<double>& to) {
    if constexpr (has_devices)
      if (!inputs.device.is_cpu())
        return OnDevice<P>::time_each(frame, arena.bytes() + layout.buffers,
                                      [&](int k, double s) { to[static_cast<std::size_t>(k)] += s; });
    P::run_each(frame, [&](int k, auto const& call) {
      auto const start = Clock::now();
      call();
      to[static_cast<std::size_t>(k)] += since(start);
    });
  };
  constexpr int least = 5, most = 1000;
  Profile r;
  for (int run = -1; run < least || (run < most && since(begin) < 0.25); ++run) {
    std::vector<double> now(n, 0.0);
    run_once(now);
    if (run < 0) continue;  // the first finds cold memory
    for (std::size_t k = 0; k < n; ++k) times[k].push_back(now[k]);
    ++r.runs;
  }

  ProgramFacts const facts = facts_of(P{});
  for (std::size_t k = 0; k < n; ++k) {
    auto const middle = times[k].begin() + static_cast<std::ptrdiff_t>(times[k].size() / 2);
    std::nth_element(times[k].begin(), middle, times[k].end());
    index_t const calls = P::is_static ? graph::times_run(facts, k) : 0;
    r.kernels.push_back(
        {Explainer(facts).title(k), *middle, calls * facts.costs[k].flops, calls * facts.costs[k].bytes});
    r.seconds += *middle;
  }
  return r;
}

}  // namespace detail

/// profile(f, args...) - how long each kernel takes of the program that a compiled function runs for these arguments.
/// profile(step, model, args...) - the same for a training step; it works on copies, the model stays as it is.
///
/// Cost      about a quarter of a second, or 5 runs. Reading the clock adds some 50 ns to each call of a kernel
/// Example   examples/06_explain.cpp
template <class F, class... A>
Profile profile(Compiled<F> const&, A const&... args) {
  return detail::profile_program<typename Compiled<F>::template program_for<A...>>(
      detail::as_argument(args)...);
}
template <class Loss, optimizer O, class Model, class... A>
Profile profile(TrainStep<Loss, O>& step, Model const& model, A const&... args) {
  using Step = TrainStep<Loss, O>;
  Model const parameters = clone(model);
  auto const state = clone(step.state_for(model));
  return detail::profile_program<typename Step::template program_for<Model, A...>>(
      parameters, state, step.scalars_for(model), args...);
}

}  // namespace dfdx
