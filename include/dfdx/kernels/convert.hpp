// SPDX-License-Identifier: BSL-1.0
// Conversions between dtypes, and copies, of strided memory: rows of numbers of any two types.
#pragma once

#include <algorithm>

#include <dfdx/core/convert.hpp>
#include <dfdx/kernels/half.hpp>
#include <dfdx/kernels/rvv/lanes.hpp>
#include <dfdx/kernels/simd/bytes.hpp>
#include <dfdx/kernels/simd/integers.hpp>
#include <dfdx/kernels/simd/transpose.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

inline constexpr index_t buffered = 512;

/// Rows - `rows` times n elements: how far apart elements are in a row, and rows, where numbers go and where they are.
struct Rows {
  index_t n, to_step, from_step, rows = 1, to_row = 0, from_row = 0;
};

template <class To, class From>
void convert_rows(void* to, void const* from, Rows const& r) {
  auto* y = static_cast<To*>(to);
  auto const* x = static_cast<From const*>(from);
#if !defined(__CUDACC__)
  if constexpr (std::is_same_v<To, From> && (sizeof(To) == 4 || sizeof(To) == 8))
    if (r.from_row == 1 && r.to_step == 1 && r.from_step != 1 && r.rows > 1) {
      using F = std::conditional_t<sizeof(To) == 4, float, double>;  // moves of bits
      return kernels::transpose(static_cast<F const*>(from), r.from_step, r.n, r.rows, static_cast<F*>(to),
                                r.to_row);
    }
#endif
  for (index_t row = 0; row < r.rows; ++row, y += r.to_row, x += r.from_row) {
    if (r.from_step == 0 && r.to_step == 1) {
      dfdx::detail::repeat(y, r.n, math::convert_number<To>(*x));
      continue;
    }
#if !defined(__CUDACC__)
    if constexpr (std::is_same_v<To, float> && half_number<From>)
      if (r.from_step == 1 && r.to_step == 1) {
        kernels::widen(y, x, r.n);
        continue;
      }
    if constexpr (std::is_same_v<From, float> && half_number<To>)
      if (r.from_step == 1 && r.to_step == 1) {
        kernels::narrow(y, x, r.n);
        continue;
      }
#endif
    index_t done = 0;
#if defined(DFDX_RVV)
    if constexpr (math::makes_integers<To, From> && !half_number<From>)
      for (index_t const w = rvv::lanes(); done < r.n; done += w) {
        auto const count = static_cast<std::size_t>(r.n - done < w ? r.n - done : w);
        auto const v = rvv::load_part(x + done * r.from_step, r.from_step, count);
        rvv::store_part(y + done * r.to_step, r.to_step, rvv::convert<To, From>(v), count);
      }
#elif !defined(__CUDACC__)
    if (r.from_step == 1 && r.to_step == 1) {
      if constexpr (std::is_same_v<To, float> && byte_number<From>) done = kernels::convert_bytes(y, x, r.n);
      else if constexpr (math::makes_integers<To, From> && !half_number<From>)
        done = kernels::convert_to_integers(y, x, r.n);
    }
#endif
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From> && !std::is_same_v<To, From>)
      if (r.to_step == 1 && r.from_step == 1)
        for (constexpr index_t block = 64; done + block <= r.n; done += block) {
          To made[block];
          for (index_t k = 0; k < block; ++k) made[k] = math::convert_number<To>(x[done + k]);
          std::memcpy(y + done, made, sizeof made);
        }
    auto const put = [&](index_t to_step, index_t from_step) {
      for (index_t i = done; i < r.n; ++i) y[i * to_step] = math::convert_number<To>(x[i * from_step]);
    };
    if (sizeof(From) > 1 && r.to_step == 1 && r.from_step == 1) put(1, 1);
    else put(r.to_step, r.from_step);
  }
}

// Between a dtype and the one it is computed as (and among those). (A template, as what uses it: the 51 loops are
// compiled by programs that convert.)
template <int = 0>
void convert_rows(DType to_type, void* to, DType from_type, void const* from, Rows const& r) {
  auto const from_known = [&](auto x) {
    using X = decltype(x);
    switch (to_type) {
      case DType::f32: return convert_rows<float, X>(to, from, r);
      case DType::f64: return convert_rows<double, X>(to, from, r);
      case DType::i64: return convert_rows<std::int64_t, X>(to, from, r);
      case DType::f16: return convert_rows<float16, X>(to, from, r);
      case DType::bf16: return convert_rows<bfloat16, X>(to, from, r);
      case DType::i32: return convert_rows<std::int32_t, X>(to, from, r);
      case DType::u8: return convert_rows<std::uint8_t, X>(to, from, r);
      case DType::i8: return convert_rows<std::int8_t, X>(to, from, r);
      default: return convert_rows<bool, X>(to, from, r);
    }
  };
  auto const to_known = [&](auto y) {
    using Y = decltype(y);
    switch (from_type) {
      case DType::f16: return convert_rows<Y, float16>(to, from, r);
      case DType::bf16: return convert_rows<Y, bfloat16>(to, from, r);
      case DType::i32: return convert_rows<Y, std::int32_t>(to, from, r);
      case DType::u8: return convert_rows<Y, std::uint8_t>(to, from, r);
      case DType::i8: return convert_rows<Y, std::int8_t>(to, from, r);
      default: return convert_rows<Y, bool>(to, from, r);
    }
  };
  switch (from_type) {
    case DType::f32: return from_known(float{});
    case DType::f64: return from_known(double{});
    case DType::i64: return from_known(std::int64_t{});
    default: break;
  }
  switch (to_type) {
    case DType::f32: return to_known(float{});
    case DType::f64: return to_known(double{});
    case DType::i64: return to_known(std::int64_t{});
    default: return to_known(bool{});
  }
}

// The same where the dtypes are one.
template <int = 0>
void copy_rows(DType type, void* to, void const* from, Rows const& r) {
  switch (size_of(type)) {
    case 1: return convert_rows<std::uint8_t, std::uint8_t>(to, from, r);
    case 2: return convert_rows<std::int16_t, std::int16_t>(to, from, r);
    case 4: return convert_rows<std::int32_t, std::int32_t>(to, from, r);
    default: return convert_rows<std::int64_t, std::int64_t>(to, from, r);
  }
}

template <int = 0>
void convert_run(DType to_type, void* to, index_t to_step, DType from_type, void const* from,
                 index_t from_step, index_t n) {
  convert_rows(to_type, to, from_type, from, Rows{n, to_step, from_step});
}

// Joins neighbouring axes that all operands walk as one, so that rows are long.
inline void join_axes(Shape& s, Strides* t, int operands) {
  int kept = 0;
  for (int a = 0; a < s.rank; ++a) {
    if (s[a] == 1 && s.rank > 1 && a + 1 < s.rank) continue;
    bool joins = kept > 0;
    for (int k = 0; joins && k < operands; ++k) joins = t[k][kept - 1] == t[k][a] * s[a];
    if (kept > 0 && s[a] == 1) continue;
    if (joins) s[kept - 1] *= s[a];
    else s[kept++] = s[a];
    for (int k = 0; k < operands; ++k) t[k][kept - 1] = t[k][a];
  }
  s.rank = kept;
  for (int k = 0; k < operands; ++k) t[k].rank = kept;
}

}  // namespace detail

/// convert - out = in, each element in out's dtype, as math::convert_number has it.
template <int = 0>
void convert(Operand const& in, Operand const& out) {
  Shape shape = out.meta.shape;
  Strides strides[2] = {in.strides, out.strides};
  detail::join_axes(shape, strides, 2);
  RowWalk row(shape, strides, 2);
  if (row.empty()) return;
  DType const from = in.meta.dtype, to = out.meta.dtype;
  auto const is_computed = [](DType d) { return d == DType::f32 || d == DType::f64 || d == DType::i64; };
  // What has neither side among the dtypes computed with goes through one that holds both; and halves on their way to
  // integers through floats, for which there are lanes.
  bool const direct = is_computed(from) || (is_computed(to) && !(is_half(from) && to == DType::i64));
  DType const between = is_floating(from) ? DType::f32 : DType::i64;
  auto const* x = static_cast<std::byte const*>(in.data);
  auto* y = static_cast<std::byte*>(out.data);
  auto const from_size = static_cast<index_t>(size_of(from)), to_size = static_cast<index_t>(size_of(to));
  do {
    std::byte const* const a = x + row.offset[0] * from_size;
    std::byte* const b = y + row.offset[1] * to_size;
    if (direct) {
      detail::convert_run(to, b, row.step[1], from, a, row.step[0], row.size);
      continue;
    }
    alignas(64) std::byte buffer[detail::buffered * sizeof(double)];
    for (index_t i = 0; i < row.size; i += detail::buffered) {
      index_t const count = row.size - i < detail::buffered ? row.size - i : detail::buffered;
      detail::convert_run(between, buffer, 1, from, a + i * row.step[0] * from_size, row.step[0], count);
      detail::convert_run(to, b + i * row.step[1] * to_size, row.step[1], between, buffer, 1, count);
    }
  } while (row.next());
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
