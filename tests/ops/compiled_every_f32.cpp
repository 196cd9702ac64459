// SPDX-License-Identifier: BSL-1.0
// Every elementwise op compiled in f32.
#include "ops/every_op.hpp"

namespace tests::ops_compiled_every_f32 {

TEST_CASE("every op compiled in f32", "[ops]") { compiled::check_every_op<float>(); }
TEST_CASE("every op compiled in f32, of all layouts", "[ops]") { compiled::check_every_layout<float>(); }
TEST_CASE("compiled reductions and arrangements of f32", "[ops]") { compiled::check_rearranged<float>(); }

}  // namespace tests::ops_compiled_every_f32
