// SPDX-License-Identifier: BSL-1.0
// Rows that are copied by pieces: every element, and nothing before the first or behind the last.
#include <cstdint>

#include <dfdx/value/walk.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include "flush.hpp"

namespace tests::kernels_copies {

using namespace dfdx;

TEMPLATE_TEST_CASE("short rows and long ones", "", std::uint8_t, std::uint16_t, std::uint32_t,
                   std::uint64_t) {
  for (int n = 1; n <= 300; ++n) {
    CAPTURE(n);
    Flush<TestType> const from(n), to(n + 1);
    for (int i = 0; i < n; ++i) from[i] = static_cast<TestType>(3 * i + 1);
    for (int i = 0; i <= n; ++i) to[i] = 7;
    detail::copy_dense<TestType>(to.data + 1, from.data, n);
    REQUIRE(to[0] == 7);
    for (int i = 0; i < n; ++i) REQUIRE(to[i + 1] == static_cast<TestType>(3 * i + 1));
    to[n] = 7;
    detail::copy_dense<TestType>(to.data, from.data, n - 1);
    REQUIRE(to[n] == 7);
    for (int i = 0; i + 1 < n; ++i) REQUIRE(to[i] == static_cast<TestType>(3 * i + 1));
  }
}

}  // namespace tests::kernels_copies
