// SPDX-License-Identifier: BSL-1.0
// The machine's roof: what one core reaches in a loop of independent multiply-adds on numbers of type float.
#pragma once

#include <dfdx/kernels/simd/gemm.hpp>

#include <algorithm>

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

}  // namespace bench
