// SPDX-License-Identifier: BSL-1.0
// The lines of operands along one axis, for device kernels that go along them.
#pragma once

#include <dfdx/kernels/cuda/own.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// AxisLines - the lines of operands 0 and K along an axis: as many as there are other elements.
template <class Code, int K, int Axis>
struct AxisLines {
  using W = Walks<Code>;
  static constexpr int rank = W::template rank<K>;
  static DFDX_INLINE constexpr index_t length(index_t const* s) { return W::template extent<K, Axis>(s); }
  static DFDX_INLINE constexpr index_t lines(index_t const* s) {
    return W::template count<K, 0, Axis>(s) * W::template count<K, Axis + 1, rank>(s);
  }
  /// Where line `at` of operand Of begins.
  template <int Of>
  static DFDX_INLINE index_t begin(index_t at, index_t const* s) {
    index_t const inner = W::template count<K, Axis + 1, rank>(s);
    return W::template offset<K, 0, Axis, Of>(W::quotient(at, inner), s) +
           W::template offset<K, Axis + 1, rank, Of>(W::remainder(at, inner), s);
  }
  template <int Of>
  static DFDX_INLINE index_t step(index_t const* s) {
    return W::template stride<Of, Axis>(s);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
