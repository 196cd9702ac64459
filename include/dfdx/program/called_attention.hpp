// SPDX-License-Identifier: BSL-1.0
// Attention that is called on a device, and its gradients, by the kernels of programs. What those make room for has to
// be known when they are compiled: rows of a few lengths, of which the next larger is taken.
#pragma once

#include <algorithm>

#include <dfdx/kernels/cuda/half_attention.hpp>
#include <dfdx/ops/attention.hpp>
#include <dfdx/program/called_maps.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// Describes attention as AnyWalks does, with operands of four axes whose rows have Columns elements at most. All that
// is divided is the number of a head, in 32 bits.
template <int Columns>
struct AnyAttention : dfdx::kernels::cuda::AnyWalks<4, 4, 4, 4, 1> {
  static constexpr index_t most_columns = Columns;
  static constexpr bool is_small = true;
};
// The same for tensor cores: operands of three axes, dense, in rows of Columns with zeros behind their elements.
template <int Columns>
struct DenseAttention {
  static constexpr index_t most_columns = Columns;
  static constexpr bool is_small = true;
  static constexpr auto value = [] {
    auto r = dfdx::kernels::cuda::AnyWalks<3, 3, 3, 3, 1>::value;
    for (std::size_t operand = 0; operand < 28; operand += 7) {
      r[operand + 5] = Columns;
      r[operand + 6] = 1;
    }
    r[30] = 1;
    return r;
  }();
};

// [B..., H, T, D] with one axis of batches: a view, unless theirs do not lie one behind another.
inline Array as_heads(Array const& x) {
  int const r = x.ndim();
  Shape s = make_shape(1, r > 2 ? x.shape()[r - 3] : 1, x.shape()[r - 2], x.shape()[r - 1]);
  for (int d = 0; d < r - 3; ++d) s[0] *= x.shape()[d];
  return run_reshape(s, x);
}
// [heads, T, columns], dense, with zeros behind the rows of x: a copy, unless x is so.
inline Array in_rows_of(index_t columns, Array const& x) {
  int const last = x.ndim() - 1;
  index_t const n = x.shape()[last];
  if (n == columns) return as_lines(x, last - 1);
  Array const y(Meta{x.dtype(), with_extent(x.shape(), last, columns)}, x.device());
  cuda_runtime::zero(y.bytes(), static_cast<std::size_t>(y.size()) * size_of(y.dtype()), y.device());
  copy_values(x, y.view(x.shape(), y.strides()));
  Array const rows = as_lines(y, last - 1);
  return rows.view(with_extent(rows.shape(), 2, n), rows.strides());
}
// Of attend, attend_sums or attend_back, whose matrices are x[0] and on. Of the first two a kernel makes either.
template <class Kernel>
bool attention_by(CalledOp const& c, Array const* x, Array const& out) {
  if (c.n < 5) {
    auto const put = [&](index_t* slots) { put_slots(slots, x[0], x[1], x[2]); };
    Array const none;
    return c.n == 3 ? start_with<Kernel>(c, c.name, put, x[0], x[1], x[2], out)
                    : start_with<Kernel>(c, c.name, put, x[0], x[1], x[2], none, out);
  }
  Array const sums = cast_there(c, dense_there(c[4]), op::detail::sums_of(c[0].dtype()));
  auto const put = [&](index_t* slots) { put_slots(slots, x[0], x[1], x[2], x[3], sums); };
  return start_with<Kernel>(c, c.name, put, x[0], x[1], x[2], x[3], sums, out);
}
inline int matrices_of(CalledOp const& c) { return c.n < 5 ? 3 : 4; }
template <template <class, class> class Kernel, class T, int Columns>
bool tensor_attention_by(CalledOp const& c) {
  Array x[4];
  for (int k = 0; k < matrices_of(c); ++k) x[k] = in_rows_of(Columns, c[k]);
  return attention_by<Kernel<DenseAttention<Columns>, T>>(c, x, c.out);
}
template <template <class, class> class Kernel, class T, int Columns>
bool plain_attention_by(CalledOp const& c) {
  using K = Kernel<AnyAttention<Columns>, T>;
  Array x[4];
  for (int k = 0; k < matrices_of(c); ++k) x[k] = as_heads(cast_there(c, c[k], dtype_v<T>));
  if (!is_half(c.out.dtype())) return attention_by<K>(c, x, c.out);
  Array const wide(Meta{dtype_v<T>, c.out.shape()}, c.device());
  if (!attention_by<K>(c, x, wide)) return false;
  Array const* const from[] = {&wide};
  return cast_on_device({c.attrs, from, 1, c.out, c.name});
}
// Numbers of 16 bits by tensor cores, or, of long rows, in f32.
template <template <class, class> class Kernel, template <class, class> class Tensor>
bool attention_on_device(CalledOp const& c) {
  if (!c.lies_there()) return false;
  int const last = c[0].ndim() - 1;
  index_t const columns = std::max(c[0].shape()[last], c[2].shape()[last]);
  DType const sums = op::detail::sums_of(c[0].dtype());
  if (columns > op::AttentionOptions::most_called(sums)) return false;
  if (is_half(c[0].dtype()) && columns <= 128)
    return for_one_of<float16, bfloat16>(c[0].dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      return columns <= 64 ? tensor_attention_by<Tensor, T, 64>(c) : tensor_attention_by<Tensor, T, 128>(c);
    });
  if (sums == DType::f64) return plain_attention_by<Kernel, double, 128>(c);
  if (columns <= 64) return plain_attention_by<Kernel, float, 64>(c);
  if (columns <= 128) return plain_attention_by<Kernel, float, 128>(c);
  return plain_attention_by<Kernel, float, 256>(c);
}

}  // namespace dfdx::detail::inline DFDX_TARGET
