// SPDX-License-Identifier: BSL-1.0
// One of several variables. Vectors of some targets have no size: nothing but variables can hold them.
#pragma once

#include <dfdx/core/config.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// nth - the I-th of some variables.
template <int I, class A, class... Rest>
DFDX_INLINE constexpr auto& nth(A& a, Rest&... rest) {
  if constexpr (I == 0) return a;
  else return nth<I - 1>(rest...);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
