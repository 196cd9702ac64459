// SPDX-License-Identifier: BSL-1.0
// The machine's roofs: what one core reaches in a loop of independent multiply-adds on numbers of type float, and how
// fast it reads memory.
#pragma once

#include <dfdx/kernels/simd/gemm.hpp>

#include <algorithm>
#include <vector>

#include "row.hpp"

namespace bench {

/// FLOP/s of the best of so many rounds: enough lanes to hide the latency, nothing from memory. (Not inlined: inside
/// of a large function g++ keeps the sums in memory, and the roof was less than half.)
[[gnu::noinline]] inline double measure_roof(int rounds) {
  using namespace dfdx::kernels;
  constexpr int chains = 12, steps = 20000;
  double least = 1;
  for (int round = 0; round < rounds; ++round) {
    lane<float> sum[chains];
    volatile float seed = 0.999f;
    lane<float> const x(seed);
    for (auto& s : sum) s = lane<float>(seed);  // read each time: equal chains would become one
    double const start = seconds();
    for (int i = 0; i < steps; ++i)
      DFDX_UNROLL for (int c = 0; c < chains; ++c) sum[c] = xsimd::fma(sum[c], x, x);
    double const time = seconds() - start;
    lane<float> total = sum[0];
    for (int c = 1; c < chains; ++c) total = total + sum[c];
    seed = xsimd::reduce_add(total);
    least = std::min(least, time);
  }
  return 2.0 * chains * steps * lane_size<float> / least;
}

/// Bytes a second that one thread reads of so many, again and again; the best of some rounds.
[[gnu::noinline]] inline double measure_memory(std::size_t bytes = std::size_t{1} << 27) {
  using namespace dfdx::kernels;
  std::vector<float> const all(bytes / sizeof(float) / 128 * 128, 1.0f);
  std::size_t const passes =
      std::max<std::size_t>(1, (std::size_t{1} << 22) / bytes);  // long enough for the clock
  double least = 1;
  float volatile sink = 0;
  for (int round = 0; round < 15; ++round) {
    double const start = seconds();
    lane<float> sum[8];
    constexpr std::size_t W = lane_size<float>;
    for (auto& s : sum) s = lane<float>(0.0f);
    for (std::size_t pass = 0; pass < passes; ++pass) {
      for (std::size_t i = 0; i < all.size(); i += 8 * W)
        DFDX_UNROLL for (std::size_t k = 0; k < 8; ++k) sum[k] =
            sum[k] + lane<float>::load_unaligned(all.data() + i + k * W);
      asm volatile("" ::: "memory");
    }
    for (auto& s : sum) sink = sink + xsimd::reduce_add(s);
    least = std::min(least, seconds() - start);
  }
  return static_cast<double>(passes * all.size() * sizeof(float)) / least;
}

}  // namespace bench
