// SPDX-License-Identifier: BSL-1.0
// What the benchmarks share: a clock, interleaved rounds, and the row that each prints for bench/report.py.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace bench {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// One line of the table. What is unknown becomes null; a row without a peer says so.
struct Row {
  std::string bench, name;
  double ours_ms = unknown;
  std::string peer{};
  double peer_ms = unknown;
  double roof = unknown;   // share of the machine's roof, 0 to 1
  double error = unknown;  // largest relative difference from the reference
  std::string note{};
  double peak_mb = unknown, peer_peak_mb = unknown;  // the most memory at a time
  double arena_mb = unknown;                         // what of it a program lays out
  double flops = unknown, bytes = unknown;  // the work: operations, and what must be read and written once
};

inline std::string json(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

inline void print(Row const& r) {
  std::string const peer = r.peer.empty() ? "null" : "\"" + r.peer + "\"";
  std::printf(
      "{\"bench\": \"%s\", \"case\": \"%s\", \"ours_ms\": %s, \"peer\": %s, \"peer_ms\": %s, \"ratio\": %s, "
      "\"roof\": %s, \"error\": %s, \"peak_mb\": %s, \"peer_peak_mb\": %s, \"arena_mb\": %s, \"flops\": %s, "
      "\"bytes\": %s, \"note\": \"%s\"}\n",
      r.bench.c_str(), r.name.c_str(), json(r.ours_ms).c_str(), peer.c_str(), json(r.peer_ms).c_str(),
      json(r.ours_ms / r.peer_ms).c_str(), json(r.roof).c_str(), json(r.error).c_str(),
      json(r.peak_mb).c_str(), json(r.peer_peak_mb).c_str(), json(r.arena_mb).c_str(), json(r.flops).c_str(),
      json(r.bytes).c_str(), r.note.c_str());
  std::fflush(stdout);
}

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds per call of f, called so often.
template <class F>
double time_of(F const& f, long calls) {
  double const start = seconds();
  for (long i = 0; i < calls; ++i) {
    f();
    asm volatile("" ::: "memory");
  }
  return (seconds() - start) / static_cast<double>(calls);
}

/// How many calls of f take at least so many seconds.
template <class F>
long calls_for(F const& f, double least) {
  long calls = 1;
  while (time_of(f, calls) * static_cast<double>(calls) < least) calls *= 2;
  return calls;
}

inline double median(std::vector<double> v) {
  auto const middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

inline double best(std::vector<double> const& v) { return *std::min_element(v.begin(), v.end()); }

}  // namespace bench
