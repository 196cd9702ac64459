// SPDX-License-Identifier: BSL-1.0
// Vectors of any length: the types of RVV 1.0 that hold as many numbers each, whatever their size, and what is the same
// for several of them. A float takes a group of two registers, so that 16 groups remain, and loops spend little on
// themselves; a double takes four, a half number one. All have VLEN / 16 lanes, and one type of mask.
#pragma once

#include <cstddef>
#include <utility>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/kernels/nth.hpp>
#include <dfdx/kernels/rvv/formula.hpp>

#if defined(DFDX_RVV)

#include <riscv_vector.h>

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// every - the vector length that asks for all lanes there are.
inline constexpr std::size_t every = ~std::size_t{0};

/// lanes - how many there are; a number that only the running program knows.
DFDX_INLINE index_t lanes() { return static_cast<index_t>(__riscv_vsetvlmax_e32m2()); }

/// most_lanes - of the longest vectors that the architecture allows (VLEN 65536).
inline constexpr std::size_t most_lanes = 4096;

using Floats = vfloat32m2_t;
using Doubles = vfloat64m4_t;
using Ints = vint32m2_t;
using Longs = vint64m4_t;
using Mask = vbool16_t;

template <class T>
struct vector_of;
template <>
struct vector_of<float> {
  using type = Floats;
};
template <>
struct vector_of<double> {
  using type = Doubles;
};
template <>
struct vector_of<std::int32_t> {
  using type = Ints;
};
template <>
struct vector_of<std::int64_t> {
  using type = Longs;
};
// Lanes hold bytes as integers of 32 bits.
template <byte_number T>
struct vector_of<T> : vector_of<std::int32_t> {};
template <>
struct vector_of<bool> {
  using type = Mask;
};
/// vector_t - lanes of T; of truth values a mask.
template <class T>
using vector_t = typename vector_of<T>::type;

template <class T>
DFDX_INLINE vector_t<T> splat(T x) {
  if constexpr (std::is_same_v<T, float>) return __riscv_vfmv_v_f_f32m2(x, every);
  else if constexpr (std::is_same_v<T, double>) return __riscv_vfmv_v_f_f64m4(x, every);
  else if constexpr (std::is_same_v<T, std::int32_t> || byte_number<T>)
    return __riscv_vmv_v_x_i32m2(x, every);
  else if constexpr (std::is_same_v<T, std::int64_t>) return __riscv_vmv_v_x_i64m4(x, every);
  else return __riscv_vmsne(__riscv_vmv_v_x_u8mf2(x, every), 0, every);
}

/// load_part - the first n numbers of a row whose neighbours are `step` numbers apart.
template <class T>
DFDX_INLINE vector_t<T> load_part(T const* p, index_t step, std::size_t n) {
  auto const bytes = step * static_cast<index_t>(sizeof(T));
  if constexpr (std::is_same_v<T, float>)
    return step == 1 ? __riscv_vle32_v_f32m2(p, n) : __riscv_vlse32_v_f32m2(p, bytes, n);
  else if constexpr (std::is_same_v<T, double>)
    return step == 1 ? __riscv_vle64_v_f64m4(p, n) : __riscv_vlse64_v_f64m4(p, bytes, n);
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return step == 1 ? __riscv_vle32_v_i32m2(p, n) : __riscv_vlse32_v_i32m2(p, bytes, n);
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return step == 1 ? __riscv_vle64_v_i64m4(p, n) : __riscv_vlse64_v_i64m4(p, bytes, n);
  else {
    auto const* bytes_of = reinterpret_cast<std::uint8_t const*>(p);
    vuint8mf2_t const x =
        step == 1 ? __riscv_vle8_v_u8mf2(bytes_of, n) : __riscv_vlse8_v_u8mf2(bytes_of, bytes, n);
    if constexpr (std::is_same_v<T, std::uint8_t>) return __riscv_vreinterpret_i32m2(__riscv_vzext_vf4(x, n));
    else if constexpr (std::is_same_v<T, std::int8_t>)
      return __riscv_vsext_vf4(__riscv_vreinterpret_i8mf2(x), n);
    else return __riscv_vmsne(x, 0, n);
  }
}

template <class T>
DFDX_INLINE void store_part(T* p, index_t step, vector_t<T> x, std::size_t n) {
  auto const bytes = step * static_cast<index_t>(sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    vuint8mf2_t const ones = __riscv_vmerge(__riscv_vmv_v_x_u8mf2(0, n), 1, x, n);
    auto* bytes_of = reinterpret_cast<std::uint8_t*>(p);
    if (step == 1) __riscv_vse8(bytes_of, ones, n);
    else __riscv_vsse8(bytes_of, bytes, ones, n);
  } else if constexpr (byte_number<T>) {
    vint8mf2_t const lower = __riscv_vncvt_x(__riscv_vncvt_x(x, n), n);
    auto* bytes_of = reinterpret_cast<std::int8_t*>(p);
    if (step == 1) __riscv_vse8(bytes_of, lower, n);
    else __riscv_vsse8(bytes_of, bytes, lower, n);
  } else if constexpr (sizeof(T) == 4) {
    if (step == 1) __riscv_vse32(p, x, n);
    else __riscv_vsse32(p, bytes, x, n);
  } else {
    if (step == 1) __riscv_vse64(p, x, n);
    else __riscv_vsse64(p, bytes, x, n);
  }
}

/// first_of - the first n lanes of x, the others those of y.
template <class T>
DFDX_INLINE vector_t<T> first_of(vector_t<T> x, vector_t<T> y, std::size_t n) {
  if constexpr (std::is_same_v<T, bool>) {
    Mask const first = __riscv_vmsltu(__riscv_vid_v_u32m2(every), static_cast<std::uint32_t>(n), every);
    return __riscv_vmor(__riscv_vmand(x, first, every), __riscv_vmandn(y, first, every), every);
  } else {
    return __riscv_vmv_v_tu(y, x, n);
  }
}

/// sum_of - of all lanes of floats or doubles.
template <class T>
DFDX_INLINE T sum_of(vector_t<T> const& x) {
  if constexpr (sizeof(T) == 4)
    return __riscv_vfmv_f(__riscv_vfredusum(x, __riscv_vfmv_s_f_f32m1(0, 1), every));
  else return __riscv_vfmv_f(__riscv_vfredusum(x, __riscv_vfmv_s_f_f64m1(0, 1), every));
}

namespace detail {

/// with_vectors - calls f with so many vectors of zeros that it may change.
template <class E, int Count, class F, class... V>
DFDX_INLINE void with_vectors(F const& f, V&... v) {
  if constexpr (Count == 0) {
    f(v...);
  } else {
    vector_t<E> next = splat(E(0));
    with_vectors<E, Count - 1>(f, v..., next);
  }
}

/// each_constant - f.operator()<I>() for I from 0 to Count - 1.
template <int Count, class F>
DFDX_INLINE void each_constant(F const& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) DFDX_INLINE_LAMBDA {
    (f.template operator()<static_cast<int>(I)>(), ...);
  }(std::make_index_sequence<Count>{});
}

}  // namespace detail

/// Half numbers as floats and back, rounded to nearest even. bfloat16 is the upper half of a float.
DFDX_INLINE Floats float_of_bfloat(vuint16m1_t x, std::size_t n) {
  return __riscv_vreinterpret_f32m2(__riscv_vsll(__riscv_vzext_vf2(x, n), 16, n));
}
DFDX_INLINE vuint16m1_t bfloat_of_float(Floats x, std::size_t n) {
  vuint32m2_t const bits = __riscv_vreinterpret_u32m2(x), upper = __riscv_vsrl(bits, 16, n);
  vuint32m2_t const carry = __riscv_vadd(__riscv_vand(upper, 1, n), 0x7fff, n);
  vuint32m2_t const number = __riscv_vsrl(__riscv_vadd(bits, carry, n), 16, n);
  Mask const nan = __riscv_vmfne(x, x, n);
  return __riscv_vncvt_x(__riscv_vmerge(number, __riscv_vor(upper, 0x40, n), nan, n), n);
}
DFDX_INLINE Floats float_of_half(vuint16m1_t x, std::size_t n) {
#if defined(__riscv_zvfhmin)
  return __riscv_vfwcvt_f(__riscv_vreinterpret_f16m1(x), n);
#else
  // The exponent's bias grows by a multiplication, which is exact and takes subnormal numbers along.
  vuint32m2_t const wide = __riscv_vzext_vf2(x, n), size = __riscv_vsll(__riscv_vand(wide, 0x7fff, n), 13, n);
  Floats const scaled = __riscv_vfmul(__riscv_vreinterpret_f32m2(size), 0x1p112f, n);
  vuint32m2_t bits = __riscv_vreinterpret_u32m2(scaled);
  Mask const special = __riscv_vmsgtu(size, 0x0f7fffffu, n);  // infinity and NaN
  bits = __riscv_vmerge(bits, __riscv_vor(size, 0x7f800000u, n), special, n);
  return __riscv_vreinterpret_f32m2(__riscv_vor(bits, __riscv_vsll(__riscv_vand(wide, 0x8000, n), 16, n), n));
#endif
}
DFDX_INLINE vuint16m1_t half_of_float(Floats x, std::size_t n) {
#if defined(__riscv_zvfhmin)
  return __riscv_vreinterpret_u16m1(__riscv_vfncvt_f(x, n));
#else
  // An addition rounds at the last place that the half has: of a power of two 13 places above x, or, for what is
  // subnormal as a half, of 1/2, whose last place is that of those.
  vuint32m2_t const bits = __riscv_vreinterpret_u32m2(x), size = __riscv_vand(bits, 0x7fffffff, n);
  vuint32m2_t const sign = __riscv_vand(__riscv_vsrl(bits, 16, n), 0x8000, n);
  vuint32m2_t const odd = __riscv_vand(__riscv_vsrl(size, 13, n), 1, n);
  vuint32m2_t const rounded = __riscv_vadd(__riscv_vadd(size, odd, n), 0xfff - (112u << 23), n);
  vuint32m2_t half = __riscv_vminu(__riscv_vsrl(rounded, 13, n), 0x7c00, n);
  Floats const small = __riscv_vfadd(__riscv_vreinterpret_f32m2(size), 0.5f, n);
  vuint32m2_t const tiny = __riscv_vsub(__riscv_vreinterpret_u32m2(small), 0x3f000000u, n);
  half = __riscv_vmerge(half, tiny, __riscv_vmsltu(size, 113u << 23, n), n);
  vuint32m2_t const payload = __riscv_vor(__riscv_vand(__riscv_vsrl(size, 13, n), 0x3ff, n), 0x7e00, n);
  half = __riscv_vmerge(half, payload, __riscv_vmsgtu(size, 0x7f800000u, n), n);
  return __riscv_vncvt_x(__riscv_vor(half, sign, n), n);
#endif
}

/// load_bits, store_bits - numbers of 16 bits as they are.
DFDX_INLINE vuint16m1_t load_bits(void const* p, index_t step, std::size_t n) {
  auto const* at = static_cast<std::uint16_t const*>(p);
  return step == 1 ? __riscv_vle16_v_u16m1(at, n) : __riscv_vlse16_v_u16m1(at, step * 2, n);
}
DFDX_INLINE void store_bits(void* p, index_t step, vuint16m1_t x, std::size_t n) {
  auto* at = static_cast<std::uint16_t*>(p);
  if (step == 1) __riscv_vse16(at, x, n);
  else __riscv_vsse16(at, step * 2, x, n);
}

template <class H>
DFDX_INLINE Floats load_half(H const* p, index_t step, std::size_t n) {
  vuint16m1_t const x = load_bits(p, step, n);
  if constexpr (std::is_same_v<H, bfloat16>) return float_of_bfloat(x, n);
  else return float_of_half(x, n);
}
template <class H>
DFDX_INLINE void store_half(H* p, index_t step, Floats x, std::size_t n) {
  vuint16m1_t h;
  if constexpr (std::is_same_v<H, bfloat16>) h = bfloat_of_float(x, n);
  else h = half_of_float(x, n);
  store_bits(p, step, h, n);
}

/// multiplies_halves - whether there are products of float16 that are added to sums of float.
#if defined(__riscv_zvfh)
inline constexpr bool multiplies_halves = true;
using Halves = vfloat16m1_t;
DFDX_INLINE Halves load_halves(float16 const* p, index_t step, std::size_t n) {
  return __riscv_vreinterpret_f16m1(load_bits(p, step, n));
}
#else
inline constexpr bool multiplies_halves = false;
#endif

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
