// SPDX-License-Identifier: BSL-1.0
// Products that tests of several kernels for them ask for: of factors that lie in any order.
#pragma once

#include "emulated.hpp"

namespace emulated {

inline constexpr auto product = [](auto const& a, auto const& b) { return matmul(a, b); };
inline constexpr auto product_nt = [](auto const& a, auto const& b) { return matmul(a, transpose(b)); };
inline constexpr auto product_tn = [](auto const& a, auto const& b) { return matmul(transpose(a), b); };
inline constexpr auto product_tt = [](auto const& a, auto const& b) {
  return matmul(transpose(a), transpose(b));
};
inline constexpr auto heads = [](auto const& q, auto const& k) {
  return matmul(permute<1, 0, 2>(q), permute<1, 2, 0>(k));
};

}  // namespace emulated
