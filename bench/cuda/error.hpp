// SPDX-License-Identifier: BSL-1.0
// How wrong a result is.
#pragma once

#include <algorithm>
#include <cmath>

namespace bench {

/// Error - differences from what was wanted, relative to the largest of that. NaN anywhere stays.
class Error {
 public:
  void add(double got, double want) {
    double const d = got == want ? 0 : std::fabs(got - want);
    if (!(d <= worst_) && !std::isnan(worst_)) worst_ = d;
    largest_ = std::max(largest_, std::fabs(want));
  }
  double value() const { return worst_ == 0 ? 0 : worst_ / largest_; }

 private:
  double worst_ = 0, largest_ = 0;
};

}  // namespace bench
