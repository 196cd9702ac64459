// SPDX-License-Identifier: BSL-1.0
// Plain numbers among the operands of ops: which dtype they take, and arrays that repeat them.
#pragma once

#include <type_traits>

#include <dfdx/value/tensor.hpp>
#include <dfdx/vocabulary/dense.hpp>

namespace dfdx {

/// number - a plain arithmetic value among operands; it takes the dtype of the operand beside it.
template <class X>
concept number = std::is_arithmetic_v<std::remove_cvref_t<X>>;

/// full_as - of numbers on the tape (vocabulary/dense.hpp has those of other values).
constexpr PlainNumber full_as(PlainNumber const&, Meta const&, double value) { return PlainNumber{value, 0}; }

namespace detail {

template <class X>
concept plain = std::is_same_v<std::remove_cvref_t<X>, PlainNumber>;

// A number beside an operand has its dtype, unless it has a fraction and the operand cannot.
template <class N>
constexpr DType number_dtype(DType beside) {
  if (std::is_floating_point_v<N> && !is_floating(beside)) return DType::f32;
  if (beside == DType::boolean && !std::is_same_v<N, bool>) return DType::i64;
  return beside;
}

// A number that an integer dtype cannot hold, though u8 takes -1 for 255, as in PyTorch.
[[noreturn]] inline void refuse_number(char const* name, double x, DType dtype) {
  if (!(x > -0x1p63 && x < 0x1p63)) raise(name, ": a number that does not fit ", dtype);
  raise(name, ": ", Position{static_cast<index_t>(x)}, " does not fit ", dtype);
}
constexpr bool holds(DType dtype, double x) {
  if (is_floating(dtype) || dtype == DType::boolean) return true;
  if (dtype == DType::u8) return x > -256 && x < 256;
  double const most = dtype == DType::i8 ? 128 : dtype == DType::i32 ? 0x1p31 : 0x1p63;
  return x >= -most && x < most;
}

// Every element is that number: one that is too long for the double of a constant is the sum of two.
template <class V, class N>
constexpr V full_of(V const& like, Meta const& meta, N x, char const* name) {
  if constexpr (std::is_integral_v<N> && sizeof(N) == 8) {
    auto const i = static_cast<index_t>(x);
    constexpr index_t exact = index_t{1} << 53;
    if (!is_floating(meta.dtype) && (i > exact || i < -exact)) {
      if (meta.dtype != DType::i64) raise(name, ": ", Position{i}, " does not fit ", meta.dtype);
      index_t const low = i & 0xffffffff;
      return bind<op::add>(Attrs{}, full_as(like, meta, static_cast<double>(i - low)),
                           full_as(like, meta, static_cast<double>(low)));
    }
  }
  if (!holds(meta.dtype, static_cast<double>(x))) refuse_number(name, static_cast<double>(x), meta.dtype);
  return full_as(like, meta, static_cast<double>(x));
}

// Whether a number beside operands of 16 bits is one that 16 bits do not hold.
template <class X>
constexpr bool loses_digits(X const& x, DType dtype) {
  if constexpr (operand<X>) return false;
  else return math::held_by(dtype, static_cast<double>(x)) != static_cast<double>(x);
}
// What numbers are compared with 16 bits as: what those hold of them, so that an element that is set to 0.1 equals 0.1.
template <class Op>
inline constexpr bool compares = result_of_computed<Op, float>().dtype == DType::boolean;
template <class Op, class X>
constexpr decltype(auto) beside_half(X const& x, DType dtype) {
  if constexpr (operand<X> || !compares<Op> || std::is_same_v<X, bool>) return (x);
  else if constexpr (std::is_integral_v<X> && sizeof(X) == 8) {  // doubles do not hold all of these
    double const held = is_half(dtype) ? math::held_by(dtype, static_cast<double>(x)) : 0x1p63;
    return held > -0x1p63 && held < 0x1p63 ? static_cast<X>(held) : x;
  } else {
    auto const v = static_cast<double>(x);
    return is_half(dtype) ? math::held_by(dtype, v) : v;
  }
}

}  // namespace detail

}  // namespace dfdx
