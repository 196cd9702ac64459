// SPDX-License-Identifier: BSL-1.0
// Matrix products in memory, of any dtypes and strides: what runs when matmul is called on its own.
#pragma once

#include <dfdx/kernels/computed.hpp>
#include <dfdx/kernels/gemm.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/ops/matmul.hpp>
#include <dfdx/ops/rows.hpp>
#include <dfdx/value/array.hpp>

namespace dfdx {

namespace detail {

// The product of matrices of element type E, each with rows or columns that lie close.
template <class E>
void multiply(Array const& a, Array const& b, Array const& c) {
  int const r = c.ndim();
  Shape batch = c.shape();
  batch.rank = r - 2;
  Strides const strides[3] = {a.strides(), b.strides(), c.strides()};
  E const *x = a.template data<E>(), *y = b.template data<E>();
  E* z = c.template data<E>();
  index_t const m = c.shape()[r - 2], n = c.shape()[r - 1], k = a.shape()[r - 1];
  if (k == 0) return op::detail::set_zero(c.operand());
  if (c.size() == 0) return;
#if !defined(__CUDACC__)
  constexpr index_t few = 64;  // of which tiles cost more to prepare than to compute
  if constexpr (std::is_floating_point_v<E>)
    if (m > few || n > few || k > few || m * n * k > few) {
      using Any = kernels::gemm_shape<E, -1, -1, -1, -1, -1, -1, -1, -1>;
      kernels::gemm_sizes sizes;
      sizes.m = m, sizes.n = n, sizes.k = k, sizes.c_row = c.strides()[r - 2];
      sizes.a_row = a.strides()[r - 2], sizes.a_col = a.strides()[r - 1];
      sizes.b_row = b.strides()[r - 2], sizes.b_col = b.strides()[r - 1];
      std::size_t const bytes = kernels::multiply_workspace<Any, kernels::store_sum>(sizes);
      void* const workspace = bytes == 0 ? nullptr : take_block(bytes);
      walk<3>(batch, strides, [&](index_t const(&o)[3]) {
        kernels::multiply<Any>(x + o[0], y + o[1], z + o[2], workspace, kernels::store_sum{}, sizes);
      });
      if (bytes != 0) give_block(workspace, bytes);
      return;
    }
#endif
  walk<3>(batch, strides, [&](index_t const(&o)[3]) {
    kernels::reference::gemm(m, n, k, x + o[0], a.strides()[r - 2], a.strides()[r - 1], y + o[1],
                             b.strides()[r - 2], b.strides()[r - 1], z + o[2], c.strides()[r - 2],
                             c.strides()[r - 1]);
  });
}

// Memory of that dtype whose rows or columns lie close.
template <int = 0>
Array as_matrices(Array const& x, DType dtype) {
  int const r = x.ndim();
  bool const close = x.strides()[r - 1] == 1 || x.strides()[r - 2] == 1;
  if (x.dtype() == dtype && close) return x.detach();
  Array y(Meta{dtype, x.shape()});
  kernels::convert(x.operand(), y.operand());
  return y;
}

// Matrices of bf16 where the processor multiplies them itself. Whether that is so, and they are multiplied.
#if !defined(__CUDACC__)
template <int = 0>
bool multiply_as_bf16(Array const& a, Array const& b, Array const& c) {
  int const r = c.ndim();
  auto const is_close = [&](Array const& x) { return x.strides()[r - 1] == 1 || x.strides()[r - 2] == 1; };
  index_t const m = c.shape()[r - 2], n = c.shape()[r - 1], k = a.shape()[r - 1];
  if (!kernels::uses_bf16_products(m, n, k) || a.dtype() != DType::bf16 || b.dtype() != DType::bf16 ||
      c.dtype() != DType::bf16 || !is_close(a) || !is_close(b))
    return false;
  Shape batch = c.shape();
  batch.rank = r - 2;
  Strides const strides[3] = {a.strides(), b.strides(), c.strides()};
  kernels::Scratch<std::byte> const workspace(kernels::gemm_bf16_workspace(m, n, k));
  walk<3>(batch, strides, [&](index_t const(&o)[3]) {
    kernels::multiply_bf16(m, n, k, {a.data<bfloat16>() + o[0], a.strides()[r - 2], a.strides()[r - 1]},
                           {b.data<bfloat16>() + o[1], b.strides()[r - 2], b.strides()[r - 1]},
                           c.data<bfloat16>() + o[2], c.strides()[r - 2], workspace.get());
  });
  return true;
}
#endif

// Matrices of bytes of one type, as numbers of 32 bits.
#if !defined(__CUDACC__)
template <class T>
void multiply_bytes(Array const& x, Array const& y, Array const& c) {
  Array const a = as_matrices(x, x.dtype()), b = as_matrices(y, y.dtype());
  int const r = c.ndim();
  Shape batch = c.shape();
  batch.rank = r - 2;
  Strides const strides[3] = {a.strides(), b.strides(), c.strides()};
  index_t const m = c.shape()[r - 2], n = c.shape()[r - 1], k = a.shape()[r - 1];
  kernels::Scratch<std::byte> const workspace(kernels::multiply_int8_workspace(m, n, k));
  walk<3>(batch, strides, [&](index_t const(&o)[3]) {
    kernels::multiply_int8<T, T>(m, n, k, {a.data<T>() + o[0], a.strides()[r - 2], a.strides()[r - 1]},
                                 {b.data<T>() + o[1], b.strides()[r - 2], b.strides()[r - 1]},
                                 c.data<std::int32_t>() + o[2], c.strides()[r - 2], workspace.get());
  });
}
#endif

template <class T>
void run_matmul(Array const& a, Array const& b, Array const& c) {
#if !defined(__CUDACC__)
  if constexpr (kernels::has_bf16_products && (std::is_void_v<T> || std::is_same_v<T, bfloat16>))
    if (multiply_as_bf16(a, b, c)) return;
#endif
#if !defined(__CUDACC__)
  if constexpr (!std::is_void_v<T>)
    if constexpr (is_byte(dtype_v<T>)) return multiply_bytes<T>(a, b, c);
#endif
  // Of bytes whose types the program does not know sums are exact as f64: that takes no kernels which others lack.
  bool const bytes = std::is_void_v<T> && is_byte(a.dtype()) && is_byte(b.dtype());
  kernels::computed_with<T>(bytes ? DType::f64 : a.dtype(), [&](auto number) {
    using E = decltype(number);
    Array const product = c.dtype() == dtype_v<E> ? c : Array(Meta{dtype_v<E>, c.shape()});
    multiply<E>(as_matrices(a, dtype_v<E>), as_matrices(b, dtype_v<E>), product);
    if (c.dtype() == dtype_v<E>) return;
    if (!bytes) return kernels::convert(product.operand(), c.operand());
    Array const whole(Meta{DType::i64, c.shape()});  // what i32 does not hold wraps
    kernels::convert(product.operand(), whole.operand());
    kernels::convert(whole.operand(), c.operand());
  });
}

}  // namespace detail

}  // namespace dfdx
