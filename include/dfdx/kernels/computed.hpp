// SPDX-License-Identifier: BSL-1.0
// What elements are computed as when an op is called on its own: a double, a float, or an integer of 64 bits.
#pragma once

#include <dfdx/core/dtype.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// computed_as - the dtype whose numbers stand for those of another one in blocks.
constexpr DType computed_as(DType d) {
  if (d == DType::f64) return d;
  return is_floating(d) ? DType::f32 : DType::i64;
}

/// computed_with - f(a value of the type that dtype d is computed as); only for T when the caller knew it, so that
/// nothing else is instantiated.
template <class T, class F>
auto computed_with(DType d, F const& f) {
  if constexpr (!std::is_void_v<T>) return f(element_t<computed_as(dtype_v<T>)>{});
  else if (d == DType::f64) return f(double{});
  else if (is_floating(d)) return f(float{});
  else return f(std::int64_t{});
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
