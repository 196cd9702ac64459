// SPDX-License-Identifier: BSL-1.0
// Elements at computed places, on vectors of any length.
#pragma once

#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// gathered - lane i is the number at p[places[i]].
template <class T>
DFDX_INLINE vector_t<T> gathered(T const* p, Longs places, std::size_t n) {
  constexpr std::size_t shift = sizeof(T) == 4 ? 2 : 3;
  vuint64m4_t const at = __riscv_vreinterpret_u64m4(__riscv_vsll(places, shift, n));
  if constexpr (std::is_same_v<T, float>) return __riscv_vluxei64_v_f32m2(p, at, n);
  else return __riscv_vluxei64_v_f64m4(p, at, n);
}
/// The same with places of 32 bits: of the first 2^30 elements.
DFDX_INLINE Floats gathered(float const* p, Ints places, std::size_t n) {
  return __riscv_vluxei32_v_f32m2(p, __riscv_vreinterpret_u32m2(__riscv_vsll(places, 2, n)), n);
}

/// load_places - integers of any width as 64-bit ones.
template <class I>
DFDX_INLINE Longs load_places(I const* p, index_t step, std::size_t n) {
  index_t const bytes = step * static_cast<index_t>(sizeof(I));
  if constexpr (sizeof(I) == 1) {
    auto const* at = reinterpret_cast<std::uint8_t const*>(p);
    vuint8mf2_t const x = step == 1 ? __riscv_vle8_v_u8mf2(at, n) : __riscv_vlse8_v_u8mf2(at, bytes, n);
    return __riscv_vreinterpret_i64m4(__riscv_vzext_vf8(x, n));
  } else if constexpr (sizeof(I) == 4) {
    return __riscv_vsext_vf2(load_part(p, step, n), n);
  } else {
    return load_part(p, step, n);
  }
}
/// store_places - as integers that are wide enough for them.
template <class I>
DFDX_INLINE void store_places(I* p, Longs places, std::size_t n) {
  if constexpr (sizeof(I) == 8) {
    store_part(p, 1, places, n);
  } else {
    Ints const x = __riscv_vncvt_x(places, n);
    if constexpr (sizeof(I) == 4) store_part(p, 1, x, n);
    else
      __riscv_vse8(reinterpret_cast<std::uint8_t*>(p),
                   __riscv_vncvt_x(__riscv_vncvt_x(__riscv_vreinterpret_u32m2(x), n), n), n);
  }
}
template <class I>
DFDX_INLINE void store_places(I* p, Ints places, std::size_t n) {
  if constexpr (sizeof(I) == 4) store_part(p, 1, places, n);
  else store_places(p, static_cast<Longs>(__riscv_vsext_vf2(places, n)), n);
}

/// gather_row - y[k] = x[places[k] * along + k * x_step] for k < n, elements of as many bytes as T has; the number of
/// elements done: all, or those of whole vectors before the first with a place that is not in 0 .. extent - 1.
template <class T, class I>
index_t gather_row(T const* x, index_t along, index_t x_step, I const* places, index_t places_step,
                   index_t extent, T* y, index_t y_step, index_t n) {
  index_t const w = lanes();
  for (index_t k = 0; k < n; k += w) {
    auto const count = static_cast<std::size_t>(n - k < w ? n - k : w);
    Longs const at = load_places(places + k * places_step, places_step, count);
    Mask const outside =
        __riscv_vmsgeu(__riscv_vreinterpret_u64m4(at), static_cast<std::uint64_t>(extent), count);
    if (__riscv_vfirst(outside, count) >= 0) [[unlikely]]
      return k;
    Longs from = __riscv_vmul(at, along, count);
    if (x_step != 0)
      from = __riscv_vmacc(from, x_step, __riscv_vreinterpret_i64m4(__riscv_vid_v_u64m4(count)), count);
    store_part(y + k * y_step, y_step, gathered(x + k * x_step, from, count), count);
  }
  return n;
}

/// gather_most - of `size` windows, whose elements' places are rows of a table, `room` apart: where the largest is, the
/// first of equal ones, of a NaN if there is one.
template <class E, class I, class Y>
void gather_most(E const* sample, I const* table, index_t room, index_t elements, Y* result, index_t size) {
  index_t const w = lanes();
  for (index_t p = 0; p < size; p += w) {
    auto const count = static_cast<std::size_t>(size - p < w ? size - p : w);
    I const* place = table + p;
    vector_t<I> best = load_part(place, 1, count);
    vector_t<E> top = gathered(sample, best, count);
    for (index_t e = 1; e < elements; ++e) {
      vector_t<I> const here = load_part(place += room, 1, count);
      vector_t<E> const v = gathered(sample, here, count);
      Mask const first_nan = __riscv_vmand(__riscv_vmfne(v, v, count), __riscv_vmfeq(top, top, count), count);
      Mask const more = __riscv_vmor(__riscv_vmfgt(v, top, count), first_nan, count);
      top = __riscv_vmerge(top, v, more, count);
      best = __riscv_vmerge(best, here, more, count);
    }
    store_places(result + p, best, count);
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
