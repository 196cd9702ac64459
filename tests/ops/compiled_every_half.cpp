// SPDX-License-Identifier: BSL-1.0
// Every elementwise op compiled in 16 bits.
#include "ops/every_op.hpp"

namespace tests::ops_compiled_every_half {

using namespace dfdx;

TEST_CASE("every op compiled in f16", "[ops]") { compiled::check_every_op<float16>(); }
TEST_CASE("every op compiled in bf16", "[ops]") { compiled::check_every_op<bfloat16>(); }
TEST_CASE("compiled reductions and arrangements of f16", "[ops]") { compiled::check_rearranged<float16>(); }
TEST_CASE("compiled reductions and arrangements of bf16", "[ops]") { compiled::check_rearranged<bfloat16>(); }

}  // namespace tests::ops_compiled_every_half
