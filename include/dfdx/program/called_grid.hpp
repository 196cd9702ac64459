// SPDX-License-Identifier: BSL-1.0
// Images at places that a grid gives, called one by one on a device (kernels/cuda/grid.hpp).
#pragma once

#include <dfdx/kernels/cuda/grid.hpp>
#include <dfdx/ops/grid_sample.hpp>
#include <dfdx/program/called_kernels.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// Of so many operands besides the result.
template <template <class, class, int> class Kernel, int Operands>
bool grid_on_device(CalledOp const& c) {
  if (!c.lies_there()) return false;
  if (is_half(c.out.dtype())) return in_wider_there(c, grid_on_device<Kernel, Operands>, DType::f32);
  return for_one_of<float, double>(c.out.dtype(), [&](auto type) {
    auto const run = [&](auto terms) {
      using T = typename decltype(type)::type;
      constexpr int k = decltype(terms)::value;
      using namespace dfdx::kernels::cuda;
      if constexpr (Operands == 2)
        return start_called<Kernel<AnyWalks<4, 4, 4>, T, k>>(c, c.name, c[0], c[1], c.out);
      else return start_called<Kernel<AnyWalks<4, 4, 4, 4>, T, k>>(c, c.name, c[0], c[1], c[2], c.out);
    };
    switch (op::detail::grid_terms(op::detail::grid_options(c.attrs.i[0]).mode)) {
      case 1: return run(std::integral_constant<int, 1>{});
      case 2: return run(std::integral_constant<int, 2>{});
      default: return run(std::integral_constant<int, 4>{});
    }
  });
}

}  // namespace dfdx::detail::inline DFDX_TARGET
