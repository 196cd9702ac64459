// SPDX-License-Identifier: BSL-1.0
// How wrong a result is.
#pragma once

#include <algorithm>
#include <cmath>

#include "../../tests/worse.hpp"

namespace bench {

using tests::worse;

/// Error - differences from what was wanted, relative to the largest of that; infinite if any is NaN.
class Error {
 public:
  void add(double got, double want) {
    worst_ = worse(worst_, got == want ? 0 : std::fabs(got - want));
    largest_ = std::max(largest_, std::fabs(want));
  }
  double value() const { return worst_ == 0 ? 0 : worst_ / largest_; }

 private:
  double worst_ = 0, largest_ = 0;
};

}  // namespace bench
