// SPDX-License-Identifier: BSL-1.0
// A training step of ours against the same in libtorch (-DDFDX_BENCH_TORCH), where that is: equal losses first, from
// equal weights, then rounds in turns. The roof is that of roof.hpp.
#pragma once

#include <cstdlib>
#include <deque>
#include <tuple>

#include <dfdx/dfdx.hpp>

#include "../bytes.hpp"
#include "../roof.hpp"

#if defined(DFDX_BENCH_TORCH)
#include "torch_trainer.hpp"
#endif

namespace bench {

/// NoPeer - stands for a peer's step where the peer is missing.
struct NoPeer {
  void operator()() const {}
};

/// Rounds of both take turns, each of so many calls; medians go into the row, with the share of the roof that the step
/// reaches in `flops` operations, and the row is printed.
template <class Ours, class Its>
void time_steps(Row& row, double flops, int rounds, long calls, Ours const& ours, Its const& its) {
  constexpr bool alone = std::is_same_v<Its, NoPeer>;
  if (!alone) time_of(its, calls);
  time_of(ours, calls);
  std::vector<double> mine, theirs;
  double roof = 0;
  for (int round = 0; round < rounds; ++round) {
    mine.push_back(time_of(ours, calls));
    if (!alone) theirs.push_back(time_of(its, calls));
    roof = std::max(roof, measure_roof(3));
  }
  row.flops = flops;
  row.ours_ms = median(mine) * 1e3;
  row.roof = flops / median(mine) / roof;
  if (!alone) row.peer_ms = median(theirs) * 1e3;
  char note[160];
  std::snprintf(note, sizeof note, "floor %.3g ms: %.3g MFLOP at %.1f GFLOP/s; best round %.3g ms",
                flops / roof * 1e3, flops / 1e6, roof / 1e9, best(mine) * 1e3);
  row.note = note;
  std::snprintf(note, sizeof note, "; memory %.3g MB, the peer's %.3g: %.2f; the arena alone %.3g MB: %.2f",
                row.peak_mb, row.peer_peak_mb, row.peak_mb / row.peer_peak_mb, row.arena_mb,
                row.arena_mb / row.peer_peak_mb);
  row.note += note;
  print(row);
}

/// What is measured of a step, beside the step itself.
struct Trial {
  char const* network;  // as torch_trainer names it
  std::string name;
  double flops;      // of one step, those of matrix products and convolutions only
  double lr;         // of the peer; ours knows its own
  double tolerance;  // between losses of the first 20 steps, as a share of them
  int rounds;
  long calls;  // in each round
};

/// Prints the row of a step on batches of (inputs, labels) in turn. Memory is what model, optimizer, arena and a batch
/// take, and the most that the peer's tensors do.
template <class Step, class Model, class X, class Y>
void run(Trial const& t, Step& step, Model& model, std::deque<std::pair<X, Y>> const& batches) {
  Row row{.bench = t.network, .name = t.name};
  std::size_t turn = 0;
  auto const ours = [&] {
    auto const& [x, y] = batches[turn++ % batches.size()];
    return static_cast<double>(step(model, x, y));
  };
  using Program = typename Step::template program_for<Model, X, Y>;
  row.arena_mb = 1e-6 * static_cast<double>(Program::arena_bytes);
  row.peak_mb =
      row.arena_mb + 1e-6 * (bytes_of(model) + bytes_of(step.state_for(model)) + bytes_of(batches[0]));
#if defined(DFDX_BENCH_TORCH)
  std::vector<torch_trainer::Weight> weights;
  dfdx::visit_state(
      model, [&](std::string const& name, auto const& leaf) { weights.push_back({name, leaf.data()}); });
  torch_trainer::Trainer torch(t.network, weights, t.lr);
  for (auto const& [x, y] : batches) torch.add_batch(x.data(), y.data());
  std::size_t its_turn = 0;
  auto const its = [&] { return static_cast<double>(torch.step(its_turn++ % batches.size())); };
  row.peer = torch_trainer::version();
  row.error = 0;
  for (int i = 0; i < 20; ++i) {
    double const mine = ours(), theirs = its();
    row.error = std::max(row.error, std::abs(mine - theirs) / std::abs(theirs));
    if (row.error < t.tolerance) continue;
    std::fprintf(stderr, "%s: the losses differ in step %d: %.7g, the peer's %.7g\n", t.network, i, mine,
                 theirs);
    std::exit(1);
  }
  row.peer_peak_mb = 1e-6 * static_cast<double>(torch.peak_bytes());
  time_steps(row, t.flops, t.rounds, t.calls, ours, its);
#else
  time_steps(row, t.flops, t.rounds, t.calls, ours, NoPeer{});
#endif
}

}  // namespace bench
