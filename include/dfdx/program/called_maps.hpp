// SPDX-License-Identifier: BSL-1.0
// Elementwise ops, casts, copies, reductions and products that are called one by one on a device.
#pragma once

#include <dfdx/kernels/cuda/any_reduce.hpp>
#include <dfdx/kernels/cuda/matmul.hpp>
#include <dfdx/program/called_op.hpp>
#include <dfdx/vocabulary/bind.hpp>
#include <dfdx/vocabulary/dense.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

template <class Op, class E, std::size_t... K>
bool map_on_device(CalledOp const& c, std::index_sequence<K...> operands) {
  namespace k = dfdx::kernels::cuda;
  constexpr Meta made = result_of_computed<Op, E>();
  if constexpr (made.valid()) {
    return c.started(
        k::start_any<
            k::AnyMap<Op, element_t<made.dtype>,
                      std::conditional_t<Op::operand_dtype(static_cast<int>(K), dtype_v<E>) == DType::boolean,
                                         bool, E>...>>(c.x, c.out, c.stream()));
  } else if constexpr (!std::is_same_v<E, bool>) {
    return map_on_device<Op, bool>(c, operands);
  } else {
    return false;
  }
}
template <class Op>
bool map_on_device(CalledOp const& c) {
  constexpr auto operands = std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{};
  // The last operand has the common dtype.
  return kernels::computed_with<void>(
      c[c.n - 1].dtype(), [&](auto number) { return map_on_device<Op, decltype(number)>(c, operands); });
}

inline bool copy_on_device(CalledOp const& c) {
  if (c[0].device().is_cpu()) return false;
  return dispatch_bits(c.out.dtype(), [&](auto type) {
    return c.started(kernels::cuda::start_any<kernels::cuda::AnyCopy<typename decltype(type)::type>>(
        c.x, c.out, c.stream()));
  });
}
inline bool cast_on_device(CalledOp const& c) {
  return kernels::computed_with<void>(c[0].dtype(), [&](auto number) {
    return c.started(
        kernels::cuda::start_any<kernels::cuda::AnyCast<decltype(number)>>(c.x, c.out, c.stream()));
  });
}
inline Array cast_there(CalledOp const& c, Array const& x, DType d) {
  if (x.dtype() == d) return x;
  Array const y(Meta{d, x.shape()}, c.device());
  Array const* const from[] = {&x};
  cast_on_device({c.attrs, from, 1, y, "cast"});
  return y;
}
inline Array as_i64(CalledOp const& c, Array const& index) { return cast_there(c, index, DType::i64); }
// An op of one operand, or of two, of which one may be an index, with numbers of the result's dtype as wider ones.
inline bool in_wider_there(CalledOp const& c, bool (*run)(CalledOp const&), DType d) {
  auto const widened = [&](int k) {
    return k < c.n && c[k].dtype() == c.out.dtype() ? cast_there(c, c[k], d) : c[k < c.n ? k : 0];
  };
  Array const x[] = {widened(0), widened(1), widened(2)}, z(Meta{d, c.out.shape()}, c.device());
  Array const *const wide[] = {&x[0], &x[1], &x[2]}, *const result[] = {&z};
  return run({c.attrs, wide, c.n, z, c.name}) && cast_on_device({c.attrs, result, 1, c.out, c.name});
}
inline bool is_narrow(DType d) { return is_half(d) || (!is_floating(d) && d != DType::i64); }
// What numbers are added up as.
inline DType sum_dtype(DType d) { return is_floating(d) ? DType::f32 : DType::i64; }

template <index_t Do>
bool reduce_on_device(CalledOp const& c) {
  if (c[0].size() == 0) {
    if (Do != loop_code::reduce_sum && Do != loop_code::reduce_prod) return false;
    Array const of_none = full_as(Array(), Meta{c.out.dtype(), {}}, Do == loop_code::reduce_prod ? 1 : 0);
    Array const* const number[] = {&of_none};
    return cast_on_device({c.attrs, number, 1, c.out, c.name});
  }
  return kernels::computed_with<void>(c[0].dtype(), [&](auto number) {
    return c.started(kernels::cuda::reduce_any<Do, decltype(number)>(c[0], c.out, c.device(), c.stream()));
  });
}

// With at least one axis of stacks.
inline Array as_stacks(Array const& x, int axes) {
  Shape s;
  Strides t;
  for (int d = x.ndim() - 2; d < axes; ++d) s.push_back(1), t.push_back(0);
  for (int d = 0; d < x.ndim(); ++d) s.push_back(x.shape()[d]), t.push_back(x.strides()[d]);
  return x.view(s, t);
}
template <class T, int Stacks>
bool product_on_device(CalledOp const& c) {
  constexpr int rank = Stacks + 2;
  using Step = dfdx::kernels::cuda::MatmulStep<
      dfdx::kernels::Matmul<T, dfdx::kernels::cuda::AnyWalks<rank, rank, rank>, dfdx::kernels::store_sum>>;
  index_t slots[6 * rank];
  put_slots(slots, as_stacks(c[0], Stacks), as_stacks(c[1], Stacks), as_stacks(c.out, Stacks));
  Array const workspace = bytes_on(c.device(), Step::workspace_now(slots));
  void* const base[] = {c[0].bytes(), c[1].bytes(), c.out.bytes()};
  return c.started(Step::run(base, workspace.bytes(), slots, c.device(), c.stream()));
}
// Matrices, or stacks of them along two axes at most.
inline bool matmul_on_device(CalledOp const& c) {
  DType const d = c.out.dtype();
  if (!c.lies_there()) return false;
  if (is_byte(c[0].dtype()) && is_byte(c[1].dtype()) && d == DType::i32) {
    Array const x = cast_there(c, c[0], d), y = cast_there(c, c[1], d);
    Array const* const wide[] = {&x, &y};
    return matmul_on_device({c.attrs, wide, 2, c.out, c.name});
  }
  if (c[0].dtype() != d || c[1].dtype() != d) return false;
  return for_one_of<float, double, float16, bfloat16, std::int32_t, std::int64_t>(d, [&](auto type) {
    using T = typename decltype(type)::type;
    if (c.out.ndim() <= 3) return product_on_device<T, 1>(c);
    return c.out.ndim() == 4 && product_on_device<T, 2>(c);
  });
}

}  // namespace dfdx::detail::inline DFDX_TARGET
