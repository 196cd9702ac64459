// SPDX-License-Identifier: BSL-1.0
// Whether two arrays hold the same numbers: one bool for all elements. Elementwise comparison is operator== and its
// kin (vocabulary/elementwise.hpp).
#pragma once

#include <cmath>

#include <dfdx/ops/rules.hpp>
#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

namespace detail {

// The operand repeated to a shape that it broadcasts to.
inline Operand repeated(Operand x, Shape const& shape) {
  Strides t = shape;
  for (int i = 0; i < shape.rank; ++i) {
    int const j = i - (shape.rank - x.meta.shape.rank);
    t[i] = j < 0 || x.meta.shape[j] == 1 ? 0 : x.strides[j];
  }
  x.meta.shape = shape;
  x.strides = t;
  return x;
}

template <class Same>
bool all_same(Operand const& x, Operand const& y, Same const& same) {
  Strides const strides[2] = {x.strides, y.strides};
  bool r = true;
  walk<2>(x.meta.shape, strides, [&](index_t const(&o)[2]) { r = r && same(x, o[0], y, o[1]); });
  return r;
}

inline bool equal_elements(Operand const& x, index_t i, Operand const& y, index_t j) {
  // Two integers are compared as such, for not every i64 is a double.
  if (!is_floating(x.meta.dtype) && !is_floating(y.meta.dtype))
    return read_integer(x, i) == read_integer(y, j);
  return read_real(x, i) == read_real(y, j);
}

}  // namespace detail

/// array_equal - same shape and equal elements, whatever the dtypes; NaN equals nothing.
///
/// Shapes    a, b: any -> one bool
/// Dtypes    any
/// Source    NumPy's array_equal
template <int = 0>
bool array_equal(Array const& a, Array const& b) {
  if (!(a.shape() == b.shape())) return false;
  Array const x = detail::here(a), y = detail::here(b);
  return detail::all_same(x.operand(), y.operand(), detail::equal_elements);
}

/// allclose - |a - b| <= atol + rtol |b| for all elements, which is not symmetric: b is the reference.
///
/// Shapes    a, b: broadcast against one another -> one bool
/// Dtypes    any
/// Errors    "allclose: shapes [2, 3] and [4] do not broadcast"
/// Source    NumPy's allclose
template <int = 0>
bool allclose(Array const& a, Array const& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false) {
  Shape const shape = op::broadcast_shapes("allclose", a.shape(), b.shape(), nullptr);
  if (!shape.valid()) raise("allclose: shapes ", a.shape(), " and ", b.shape(), " do not broadcast");
  auto const close = [&](Operand const& x, index_t i, Operand const& y, index_t j) {
    if (detail::equal_elements(x, i, y, j)) return true;
    double const u = read_real(x, i), v = read_real(y, j);
    if (std::isnan(u) || std::isnan(v)) return equal_nan && std::isnan(u) && std::isnan(v);
    return !std::isinf(u) && !std::isinf(v) && std::fabs(u - v) <= atol + rtol * std::fabs(v);
  };
  Array const x = detail::here(a), y = detail::here(b);
  return detail::all_same(detail::repeated(x.operand(), shape), detail::repeated(y.operand(), shape), close);
}

}  // namespace dfdx
