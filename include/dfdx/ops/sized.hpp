// SPDX-License-Identifier: BSL-1.0
// Kernels of ops for matrices whose size a program knows: what they are told, and which op has which.
#pragma once

#include <dfdx/value/node.hpp>

namespace dfdx::op {

/// SizedOperands - the operands of a step of a program, the last its result, if all lie in memory row by row and their
/// matrices, the last two axes, are small.
struct SizedOperands {
  static constexpr int most = 4, largest = 16;
  int count = 0;
  DType dtype[most] = {};
  int rows[most] = {}, columns[most] = {};
  index_t matrices = 0;  ///< of each operand; 0 if they are not as said
};

/// sized_operands - those of arguments with dtypes, ranks, shapes and strides in `code`, one after the other.
template <class Argument>
constexpr SizedOperands sized_operands(Argument const* arguments, int count, index_t const* code) {
  SizedOperands r;
  r.count = count;
  index_t matrices = 0;
  for (int k = 0; k < count; ++k) {
    auto const rank = static_cast<int>(*code++);
    Shape s, t;
    s.rank = t.rank = rank;
    for (int i = 0; i < rank; ++i) s[i] = code[i], t[i] = code[rank + i];
    code += 2 * rank;
    if (count > SizedOperands::most || rank < 2 || !s.is_static() || !is_contiguous(s, t) || s.numel() == 0)
      return r;
    index_t const m = s[rank - 2], n = s[rank - 1], all = s.numel() / (m * n);
    bool const fits =
        n <= SizedOperands::largest && m <= 2 * SizedOperands::largest && (k == 0 || all == matrices);
    DType const d = arguments[k].dtype;
    if (!fits || (d != DType::f32 && d != DType::f64)) return r;
    r.dtype[k] = d, r.rows[k] = static_cast<int>(m), r.columns[k] = static_cast<int>(n);
    matrices = all;
  }
  r.matrices = matrices;
  return r;
}

/// sized_t - the op of a number.
template <Sized>
struct sized;
template <Sized S>
using sized_t = typename sized<S>::type;

}  // namespace dfdx::op
