// SPDX-License-Identifier: BSL-1.0
// One element of an array of any dtype as a number, for code in which speed matters little (printing,
// comparing, filling).
// Plain switches rather than dispatch(): every program that includes the library compiles them.
#pragma once

#include <dfdx/core/convert.hpp>
#include <dfdx/value/array.hpp>

namespace dfdx {

/// read_real - the element `offset` elements from the start, as double.
inline double read_real(Operand const& x, index_t offset) {
  switch (x.meta.dtype) {
    case DType::f32: return static_cast<double>(static_cast<float const*>(x.data)[offset]);
    case DType::f64: return static_cast<double const*>(x.data)[offset];
    case DType::f16: return static_cast<double>(float(static_cast<float16 const*>(x.data)[offset]));
    case DType::bf16: return static_cast<double>(float(static_cast<bfloat16 const*>(x.data)[offset]));
    case DType::i32: return static_cast<double>(static_cast<std::int32_t const*>(x.data)[offset]);
    case DType::i64: return static_cast<double>(static_cast<std::int64_t const*>(x.data)[offset]);
    case DType::u8: return static_cast<double>(static_cast<std::uint8_t const*>(x.data)[offset]);
    case DType::i8: return static_cast<double>(static_cast<std::int8_t const*>(x.data)[offset]);
    default: return static_cast<bool const*>(x.data)[offset] ? 1.0 : 0.0;
  }
}

/// read_integer - the same for the integer dtypes and bool, exactly.
inline std::int64_t read_integer(Operand const& x, index_t offset) {
  switch (x.meta.dtype) {
    case DType::i32: return static_cast<std::int32_t const*>(x.data)[offset];
    case DType::i64: return static_cast<std::int64_t const*>(x.data)[offset];
    case DType::u8: return static_cast<std::uint8_t const*>(x.data)[offset];
    case DType::i8: return static_cast<std::int8_t const*>(x.data)[offset];
    case DType::boolean: return static_cast<bool const*>(x.data)[offset] ? 1 : 0;
    default: raise("read_integer: integer dtype required, got ", x.meta.dtype);
  }
}

/// write_real - stores a number as the dtype has it (math::convert_number).
inline void write_real(Operand const& x, index_t offset, double value) {
  switch (x.meta.dtype) {
    case DType::f32: static_cast<float*>(x.data)[offset] = static_cast<float>(value); break;
    case DType::f64: static_cast<double*>(x.data)[offset] = value; break;
    case DType::f16: static_cast<float16*>(x.data)[offset] = float16(value); break;
    case DType::bf16: static_cast<bfloat16*>(x.data)[offset] = bfloat16(value); break;
    case DType::i32:
      static_cast<std::int32_t*>(x.data)[offset] = math::integer_of<std::int32_t>(value);
      break;
    case DType::i64:
      static_cast<std::int64_t*>(x.data)[offset] = math::integer_of<std::int64_t>(value);
      break;
    case DType::u8: static_cast<std::uint8_t*>(x.data)[offset] = math::integer_of<std::uint8_t>(value); break;
    case DType::i8: static_cast<std::int8_t*>(x.data)[offset] = math::integer_of<std::int8_t>(value); break;
    default: static_cast<bool*>(x.data)[offset] = value != 0; break;
  }
}
/// write_number - the same of any number: an i64 has all digits of an integer.
template <class N>
void write_number(Operand const& x, index_t offset, N value) {
  if constexpr (std::is_integral_v<N> && sizeof(N) == 8)
    if (x.meta.dtype == DType::i64) {
      static_cast<std::int64_t*>(x.data)[offset] = static_cast<std::int64_t>(value);
      return;
    }
  write_real(x, offset, static_cast<double>(value));
}

inline double Array::item() const {
  if (size() != 1) raise("item: one element required, got shape ", shape());
  if (device().is_cpu()) return read_real(operand(), 0);
  alignas(std::int64_t) std::byte copy[sizeof(std::int64_t)];
  detail::device_memory->copy(copy, Device{}, data_, device(), size_of(dtype()));
  return read_real(Operand{copy, meta_, strides_}, 0);
}

}  // namespace dfdx
