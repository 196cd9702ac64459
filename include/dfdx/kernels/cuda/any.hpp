// SPDX-License-Identifier: BSL-1.0
// Device kernels of ops that are called one by one, for whom the compiler knows nothing but the op and what it computes
// with: dtypes, shapes and strides come with the call. Elementwise ops, casts and copies.
#pragma once

#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/element.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// AnyOperand - memory of a device as these kernels see it; or one number, which may have come from the CPU.
struct AnyOperand {
  void* data = nullptr;
  DType dtype = DType::f32;
  bool is_number = false;
  double real = 0;
  std::int64_t integer = 0;
  index_t strides[max_rank] = {};
};

/// AnyArguments - N operands and the result, and the axes along which all walk.
template <int N>
struct AnyArguments {
  index_t n = 0;
  int rank = 0;
  index_t extents[max_rank] = {};
  AnyOperand x[N + 1];
};

namespace detail {

template <class To, class M>
DFDX_INLINE To element_as(void const* p, index_t at) {
  return math::convert_number<To>(static_cast<compute_t<M>>(static_cast<M const*>(p)[at]));
}
template <class M, class From>
DFDX_INLINE void put_element(void* p, index_t at, From v) {
  static_cast<M*>(p)[at] = math::convert_number<M>(static_cast<compute_t<From>>(v));
}

/// loaded - an element as the number it is computed as: a double, a float, a 64-bit integer, or a truth.
template <class E>
DFDX_INLINE E loaded(AnyOperand const& o, index_t at) {
  if constexpr (std::is_floating_point_v<E>) {
    if (o.is_number) return static_cast<E>(o.real);
  } else if (o.is_number) {
    return static_cast<E>(o.integer);
  }
  if constexpr (std::is_same_v<E, float>) {
    if (o.dtype == DType::f16) return element_as<E, float16>(o.data, at);
    if (o.dtype == DType::bf16) return element_as<E, bfloat16>(o.data, at);
  } else if constexpr (std::is_same_v<E, std::int64_t>) {
    switch (o.dtype) {
      case DType::i32: return element_as<E, std::int32_t>(o.data, at);
      case DType::u8: return element_as<E, std::uint8_t>(o.data, at);
      case DType::i8: return element_as<E, std::int8_t>(o.data, at);
      case DType::boolean: return element_as<E, bool>(o.data, at);
      default: break;
    }
  }
  return static_cast<E const*>(o.data)[at];
}
/// stored - such a number as an element of a dtype that is computed as it.
template <class R>
DFDX_INLINE void stored(AnyOperand const& o, index_t at, R v) {
  if constexpr (std::is_same_v<R, float>) {
    if (o.dtype == DType::f16) return put_element<float16>(o.data, at, v);
    if (o.dtype == DType::bf16) return put_element<bfloat16>(o.data, at, v);
  } else if constexpr (std::is_same_v<R, std::int64_t>) {
    switch (o.dtype) {
      case DType::i32: return put_element<std::int32_t>(o.data, at, v);
      case DType::u8: return put_element<std::uint8_t>(o.data, at, v);
      case DType::i8: return put_element<std::int8_t>(o.data, at, v);
      case DType::boolean: return put_element<bool>(o.data, at, v);
      default: break;
    }
  }
  static_cast<R*>(o.data)[at] = v;
}
/// converted - any number as an element of any dtype.
template <class From>
DFDX_INLINE void converted(AnyOperand const& o, index_t at, From v) {
  switch (o.dtype) {
    case DType::f32: return put_element<float>(o.data, at, v);
    case DType::f64: return put_element<double>(o.data, at, v);
    case DType::f16: return put_element<float16>(o.data, at, v);
    case DType::bf16: return put_element<bfloat16>(o.data, at, v);
    case DType::i32: return put_element<std::int32_t>(o.data, at, v);
    case DType::i64: return put_element<std::int64_t>(o.data, at, v);
    case DType::u8: return put_element<std::uint8_t>(o.data, at, v);
    case DType::i8: return put_element<std::int8_t>(o.data, at, v);
    default: return put_element<bool>(o.data, at, v);
  }
}

template <class P, int N>
DFDX_INLINE void find_places(AnyArguments<N> const& x, index_t i, index_t (&at)[N + 1]) {
  auto left = static_cast<P>(i);
  DFDX_UNROLL for (int d = max_rank - 1; d >= 0; --d) {
    if (d >= x.rank) continue;
    auto const extent = static_cast<P>(x.extents[d]);
    P const rest = left / extent;
    auto const position = static_cast<index_t>(left - rest * extent);
    left = rest;
    DFDX_UNROLL for (int k = 0; k <= N; ++k) at[k] += position * x.x[k].strides[d];
  }
}
/// places - where element i is in each operand.
template <int N>
DFDX_INLINE void places(AnyArguments<N> const& x, index_t i, index_t (&at)[N + 1]) {
  DFDX_UNROLL for (int k = 0; k <= N; ++k) at[k] = x.rank == 1 ? i * x.x[k].strides[0] : 0;
  if (x.rank <= 1) return;
  if (x.n <= INT32_MAX) find_places<std::uint32_t>(x, i, at);  // which GPUs divide several times faster
  else find_places<std::uint64_t>(x, i, at);
}

}  // namespace detail

/// AnyMap - y = Op(x...) with numbers of type R made of numbers T, a thread for each.
template <class Op, class R, class... T>
struct AnyMap {
  static constexpr int threads = own_threads, arity = sizeof...(T);
  static DFDX_INLINE void run(AnyArguments<arity> const& x) {
    for (index_t i = block() * threads + thread(); i < x.n; i += blocks() * threads)
      one(x, i, std::make_index_sequence<sizeof...(T)>{});
  }

 private:
  template <std::size_t... K>
  static DFDX_INLINE void one(AnyArguments<arity> const& x, index_t i, std::index_sequence<K...>) {
    index_t at[arity + 1];
    detail::places(x, i, at);
    detail::stored<R>(x.x[arity], at[arity], static_cast<R>(Op::eval(detail::loaded<T>(x.x[K], at[K])...)));
  }
};

/// AnyCast - y = x, computed as E, in y's dtype.
template <class E>
struct AnyCast {
  static constexpr int threads = own_threads, arity = 1;
  static DFDX_INLINE void run(AnyArguments<1> const& x) {
    for (index_t i = block() * threads + thread(); i < x.n; i += blocks() * threads) {
      index_t at[2];
      detail::places(x, i, at);
      detail::converted(x.x[1], at[1], detail::loaded<E>(x.x[0], at[0]));
    }
  }
};

/// AnyCopy - y = x, for elements of the size of Bits.
template <class Bits>
struct AnyCopy {
  static constexpr int threads = own_threads, arity = 1;
  static DFDX_INLINE void run(AnyArguments<1> const& x) {
    for (index_t i = block() * threads + thread(); i < x.n; i += blocks() * threads) {
      index_t at[2];
      detail::places(x, i, at);
      static_cast<Bits*>(x.x[1].data)[at[1]] = static_cast<Bits const*>(x.x[0].data)[at[0]];
    }
  }
};

/// as_operand - an Array on a device, or one number on the CPU.
inline AnyOperand as_operand(Array const& x) {
  AnyOperand r;
  r.dtype = x.dtype();
  r.data = x.bytes();
  r.is_number = x.device().is_cpu();
  if (!r.is_number) return r;
  r.real = read_real(x.operand(), 0);
  r.integer = is_floating(x.dtype()) ? 0 : read_integer(x.operand(), 0);
  return r;
}

/// start_any - such a kernel for operands of the result's shape.
template <class Kernel>
cudaError_t start_any(Array const* const* x, Array const& out, cudaStream_t stream) {
  constexpr int n = Kernel::arity;
  AnyArguments<n> a;
  Shape shape = out.shape();
  Strides strides[n + 1];
  for (int k = 0; k <= n; ++k) {
    Array const& v = k < n ? *x[k] : out;
    a.x[k] = as_operand(v);
    strides[k] = v.strides();
    if (a.x[k].is_number)
      for (int d = 0; d < shape.rank; ++d) strides[k][d] = 0;
    strides[k].rank = shape.rank;
  }
  kernels::detail::join_axes(shape, strides, n + 1);
  a.n = shape.numel();
  a.rank = shape.rank;
  for (int d = 0; d < shape.rank; ++d) {
    a.extents[d] = shape[d];
    for (int k = 0; k <= n; ++k) a.x[k].strides[d] = strides[k][d];
  }
  return start<Kernel>(a, blocks_for(a.n, Kernel::threads), stream);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
