// SPDX-License-Identifier: BSL-1.0
// What tests of programs that change a state ask of a plan.
#pragma once

#include <dfdx/dfdx.hpp>

namespace tests {

/// moves - how many results of program P are copied at the end to where they belong.
template <class P>
constexpr int moves() {
  int n = 0;
  for (auto const& s : P::plan.steps) n += s.kind == dfdx::graph::Step::Kind::move;
  return n;
}

}  // namespace tests
