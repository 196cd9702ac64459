// SPDX-License-Identifier: BSL-1.0
// The rules and the plain kernels of all ops, compiled once for all test programs.
#include <dfdx/testing/interpret.hpp>

namespace dfdx::testing::detail {

template struct Finder<LibraryOps>;
template struct Runners<LibraryOps>;

}  // namespace dfdx::testing::detail
