// SPDX-License-Identifier: BSL-1.0
// A training step of ours against the same of a peer, where there is one: equal losses first, then rounds in turns.
#pragma once

#include <cstdlib>

#include "roof.hpp"

namespace bench {

/// Both report equal losses over some steps; where they differ by more than `tolerance` of the loss the program ends.
template <class Ours, class Its>
void require_equal_losses(Row& row, int steps, double tolerance, Ours const& ours, Its const& its) {
  row.error = 0;
  for (int i = 0; i < steps; ++i) {
    double const mine = ours(i), theirs = its(i);
    row.error = std::max(row.error, std::abs(mine - theirs) / std::abs(theirs));
    if (row.error < tolerance) continue;
    std::fprintf(stderr, "%s: the losses differ in step %d: %.7g, the peer's %.7g\n", row.bench.c_str(), i,
                 mine, theirs);
    std::exit(1);
  }
}

/// NoPeer - stands for a peer's step where the peer is missing.
struct NoPeer {
  void operator()() const {}
};

/// Rounds of both take turns, each of so many calls; medians go into the row, with the share of the roof that the step
/// reaches in `flops` operations, and the row is printed.
template <class Ours, class Its = NoPeer>
void time_steps(Row& row, double flops, int rounds, long calls, Ours const& ours, Its const& its = {}) {
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
  row.ours_ms = median(mine) * 1e3;
  row.roof = flops / median(mine) / roof;
  if (!alone) row.peer_ms = median(theirs) * 1e3;
  char note[100];
  std::snprintf(note, sizeof note, "floor %.3g ms: %.3g MFLOP at %.1f GFLOP/s; best round %.3g ms",
                flops / roof * 1e3, flops / 1e6, roof / 1e9, best(mine) * 1e3);
  row.note = note;
  print(row);
}

}  // namespace bench
