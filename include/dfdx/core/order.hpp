// SPDX-License-Identifier: BSL-1.0
// The order of numbers, NaN among them.
#pragma once

#include <bit>

#include <dfdx/core/dtype.hpp>

namespace dfdx::op::detail {

/// before - whether a stands before b in ascending order; NaN comes after all numbers, as if it were the largest.
template <class C>
constexpr bool before(C a, C b) {
  return a < b || (b != b && a == a);
}

/// sort_key - an unsigned number that orders as x does: NaN comes after all numbers, -0 is 0.
template <class T>
constexpr auto sort_key(T const& number) {
  auto const x = static_cast<compute_t<T>>(number);
  using C = std::remove_cv_t<decltype(x)>;
  using U = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;
  constexpr U sign = U(1) << (8 * sizeof(U) - 1);
  if constexpr (std::is_floating_point_v<C>) {
    U const bits = std::bit_cast<U>(x + C(0));
    return x != x ? ~U(0) : (bits & sign) != 0 ? static_cast<U>(~bits) : static_cast<U>(bits | sign);
  } else if constexpr (std::is_signed_v<C>) {
    return static_cast<U>(static_cast<U>(x) ^ sign);
  } else {
    return static_cast<U>(x);
  }
}

}  // namespace dfdx::op::detail
