// SPDX-License-Identifier: BSL-1.0
// The 16-bit floats: rounding to nearest, ties to even, up to the largest and down to the smallest numbers.
#include <dfdx/core/dtype.hpp>

#include <catch2/catch_test_macros.hpp>

#include <limits>

namespace tests::core_dtype {

using namespace dfdx;

TEST_CASE("halves are rounded to nearest, ties to even", "[core]") {
  CHECK(float16(1 + 0x1p-11f).bits == 0x3c00);
  CHECK(float16(1 + 0x3p-11f).bits == 0x3c02);
  CHECK(float16(-1 - 0x1.8p-11f).bits == 0xbc01);
  CHECK(float16(65519.0f).bits == 0x7bff);
  CHECK(float16(65520.0f).bits == 0x7c00);
  CHECK(float16(0x1p-25f).bits == 0);  // half of the smallest number
  CHECK(float16(0x3p-25f).bits == 2);
  CHECK(float16(0x1.8p-25f).bits == 1);
  CHECK(bfloat16(1 + 0x1p-8f).bits == 0x3f80);
  CHECK(bfloat16(1 + 0x3p-8f).bits == 0x3f82);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
}

TEST_CASE("each half is what it is converted to and back", "[core]") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float16 h;
    bfloat16 b;
    h.bits = b.bits = static_cast<std::uint16_t>(bits);
    if (float const x = h; x == x) REQUIRE(float16(x).bits == bits);
    else REQUIRE(float(float16(x)) != float(float16(x)));
    if (float const x = b; x == x) REQUIRE(bfloat16(x).bits == bits);
    else REQUIRE(float(bfloat16(x)) != float(bfloat16(x)));
  }
}

}  // namespace tests::core_dtype
