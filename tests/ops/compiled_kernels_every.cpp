// SPDX-License-Identifier: BSL-1.0
// Ops with kernels of their own compiled in every dtype but the wide floats, of which the other files are.
#include "ops/every_kernel.hpp"

namespace tests::ops_compiled_kernels_every {

using namespace compiled;

TEST_CASE("compiled kernels of i32", "[ops]") {
  check_ordered<std::int32_t, 7, 17>();
  check_looked_up<std::int32_t, std::int32_t, 7, 17>();
  check_windowed<std::int32_t, 2>();
}

TEST_CASE("compiled kernels of i64", "[ops]") {
  check_ordered<std::int64_t, 7, 17>();
  check_looked_up<std::int64_t, std::uint8_t, 7, 17>();
  check_windowed<std::int64_t, 2>();
}

TEST_CASE("compiled kernels of u8", "[ops]") {
  check_ordered<std::uint8_t, 33, 5>();
  check_looked_up<std::uint8_t, std::int64_t, 5, 33>();
  check_windowed<std::uint8_t, 2>();
}

TEST_CASE("compiled kernels of truths", "[ops]") {
  check_ordered<bool, 7, 17>();
  check_looked_up<bool, std::int32_t, 7, 17>();
}

TEST_CASE("compiled kernels of f16", "[ops]") {
  check_ordered<float16, 7, 17>();
  check_looked_up<float16, std::int64_t, 7, 17>();
  check_windowed<float16, 2>();
}

TEST_CASE("compiled kernels of bf16", "[ops]") {
  check_ordered<bfloat16, 7, 17>();
  check_looked_up<bfloat16, std::uint8_t, 7, 17>();
  check_windowed<bfloat16, 2>();
}

TEST_CASE("compiled kernels of one element and of none", "[ops]") {
  check_ordered<std::uint8_t, 1, 1>();
  check_looked_up<std::uint8_t, std::int32_t, 1, 1>();
  check_ordered<std::uint8_t, 0, 3>();
  check_looked_up<std::uint8_t, std::int32_t, 0, 3>();
  check_windowed<std::uint8_t, 0>();
}

}  // namespace tests::ops_compiled_kernels_every
