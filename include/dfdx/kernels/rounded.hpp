// SPDX-License-Identifier: BSL-1.0
// Vectors of floats rounded to numbers of 16 bits that stay floats: to the nearest, the even one of two, as memory of
// such a dtype would hold them.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/vectors.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// lane_rounded - to numbers of H; NaN stays.
template <class H, class X>
DFDX_INLINE constexpr X lane_rounded(X const& x) {
  static_assert(std::is_same_v<typename X::value_type, float>);
  auto const bits = vectors::bitwise_cast<std::int32_t>(x);
  using I = std::remove_const_t<decltype(bits)>;
  if constexpr (std::is_same_v<H, bfloat16>) {
    // Its bits are the upper half of a float's.
    I const odd = (bits >> 16) & I(1);
    X const r = vectors::bitwise_cast<float>((bits + I(0x7fff) + odd) & I(-0x10000));
    return select(x == x, r, x);
  } else {
    static_assert(std::is_same_v<H, float16>);
    // 1.5 2^13 powers of two that x is above: added, they leave the eleven digits of a float16, or, below 2^-14, its
    // multiples of 2^-24.
    X const power = vectors::bitwise_cast<float>(bits & I(0x7f800000));
    X const many = vectors::min(vectors::max(power, X(0x1p-14f)), X(0x1p16f)) * X(12288.0f);
    X const r = vectors::abs((x + many) - many);
    return vectors::copysign(select(r > X(65504.0f), X(std::numeric_limits<float>::infinity()), r), x);
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
