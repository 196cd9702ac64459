// SPDX-License-Identifier: BSL-1.0
// What lowering makes of a loop group: the description of the loop nest, and where its operands start.
#pragma once

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/core/vec.hpp>

namespace dfdx::graph {

/// Memory - where an operand of a kernel starts.
struct Memory {
  enum class Kind : unsigned char { node, scratch } kind = Kind::node;
  /// The node whose value this is; for scratch its size in elements.
  index_t what = -1;
  index_t offset = 0;
  DType dtype = DType::f32;
  bool written = false;
  int turn = -1;
  /// The member of the group, by position, that reads it as that operand; or writes it, with operand -1.
  int member = -1, operand = -1;
};

struct Lowered {
  Vec<index_t> code;
  Vec<Memory> memory;
};

}  // namespace dfdx::graph
