// SPDX-License-Identifier: BSL-1.0
// A gradient of ours against one written by hand: checked first, then timed in turns.
#pragma once

#include <cstdlib>

#include "../row.hpp"

namespace bench {

/// Interleaved: a round of ours, a round of theirs; medians of the rounds. A wrong result ends the program.
inline void compare(char const* bench, char const* name, int size, auto&& ours, auto&& theirs, double error,
                    char const* peer = "by hand") {
  std::string const label = std::string(name) + " " + std::to_string(size);
  if (!(error < 1e-9)) {
    std::fprintf(stderr, "%s: %s is off by %g\n", bench, label.c_str(), error);
    std::exit(1);
  }
  long const calls = calls_for(theirs, 1e-3);
  std::vector<double> a, b;
  for (int round = 0; round < 15; ++round) {
    a.push_back(time_of(ours, calls));
    b.push_back(time_of(theirs, calls));
  }
  print({.bench = bench,
         .name = label,
         .ours_ms = median(a) * 1e3,
         .peer = peer,
         .peer_ms = median(b) * 1e3,
         .error = error});
}

/// The largest error of a value and a gradient, relative to the value and to the largest partial derivative.
inline double largest_error(double const* got, double const* want, std::size_t n, double value,
                            double want_value) {
  double error = std::abs(value - want_value), scale = std::max(1e-300, std::abs(want_value));
  error /= scale;
  double e = 0, s = 1e-300;
  for (std::size_t i = 0; i < n; ++i)
    e = std::max(e, std::abs(got[i] - want[i])), s = std::max(s, std::abs(want[i]));
  return std::max(error, e / s);
}

}  // namespace bench
