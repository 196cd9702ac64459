// SPDX-License-Identifier: BSL-1.0
// The larger of two errors, where NaN is the largest of all: max and fmax of a number and NaN are the number, so that
// a test that keeps its largest error by them does not see one.
#pragma once

#include <cmath>

namespace tests {

/// worse - the larger of both; infinite if `error` is NaN, which no later error takes back.
inline double worse(double worst, double error) {
  if (std::isnan(error)) return HUGE_VAL;
  return error > worst ? error : worst;
}

}  // namespace tests
