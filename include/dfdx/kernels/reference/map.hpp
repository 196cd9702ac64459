// SPDX-License-Identifier: BSL-1.0
// Plain loops over strided memory: elementwise map, conversion and reduction. Obviously right rather than fast; the
// oracle of the fused kernels, and what runs when an op is called on its own.
#pragma once

#include <utility>

#include <dfdx/core/convert.hpp>
#include <dfdx/core/math.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::kernels::reference {

/// map - out = eval(in...) element by element; T is the type of each operand, R of the result. 16-bit floats are
/// computed with as float.
template <class Eval, class R, class... T>
void map(Operand const* in, Operand const& out) {
  constexpr int n = sizeof...(T);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    Strides const strides[n + 1] = {in[I].strides..., out.strides};
    auto* y = static_cast<R*>(out.data);
    walk<n + 1>(out.meta.shape, strides, [&](index_t const(&o)[n + 1]) {
      y[o[n]] =
          static_cast<R>(Eval::eval(static_cast<compute_t<T>>(static_cast<T const*>(in[I].data)[o[I]])...));
    });
  }(std::index_sequence_for<T...>{});
}

/// convert - out = in, each element converted.
template <class R, class T>
void convert(Operand const& in, Operand const& out) {
  Strides const strides[2] = {in.strides, out.strides};
  auto* y = static_cast<R*>(out.data);
  auto const* x = static_cast<T const*>(in.data);
  walk<2>(out.meta.shape, strides, [&](index_t const(&o)[2]) { y[o[1]] = math::convert_number<R>(x[o[0]]); });
}

/// reduce - out = identity, then out = combine(out, in) over all elements; `out` has the rank of `in`, extent 1 on
/// reduced axes, and is contiguous. T accumulates in A.
template <class A, class T, class Combine>
void reduce(Operand const& in, Operand const& out, A identity, Combine combine) {
  index_t const n = out.meta.shape.numel();
  A* acc = new A[static_cast<std::size_t>(n)];
  for (index_t i = 0; i < n; ++i) acc[i] = identity;
  Strides to = out.strides;
  for (int a = 0; a < to.rank; ++a)
    if (in.meta.shape[a] != out.meta.shape[a]) to[a] = 0;
  Strides const strides[2] = {in.strides, to};
  auto const* x = static_cast<T const*>(in.data);
  walk<2>(in.meta.shape, strides,
          [&](index_t const(&o)[2]) { acc[o[1]] = combine(acc[o[1]], static_cast<A>(x[o[0]])); });
  auto* y = static_cast<T*>(out.data);
  for (index_t i = 0; i < n; ++i) y[i] = static_cast<T>(acc[i]);
  delete[] acc;
}

}  // namespace dfdx::kernels::reference
