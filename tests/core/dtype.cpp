// SPDX-License-Identifier: BSL-1.0
// The 16-bit floats: rounding to nearest, ties to even, up to the largest and down to the smallest numbers.
#include <dfdx/core/dtype.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
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

// Doubles beside the middle of neighbours, which as floats are the middle.
template <class H>
void check_doubles() {
  double const step = std::numeric_limits<double>::denorm_min();
  for (unsigned bits = 0; bits < 0x7fff; ++bits) {
    H low, high;
    low.bits = static_cast<std::uint16_t>(bits), high.bits = static_cast<std::uint16_t>(bits + 1);
    if (float(high) != float(high) || std::isinf(float(high))) break;
    double const middle = (static_cast<double>(float(low)) + static_cast<double>(float(high))) / 2;
    for (double sign : {1.0, -1.0}) {
      unsigned const s = sign < 0 ? 0x8000 : 0;
      REQUIRE(H(sign * middle).bits == (s | (bits + (bits & 1))));
      REQUIRE(H(sign * std::nextafter(middle, 0.0)).bits == (s | bits));
      REQUIRE(H(sign * std::nextafter(middle, 1e300)).bits == (s | (bits + 1)));
      REQUIRE(H(sign * static_cast<double>(float(low))).bits == (s | bits));
    }
  }
  CHECK(H(step).bits == 0);
  CHECK(H(-step).bits == 0x8000);
  CHECK(std::isinf(float(H(std::numeric_limits<double>::max()))));
  CHECK(float(H(-std::numeric_limits<double>::infinity())) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(float(H(std::numeric_limits<double>::quiet_NaN()))));
  CHECK((float(H(3)) == 3 && float(H(std::int64_t{-4})) == -4 && float(H(true)) == 1));
}

TEST_CASE("doubles are rounded to 16 bits once", "[core]") {
  check_doubles<float16>();
  check_doubles<bfloat16>();
  CHECK(float16(65520.0).bits == 0x7c00);
  CHECK(float16(std::nextafter(65520.0, 0.0)).bits == 0x7bff);
  CHECK(bfloat16(0x1.ffp127).bits == 0x7f80);
  CHECK(bfloat16(std::nextafter(0x1.ffp127, 0.0)).bits == 0x7f7f);
  STATIC_CHECK(float16(1 + 0x1p-11 + 0x1p-40).bits == 0x3c01);
}

}  // namespace tests::core_dtype
