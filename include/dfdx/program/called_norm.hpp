// SPDX-License-Identifier: BSL-1.0
// Norms that are called on a device, and their gradients.
#pragma once

#include <dfdx/kernels/cuda/norm.hpp>
#include <dfdx/ops/standardize.hpp>
#include <dfdx/program/called_maps.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

template <class T>
dfdx::kernels::cuda::NormArguments<T> norm_arguments(CalledOp const& c, Array const (&x)[3],
                                                     Array const& out) {
  auto const at = [](Array const& a) { return a.size() == 0 ? nullptr : reinterpret_cast<T*>(a.bytes()); };
  return {at(x[0]), at(x[1]), at(x[2]), at(out), nullptr, op::NormOptions::of(c.attrs).rows(c[0].shape())};
}
// The sum of an array for each parameter.
template <class T>
bool sum_for_parameters(CalledOp const& c, op::NormRows const& r, Array const& of, Array const& to) {
  return c.started(dfdx::kernels::cuda::reduce_any<loop_code::reduce_sum, T>(
      as_shape(of, make_shape(r.samples, r.parameters(), r.inner)),
      as_shape(to, make_shape(1, r.parameters(), 1)), c.device(), c.stream()));
}
template <class T>
bool norm_back(CalledOp const& c, Array const (&x)[3], Array const& out) {
  auto a = norm_arguments<T>(c, x, out);
  op::NormOptions const o = op::NormOptions::of(c.attrs);
  index_t const n = c[0].size(), parameters = a.rows.parameters();
  Array const products = a.weight == nullptr ? Array() : Array(Meta{dtype_v<T>, c[0].shape()}, c.device());
  if (a.weight != nullptr) a.products = reinterpret_cast<T*>(products.bytes());
  if (!c.started(dfdx::kernels::cuda::start_norm<T, true>(a, c.stream()))) return false;
  auto const sums = [&](index_t k) {
    Shape const s = make_shape(parameters);
    return out.view(s, contiguous(s), n + k * parameters);
  };
  if (a.weight == nullptr) return true;
  return sum_for_parameters<T>(c, a.rows, products, sums(0)) &&
         (!o.biased || sum_for_parameters<T>(c, a.rows, x[2], sums(1)));
}
// 16 bits in f32, rounded once.
template <bool Back>
bool norm_on_device(CalledOp const& c) {
  if (!c.lies_there() || c[0].size() == 0 || c[0].size() > INT32_MAX) return false;
  if (is_half(c.out.dtype())) return in_wider_there(c, norm_on_device<Back>, DType::f32);
  Array const x[3] = {dense_there(c[0]), dense_there(c[1]), dense_there(c[2])};
  return for_one_of<float, double>(c.out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (Back) return norm_back<T>(c, x, c.out);
    else
      return c.started(dfdx::kernels::cuda::start_norm<T, false>(norm_arguments<T>(c, x, c.out), c.stream()));
  });
}

}  // namespace dfdx::detail::inline DFDX_TARGET
