// SPDX-License-Identifier: BSL-1.0
// side_by_side: two values whose memory is one. Programs take it for a concat along the first axis, whose operands are
// computed where they will lie; it has no kernel.
#pragma once

#include <dfdx/ops/join.hpp>

namespace dfdx::op {

/// side_by_side - one array and behind it another, which both lie there already.
///
/// Math      z = [x; y]
/// Shapes    x: [1.., N, ..], y: [1.., M, ..] -> z: [1.., N + M, ..]
/// Dtypes    any one
/// Errors    none of its own: it stands for a concat that was checked
/// Source    elementary
struct side_by_side : concat {
  static constexpr char const* name = "side_by_side";
};

}  // namespace dfdx::op
