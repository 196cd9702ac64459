// SPDX-License-Identifier: BSL-1.0
// Every elementwise op compiled in f64.
#include "ops/every_op.hpp"

namespace tests::ops_compiled_every_double {

TEST_CASE("every op compiled in f64", "[ops]") { compiled::check_every_op<double>(); }
TEST_CASE("compiled reductions and arrangements of f64", "[ops]") { compiled::check_rearranged<double>(); }

}  // namespace tests::ops_compiled_every_double
