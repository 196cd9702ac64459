// SPDX-License-Identifier: BSL-1.0
// Element types: the enum DType, its C++ types, the two 16-bit floats, sizes, names and promotion.
// Not here: lane types of the SIMD kernels (kernels/simd/batch.hpp).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dfdx/core/config.hpp>

namespace dfdx {

/// DType - the element types an Array can hold. What a number of one is in another: core/convert.hpp.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, i8, boolean };

inline constexpr int dtype_count = 9;

namespace detail {

// IEEE 754 binary16, round to nearest even; works on the bits so that it also runs in a constant expression. GPUs have
// instructions for it (PTX ISA, cvt), which give other bits for what is no number.
DFDX_DEVICE constexpr std::uint16_t to_half_bits(float value) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint16_t r = 0;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(value));
    return r;
  }
#endif
  std::uint32_t const x = std::bit_cast<std::uint32_t>(value);
  std::uint32_t const sign = (x >> 16) & 0x8000u;
  std::uint32_t const magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x33000001u) return static_cast<std::uint16_t>(sign);
  auto const exponent = static_cast<int>(magnitude >> 23);
  std::uint32_t const mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  int const shift = exponent < 113 ? 126 - exponent : 13;
  std::uint32_t const kept = mantissa >> shift;
  std::uint32_t const rest = mantissa & ((1u << shift) - 1u);
  std::uint32_t const half = 1u << (shift - 1);
  std::uint32_t rounded = kept + ((rest > half || (rest == half && (kept & 1u))) ? 1u : 0u);
  // A normal number's kept bits carry the implicit one, which adds one to the exponent field.
  if (exponent >= 113) rounded += static_cast<std::uint32_t>(exponent - 113) << 10;
  return static_cast<std::uint16_t>(sign | rounded);
}

DFDX_DEVICE constexpr float from_half_bits(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    float r = 0;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
    return r;
  }
#endif
  std::uint32_t const sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  std::uint32_t const exponent = (bits >> 10) & 0x1fu;
  std::uint32_t const mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float const small = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -small : small;
}

DFDX_DEVICE constexpr std::uint16_t to_bfloat_bits(float value) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint16_t r = 0;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(value));
    return r;
  }
#endif
  std::uint32_t const x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((x >> 16) | 0x40u);
  return static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

DFDX_DEVICE constexpr float from_bfloat_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// A double as the float beside it that is nearest, or, if it lies between two, the one of these whose last bit is set
// (rounding to odd). That bit says that there is more, so that rounding the float to 16 bits is rounding the double:
// the nearest float could lie just in the middle of two numbers of 16 bits where the double does not.
DFDX_DEVICE constexpr float to_odd_float(double value) {
  auto const nearest = static_cast<float>(value);
  auto const back = static_cast<double>(nearest);
  auto const bits = std::bit_cast<std::uint32_t>(nearest);
  if (back == value || value != value || (bits & 1u) != 0) return nearest;
  bool const is_above = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  return std::bit_cast<float>(is_above ? bits - 1 : bits + 1);
}
// Any number but a float as the float that a number of 16 bits is made from.
template <class N>
DFDX_DEVICE constexpr float to_wide_float(N value) {
  if constexpr (std::is_same_v<N, double>) return to_odd_float(value);
  else return static_cast<float>(value);
}

}  // namespace detail

/// float16 - IEEE 754 binary16; stored in 16 bits, computed with as float, rounded to nearest even.
struct float16 {
  std::uint16_t bits = 0;
  constexpr float16() = default;
  DFDX_DEVICE constexpr float16(float value) : bits(detail::to_half_bits(value)) {}
  template <class N>
    requires std::is_arithmetic_v<N>
  DFDX_DEVICE constexpr float16(N value) : float16(detail::to_wide_float(value)) {}
  DFDX_DEVICE constexpr operator float() const { return detail::from_half_bits(bits); }
};

/// bfloat16 - the upper half of a float; computed with as float, rounded to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;
  constexpr bfloat16() = default;
  DFDX_DEVICE constexpr bfloat16(float value) : bits(detail::to_bfloat_bits(value)) {}
  template <class N>
    requires std::is_arithmetic_v<N>
  DFDX_DEVICE constexpr bfloat16(N value) : bfloat16(detail::to_wide_float(value)) {}
  DFDX_DEVICE constexpr operator float() const { return detail::from_bfloat_bits(bits); }
};

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};
template <class T>
inline constexpr DType dtype_v = dtype_of<T>::value;

/// element - a type that an Array can hold.
template <class T>
concept element = requires { dtype_of<T>::value; };

/// byte_number - an integer of eight bits.
template <class T>
concept byte_number = std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t>;

template <DType D>
struct element_of;
template <>
struct element_of<DType::f32> : std::type_identity<float> {};
template <>
struct element_of<DType::f64> : std::type_identity<double> {};
template <>
struct element_of<DType::f16> : std::type_identity<float16> {};
template <>
struct element_of<DType::bf16> : std::type_identity<bfloat16> {};
template <>
struct element_of<DType::i32> : std::type_identity<std::int32_t> {};
template <>
struct element_of<DType::i64> : std::type_identity<std::int64_t> {};
template <>
struct element_of<DType::u8> : std::type_identity<std::uint8_t> {};
template <>
struct element_of<DType::i8> : std::type_identity<std::int8_t> {};
template <>
struct element_of<DType::boolean> : std::type_identity<bool> {};
template <DType D>
using element_t = typename element_of<D>::type;

/// compute_t - the type that arithmetic on T is done in: float for the 16-bit floats, else T itself.
template <class T>
using compute_t = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

constexpr std::size_t size_of(DType d) {
  constexpr std::size_t sizes[dtype_count] = {4, 8, 2, 2, 4, 8, 1, 1, 1};
  return sizes[static_cast<int>(d)];
}

constexpr char const* name_of(DType d) {
  constexpr char const* names[dtype_count] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "i8", "bool"};
  return names[static_cast<int>(d)];
}

constexpr bool is_floating(DType d) { return d <= DType::bf16; }

/// is_half - a floating dtype of 16 bits. In registers its numbers are floats.
constexpr bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

/// largest_finite - the largest number of a floating dtype.
constexpr double largest_finite(DType d) {
  return d == DType::f64   ? 0x1.fffffffffffffp1023
         : d == DType::f32 ? 0x1.fffffep127
         : d == DType::f16 ? 65504.0
                           : 0x1.fep127;
}

/// is_byte - an integer of eight bits. Products of those are summed in i32.
constexpr bool is_byte(DType d) { return d == DType::u8 || d == DType::i8; }

/// promote - the dtype of a mixed operation: floating beats integer beats bool; within a kind the wider one;
/// f16 with bf16 gives f32 (PyTorch's rule), and u8 with i8 i32.
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a)) {
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    return DType::f32;
  }
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (is_byte(a) && is_byte(b)) return DType::i32;
  if (is_byte(a)) return b;
  if (is_byte(b)) return a;
  return DType::i64;
}

/// product_dtype - the dtype of sums of products: of integers of eight bits, of either kind, i32, else as promote.
constexpr DType product_dtype(DType a, DType b) {
  return is_byte(a) && is_byte(b) ? DType::i32 : promote(a, b);
}

/// dispatch - calls f(std::type_identity<T>{}) with the C++ type of a dtype that is known at run time only.
template <class F>
constexpr decltype(auto) dispatch(DType d, F&& f) {
  switch (d) {
    case DType::f32: return f(std::type_identity<float>{});
    case DType::f64: return f(std::type_identity<double>{});
    case DType::f16: return f(std::type_identity<float16>{});
    case DType::bf16: return f(std::type_identity<bfloat16>{});
    case DType::i32: return f(std::type_identity<std::int32_t>{});
    case DType::i64: return f(std::type_identity<std::int64_t>{});
    case DType::u8: return f(std::type_identity<std::uint8_t>{});
    case DType::i8: return f(std::type_identity<std::int8_t>{});
    default: return f(std::type_identity<bool>{});
  }
}

/// bits_of - the unsigned integer as wide as T: the type of what is only moved matters for its size.
template <class T>
using bits_of =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// dispatch_bits - f(std::type_identity<T>{}) with the unsigned integer as wide as a dtype.
template <class F>
constexpr decltype(auto) dispatch_bits(DType d, F&& f) {
  switch (size_of(d)) {
    case 1: return f(std::type_identity<std::uint8_t>{});
    case 2: return f(std::type_identity<std::uint16_t>{});
    case 4: return f(std::type_identity<std::uint32_t>{});
    default: return f(std::type_identity<std::uint64_t>{});
  }
}

}  // namespace dfdx
