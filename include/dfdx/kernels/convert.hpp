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

// Whether elements lie side by side, and rows too.
constexpr bool is_dense(index_t n, index_t step, index_t rows, index_t row) {
  return (step == 1 || n == 1) && (rows == 1 || row == n);
}

/// copy_rows - rows of elements of one dtype.
template <int = 0>
void copy_rows(DType type, void* to, void const* from, Rows const& r) {
  std::size_t const size = size_of(type);
  if (is_dense(r.n, r.to_step, r.rows, r.to_row) && is_dense(r.n, r.from_step, r.rows, r.from_row)) {
    std::memcpy(to, from, static_cast<std::size_t>(r.n * r.rows) * size);
    return;
  }
#if !defined(__CUDACC__)
  if (r.from_row == 1 && r.to_step == 1 && r.from_step != 1 && r.rows > 1) {  // moves of bits
    if (size == 4)
      return kernels::transpose(static_cast<float const*>(from), r.from_step, r.n, r.rows,
                                static_cast<float*>(to), r.to_row);
    if (size == 8)
      return kernels::transpose(static_cast<double const*>(from), r.from_step, r.n, r.rows,
                                static_cast<double*>(to), r.to_row);
  }
#endif
  dfdx::detail::copy_rows_of(size)(to, r.to_row, r.to_step, from, r.from_row, r.from_step, r.rows, r.n);
}

/// OddFloat - what a double is as a float on its way to 16 bits: one that is rounded to the odd number.
struct OddFloat {};

// A number as To has it.
template <class To, class From>
DFDX_INLINE auto converted(From x) {
  if constexpr (std::is_same_v<To, OddFloat>) return dfdx::detail::to_wide_float(x);
  else return math::convert_number<To>(x);
}
// As many of n numbers as there are lanes or blocks for, which it returns; and y[i] = x[i] for n numbers side by side.
template <class To, class Y, class From>
index_t convert_blocks(Y* DFDX_RESTRICT y, From const* DFDX_RESTRICT x, index_t n) {
#if defined(DFDX_RVV)
  if constexpr (math::makes_integers<Y, From> && !half_number<From>) {
    index_t const w = rvv::lanes();
    for (index_t i = 0; i < n; i += w) {
      auto const count = static_cast<std::size_t>(n - i < w ? n - i : w);
      rvv::store_part(y + i, 1, rvv::convert<Y, From>(rvv::load_part(x + i, 1, count)), count);
    }
    return n;
  }
#elif !defined(__CUDACC__)
  if constexpr (std::is_same_v<Y, float> && byte_number<From>) return kernels::convert_bytes(y, x, n);
  else if constexpr (math::makes_integers<Y, From>) return kernels::convert_to_integers(y, x, n);
#endif
  // Compilers make vectors, also at -O2, where they know how many there are.
  index_t i = 0;
  for (constexpr index_t block = 64; i + block <= n; i += block) {
    Y made[block];
    for (index_t k = 0; k < block; ++k) made[k] = converted<To>(x[i + k]);
    std::memcpy(y + i, made, sizeof made);
  }
  return i;
}
template <class To, class From>
void convert_numbers(void* to, void const* from, index_t n) {
  using Y = std::conditional_t<std::is_same_v<To, OddFloat>, float, To>;
  auto* const y = static_cast<Y*>(to);
  auto const* const x = static_cast<From const*>(from);
#if !defined(__CUDACC__)
  if constexpr (std::is_same_v<Y, float> && half_number<From>) return kernels::widen(y, x, n);
  else if constexpr (std::is_same_v<From, float> && half_number<Y>) return kernels::narrow(y, x, n);
  else
#endif
    for (index_t i = convert_blocks<To>(y, x, n); i < n; ++i) y[i] = converted<To>(x[i]);
}

/// Conversion - a loop from one dtype to `to`, which is the one that is asked for or lies on the way there.
struct Conversion {
  void (*run)(void* to, void const* from, index_t n);
  DType to;
};

/// conversion - the first loop on the way from one dtype to another. On the way numbers lose nothing that they would
/// not lose at the end: so 32 loops do for all 72 pairs. (A template, as what uses it: programs that convert compile
/// them.)
template <int = 0>
Conversion conversion(DType to, DType from) {
  using enum DType;
  auto const small = [&](auto x) -> Conversion {
    using X = decltype(x);
    if (to == i64 || to == i32 || to == u8 || to == i8) return {&convert_numbers<std::int32_t, X>, i32};
    return {&convert_numbers<float, X>, f32};
  };
  switch (from) {
    case f32:
      switch (to) {
        case f64: return {&convert_numbers<double, float>, f64};
        case i64: return {&convert_numbers<std::int64_t, float>, i64};
        case f16: return {&convert_numbers<float16, float>, f16};
        case bf16: return {&convert_numbers<bfloat16, float>, bf16};
        case u8: return {&convert_numbers<std::uint8_t, float>, u8};
        case i8: return {&convert_numbers<std::int8_t, float>, i8};
        case boolean: return {&convert_numbers<bool, float>, boolean};
        default: return {&convert_numbers<std::int32_t, float>, i32};
      }
    case f64:
      if (is_half(to)) return {&convert_numbers<OddFloat, double>, f32};
      if (to == f32) return {&convert_numbers<float, double>, f32};
      if (to == i64) return {&convert_numbers<std::int64_t, double>, i64};
      if (to == u8) return {&convert_numbers<std::uint8_t, double>, u8};
      if (to == i8) return {&convert_numbers<std::int8_t, double>, i8};
      if (to == boolean) return {&convert_numbers<bool, double>, boolean};
      return {&convert_numbers<std::int32_t, double>, i32};
    case i64:
      if (to == f64) return {&convert_numbers<double, std::int64_t>, f64};
      if (to == boolean) return {&convert_numbers<bool, std::int64_t>, boolean};
      if (to == i32) return {&convert_numbers<std::int32_t, std::int64_t>, i32};
      if (to == u8) return {&convert_numbers<std::uint8_t, std::int64_t>, u8};
      if (to == i8) return {&convert_numbers<std::int8_t, std::int64_t>, i8};
      return {&convert_numbers<float, std::int64_t>, f32};
    case i32:
      if (to == f64) return {&convert_numbers<double, std::int32_t>, f64};
      if (to == i64) return {&convert_numbers<std::int64_t, std::int32_t>, i64};
      if (to == u8) return {&convert_numbers<std::uint8_t, std::int32_t>, u8};
      if (to == i8) return {&convert_numbers<std::int8_t, std::int32_t>, i8};
      return {&convert_numbers<float, std::int32_t>, f32};
    case f16: return {&convert_numbers<float, float16>, f32};
    case bf16: return {&convert_numbers<float, bfloat16>, f32};
    case i8: return small(std::int8_t{});
    default: return small(std::uint8_t{});  // truths are bytes too, 0 or 1
  }
}

/// convert_run - n numbers side by side, in another dtype.
template <int = 0>
void convert_run(DType to_type, void* to, DType from_type, void const* from, index_t n) {
  Conversion const first = conversion(to_type, from_type);
  if (first.to == to_type) return first.run(to, from, n);
  auto const to_size = static_cast<index_t>(size_of(to_type)),
             from_size = static_cast<index_t>(size_of(from_type));
  alignas(64) std::byte buffers[2][buffered * sizeof(double)];
  for (index_t i = 0; i < n; i += buffered) {
    index_t const count = n - i < buffered ? n - i : buffered;
    void const* x = static_cast<std::byte const*>(from) + i * from_size;
    Conversion c = first;
    for (int turn = 0; c.to != to_type; turn ^= 1) {
      c.run(buffers[turn], x, count);
      x = buffers[turn];
      c = conversion(to_type, c.to);
    }
    c.run(static_cast<std::byte*>(to) + i * to_size, x, count);
  }
}

/// convert_rows - rows in another dtype. Numbers that lie apart are copied side by side, for which there are vectors.
template <int = 0>
void convert_rows(DType to_type, void* to, DType from_type, void const* from, Rows const& r) {
  if (to_type == from_type) return copy_rows(to_type, to, from, r);
  bool const from_dense = is_dense(r.n, r.from_step, r.rows, r.from_row),
             to_dense = is_dense(r.n, r.to_step, r.rows, r.to_row);
  if (from_dense && to_dense) return convert_run(to_type, to, from_type, from, r.n * r.rows);
  auto const to_size = static_cast<index_t>(size_of(to_type)),
             from_size = static_cast<index_t>(size_of(from_type));
  bool const repeats = r.from_step == 0 && r.n > 1;
  // The numbers of a row that differ, and how many of them, of how many rows, are taken at once.
  index_t const n = repeats ? 1 : r.n, part = n < buffered ? n : buffered,
                at_once = buffered / (part > 0 ? part : 1);
  alignas(64) std::byte numbers[buffered * sizeof(double)], made[buffered * sizeof(double)];
  for (index_t row = 0; row < r.rows; row += at_once)
    for (index_t i = 0; i < n; i += part) {
      Rows here = r;
      here.n = n - i < part ? n - i : part, here.rows = r.rows - row < at_once ? r.rows - row : at_once;
      void const* x = static_cast<std::byte const*>(from) + (row * r.from_row + i * r.from_step) * from_size;
      void* const y = static_cast<std::byte*>(to) + (row * r.to_row + i * r.to_step) * to_size;
      if (!is_dense(here.n, r.from_step, here.rows, r.from_row)) {
        copy_rows(from_type, numbers, x, {here.n, 1, r.from_step, here.rows, here.n, r.from_row});
        x = numbers;
      }
      if (!repeats && is_dense(here.n, r.to_step, here.rows, r.to_row)) {
        convert_run(to_type, y, from_type, x, here.n * here.rows);
        continue;
      }
      convert_run(to_type, made, from_type, x, here.n * here.rows);
      copy_rows(to_type, y, made,
                repeats ? Rows{r.n, r.to_step, 0, here.rows, r.to_row, 1}
                        : Rows{here.n, r.to_step, 1, here.rows, r.to_row, here.n});
    }
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
  // The walk goes over the axes before the last two.
  index_t n = 1, step[2] = {1, 1};
  if (shape.rank > 0) {
    n = shape[--shape.rank];
    for (int k = 0; k < 2; ++k) step[k] = strides[k][--strides[k].rank];
  }
  RowWalk rows(shape, strides, 2);
  if (rows.empty() || n == 0) return;
  DType const from = in.meta.dtype, to = out.meta.dtype;
  auto const from_size = static_cast<index_t>(size_of(from)), to_size = static_cast<index_t>(size_of(to));
  do
    detail::convert_rows(to, static_cast<std::byte*>(out.data) + rows.offset[1] * to_size, from,
                         static_cast<std::byte const*>(in.data) + rows.offset[0] * from_size,
                         {n, step[1], step[0], rows.size, rows.step[1], rows.step[0]});
  while (rows.next());
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
