// SPDX-License-Identifier: BSL-1.0
// How a backward pass adds a cotangent to the sum of those before it, in the memory of the sum.
#pragma once

#include <dfdx/ops/rows.hpp>
#include <dfdx/vocabulary/elementwise.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::tape {

namespace detail {

// total += x, in the memory of total. (A template, as Pass is.)
template <int Lazy>
void add_to(Array const& total, Array const& x) {
  if (x.device() != total.device()) return add_to<Lazy>(total, dfdx::detail::moved(total.device(), x));
  Array const* const operands[] = {&total, &x};
  double const none[2] = {};
  if (dfdx::detail::is_elsewhere(total)) {
    if (dfdx::detail::has_run("add", nullptr, {}, operands, 2, total)) return;
    return dfdx::detail::copy_values(apply<op::add>(dfdx::detail::lazy<Lazy>(total), x), total);
  }
  if (!total.contiguous_memory() || dfdx::detail::dense_among(operands, 2) == nullptr)
    return op::detail::add_elements(x.operand(), total.operand());
  bool const wide = total.dtype() == DType::f64;
  dfdx::detail::run_dense(wide ? &kernels::map_block<op::add, double, double, double>
                               : &kernels::map_block<op::add, float, float, float>,
                          total, operands, none, 2);
}

}  // namespace detail

}  // namespace dfdx::tape
