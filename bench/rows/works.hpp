// SPDX-License-Identifier: BSL-1.0
// A piece of work of ours against the same in eager libtorch (-DDFDX_BENCH_TORCH), where that is: equal results first,
// then rounds in turns.
#pragma once

#include <cstdlib>
#include <tuple>
#include <utility>

#include <dfdx/dfdx.hpp>

#include "../bytes.hpp"
#include "../row.hpp"

#if defined(DFDX_BENCH_TORCH)
#include "torch_works.hpp"
#endif

namespace bench {

/// Trial - a row: the benchmark and the case that it belongs to, the peer's name for the work, and how far results may
/// differ, as a share of the largest number of each. Work of several results that are checked otherwise says so.
struct Trial {
  char const* bench;
  std::string name;
  char const* work;
  double tolerance = 1e-5;
  bool is_random = false;  // nothing to compare
  std::string note{};
  double peak_mb = unknown;
  double flops = unknown;
  double bytes = unknown;  // where it is not all operands and all results
};

/// wanted - an input of ours as the peer takes it; its gradient is asked for.
template <class T>
auto wanted(T const& x) {
  return std::pair(std::cref(x), true);
}
template <class T>
auto plain(T const& x) {
  return std::pair(std::cref(x), false);
}

#if defined(DFDX_BENCH_TORCH)
template <class T>
torch_works::Given given(std::pair<std::reference_wrapper<T const>, bool> const& input) {
  T const& x = input.first.get();
  torch_works::Given g{{}, x.data(), !dfdx::is_floating(x.dtype()), input.second};
  for (int i = 0; i < x.ndim(); ++i) g.shape.push_back(x.shape()[i]);
  return g;
}

/// The largest difference of any result, as a share of its largest number.
template <class Results>
double largest_difference(Results const& ours, torch_works::Work const& work) {
  double error = 0;
  std::size_t k = 0;
  dfdx::visit(ours, [&](auto const& leaf) {
    auto const mine = leaf.template to_vector<float>();
    auto const theirs = work.result(k++);
    if (mine.size() != theirs.size()) error = 1e30;
    double most = 1e-30, off = 0;
    for (std::size_t i = 0; i < mine.size() && i < theirs.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(theirs[i])));
      double const d = std::abs(static_cast<double>(mine[i]) - static_cast<double>(theirs[i]));
      off = d <= off ? off : d;  // NaN counts
    }
    error = off / most <= error ? error : off / most;
  });
  return k == work.results() ? error : 1e30;
}
#endif

/// Prints the row of `ours`, a call that returns the tree of the results, in the order of the peer's, on the inputs.
/// A wrong result ends the program.
template <class Ours, class... Inputs>
void compare_works(Trial const& t, Ours&& ours, Inputs const&... inputs) {
  Row row{.bench = t.bench, .name = t.name, .note = t.note};
  row.peak_mb = t.peak_mb;
  row.flops = t.flops;
  row.bytes = t.bytes == t.bytes ? t.bytes : (bytes_of(inputs.first.get()) + ... + bytes_of(ours()));
  auto const mine = [&] { static_cast<void>(ours()); };
  long const calls = calls_for(mine, 5e-3);
  int const rounds = 15;
  std::vector<double> a, b;
#if defined(DFDX_BENCH_TORCH)
  torch_works::Work const work(t.work, {given(inputs)...});
  work();
  row.peer = torch_works::version();
  if (!t.is_random) {
    row.error = largest_difference(ours(), work);
    if (!(row.error < t.tolerance)) {
      std::fprintf(stderr, "%s: %s is off by %g\n", t.bench, t.name.c_str(), row.error);
      std::exit(1);
    }
  }
  auto const its = [&] { work(); };
  long const its_calls = calls_for(its, 5e-3);
  for (int round = 0; round < rounds; ++round) {
    a.push_back(time_of(mine, calls));
    b.push_back(time_of(its, its_calls));
  }
  row.peer_ms = median(b) * 1e3;
  row.peer_peak_mb = work.peak_mb();
#else
  (static_cast<void>(inputs), ...);
  for (int round = 0; round < rounds; ++round) a.push_back(time_of(mine, calls));
#endif
  row.ours_ms = median(a) * 1e3;
  char best_round[60];
  std::snprintf(best_round, sizeof best_round, "%sbest rounds %.3g and %.3g ms", t.note.empty() ? "" : "; ",
                best(a) * 1e3, b.empty() ? unknown : best(b) * 1e3);
  row.note += best_round;
  print(row);
}

/// Standard normal numbers, the same in every run.
template <class T>
T numbers(std::uint64_t seed, double scale = 1) {
  T x = dfdx::zeros<T>();
  unsigned state = static_cast<unsigned>(seed) * 2654435761u + 1;
  for (dfdx::index_t i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (int k = 0; k < 4; ++k)
      sum += static_cast<double>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24;
    x.data()[i] = static_cast<typename T::value_type>((sum - 2) * 1.7320508 * scale);
  }
  return x;
}

/// Integers below n.
template <class T>
T integers(std::uint64_t seed, int n) {
  T x = dfdx::zeros<T>();
  unsigned state = static_cast<unsigned>(seed) * 2654435761u + 1;
  for (dfdx::index_t i = 0; i < x.size(); ++i)
    x.data()[i] =
        static_cast<int>(((state = state * 1664525u + 1013904223u) >> 8) % static_cast<unsigned>(n));
  return x;
}

}  // namespace bench
