// SPDX-License-Identifier: BSL-1.0
// What attention by blocks is told besides its operands, as attributes of its ops hold it.
#pragma once

#include <bit>

#include <dfdx/value/node.hpp>

namespace dfdx::op {

/// AttentionOptions - what attrs say: whether keys behind query + offset are hidden, and the factor of scores.
struct AttentionOptions {
  bool causal = false;
  index_t offset = 0;
  double scale = 1;

  constexpr Attrs attrs() const { return Attrs{{causal ? 1 : 0, offset, std::bit_cast<index_t>(scale)}}; }
  static constexpr AttentionOptions of(Attrs const& a) {
    return {a.i[0] != 0, a.i[1], std::bit_cast<double>(a.i[2])};
  }
  /// The longest rows that devices have kernels for when attention is called on its own and computed in this dtype.
  static constexpr index_t most_called(DType d) { return d == DType::f64 ? 128 : 256; }
};

}  // namespace dfdx::op
