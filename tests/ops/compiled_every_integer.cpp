// SPDX-License-Identifier: BSL-1.0
// Every elementwise op that takes integers or truths compiled in each of their dtypes.
#include "ops/every_op.hpp"

namespace tests::ops_compiled_every_integer {

using namespace compiled;

TEST_CASE("every op compiled in i32", "[ops]") { check_every_op<std::int32_t>(); }
TEST_CASE("every op compiled in i32, of all layouts", "[ops]") { check_every_layout<std::int32_t>(); }
TEST_CASE("every op compiled in i64", "[ops]") { check_every_op<std::int64_t>(); }
TEST_CASE("every op compiled in u8", "[ops]") { check_every_op<std::uint8_t>(); }
TEST_CASE("every op compiled in i8", "[ops]") { check_every_op<std::int8_t>(); }
TEST_CASE("every op compiled in bool", "[ops]") { check_every_op<bool>(); }
TEST_CASE("compiled reductions and arrangements of i32", "[ops]") { check_rearranged<std::int32_t>(); }
TEST_CASE("compiled reductions and arrangements of i64", "[ops]") { check_rearranged<std::int64_t>(); }
TEST_CASE("compiled reductions and arrangements of u8", "[ops]") { check_rearranged<std::uint8_t>(); }

TEST_CASE("compiled i32 wrap as eager ones", "[ops]") { check_wrapping<std::int32_t>(); }
TEST_CASE("compiled i64 wrap as eager ones", "[ops]") { check_wrapping<std::int64_t>(); }
TEST_CASE("compiled u8 wrap as eager ones", "[ops]") { check_wrapping<std::uint8_t>(); }
TEST_CASE("compiled i8 wrap as eager ones", "[ops]") { check_wrapping<std::int8_t>(); }

}  // namespace tests::ops_compiled_every_integer
