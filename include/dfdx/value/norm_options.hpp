// SPDX-License-Identifier: BSL-1.0
// What normalisation is told besides its operands, as attributes of its ops hold it, and the rows that follow from it.
#pragma once

#include <cmath>

#include <dfdx/value/node.hpp>

namespace dfdx::op {

/// NormRows - a dense array as [samples, groups, channels, inner]. Its rows are the groups of one sample, or, `across`,
/// of all; parameters are [groups, channels], or none where there is one channel.
struct NormRows {
  index_t samples, groups, channels, inner;
  bool across, centred;
  double eps;

  constexpr index_t number() const { return across ? groups : samples * groups; }
  constexpr index_t length() const { return channels * inner * (across ? samples : 1); }
  constexpr index_t parameters() const { return groups * channels; }
  /// What a row of this variance is scaled by. One number less its mean is 0, and so is its gradient, but for what is
  /// left of it where products are added without being rounded: it counts for nothing.
  DFDX_INLINE double scale(double variance) const {
    return centred && length() == 1 ? 0 : 1 / std::sqrt(variance + eps);
  }
};

/// NormOptions - what attrs say: the axes of channels, which are those of parameters, so many from `axis` on, in how
/// many groups; whether a row is a group of one sample, or of all (batch_norm); whether its mean is taken away; and
/// of the gradient whether a bias was added.
struct NormOptions {
  int axis = 0, axes = 1;
  index_t groups = 1;
  bool across = false, centred = true, biased = false;
  double eps = 1e-5;

  constexpr Attrs attrs() const {
    return Attrs{{axis + 16 * axes, groups, (across ? 1 : 0) + (centred ? 2 : 0) + (biased ? 4 : 0)}, {eps}};
  }
  static constexpr NormOptions of(Attrs const& a) {
    return {static_cast<int>(a.i[0] % 16),
            static_cast<int>(a.i[0] / 16),
            a.i[1],
            (a.i[2] & 1) != 0,
            (a.i[2] & 2) != 0,
            (a.i[2] & 4) != 0,
            a.f[0]};
  }
  constexpr NormRows rows(Shape const& x) const {
    auto const size = [&](int from, int to) {
      index_t n = 1;
      for (int i = from; i < to; ++i) n *= x[i];
      return n;
    };
    return {size(0, axis), groups, size(axis, axis + axes) / groups, size(axis + axes, x.rank), across,
            centred,       eps};
  }
};

}  // namespace dfdx::op
