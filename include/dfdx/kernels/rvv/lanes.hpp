// SPDX-License-Identifier: BSL-1.0
// Lane values of fused loops on vectors of any length: how they are loaded, stored, converted and reduced. As
// VectorLanes in kernels/lanes.hpp, but for the number of lanes, which only the running program knows.
#pragma once

#include <dfdx/core/convert.hpp>
#include <dfdx/core/loop_code.hpp>
#include <dfdx/kernels/rvv/evaluate.hpp>
#include <dfdx/kernels/rvv/functions.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

template <template <index_t> class Combination, index_t Do>
struct Joined {
  static constexpr auto eval(auto const& x, auto const& y) { return Combination<Do>::apply(x, y); }
};

/// convert - numbers of another type, as math::convert_number has them.
template <class To, class From>
DFDX_INLINE vector_t<To> convert(vector_t<From> const& x) {
  if constexpr (math::makes_integers<To, From>) {
    Mask const holds = __riscv_vmflt(__riscv_vfabs(x, every), math::wide_end<To, From>, every);
    if (__riscv_vfirst(__riscv_vmnot(holds, every), every) >= 0) [[unlikely]] {
      // Where integers do not hold all of them, those that they become, which are real numbers too.
      constexpr auto held = +[](From v) { return static_cast<From>(math::integer_of<math::wide_t<To>>(v)); };
      return detail::convert_lanes<To, From>(detail::call_each(held, x));
    }
  }
  return detail::convert_lanes<To, From>(x);
}

/// Lanes - Combination says what reductions do.
template <template <index_t> class Combination>
struct Lanes {
  static constexpr bool is_sizeless = true;
  static DFDX_INLINE index_t count() { return lanes(); }

  template <class T>
  using type = vector_t<T>;

  template <class T>
  static DFDX_INLINE type<T> splat(T x) {
    return rvv::splat(x);
  }

  template <bool Tail, class M>
  static DFDX_INLINE type<compute_t<M>> load(M const* p, index_t stride, int count) {
    using T = compute_t<M>;
    if (stride == 0) return rvv::splat(static_cast<T>(*p));
    std::size_t const n = Tail ? static_cast<std::size_t>(count) : every;
    if constexpr (std::is_same_v<M, T>) return load_part(p, stride, n);
    else return load_half(p, stride, n);
  }
  template <bool Tail, class M>
  static DFDX_INLINE void store(M* p, index_t stride, type<compute_t<M>> x, int count) {
    std::size_t const n = Tail ? static_cast<std::size_t>(count) : every;
    if constexpr (std::is_same_v<M, compute_t<M>>) store_part(p, stride, x, n);
    else store_half(p, stride, x, n);
  }
  template <class M>
  static DFDX_INLINE void store_row(M* p, compute_t<M> x) {
    *p = static_cast<M>(x);
  }

  template <class To, class From>
  static DFDX_INLINE type<compute_t<To>> convert(type<From> const& x) {
    return rvv::convert<compute_t<To>, From>(x);  // (f64 and 16 bits are in no loop of lanes together)
  }
  template <class T>
  static DFDX_INLINE type<T> positions(index_t first, index_t step) {
    Longs const place = __riscv_vreinterpret_i64m4(__riscv_vid_v_u64m4(every));
    return convert<T, std::int64_t>(__riscv_vadd(__riscv_vmul(place, step, every), first, every));
  }
  template <class T>
  static DFDX_INLINE type<T> only_first(type<T> const& x, int count, T identity) {
    return first_of<T>(x, rvv::splat(identity), static_cast<std::size_t>(count));
  }

  /// combine - of two lane values.
  template <index_t Do, class T>
  static DFDX_INLINE type<T> combine(type<T> const& x, type<T> const& y) {
    return evaluate<Joined<Combination, Do>, T, T>(x, y);
  }
  /// apply - an op on lane values of its operands' types; its result as T.
  template <class Op, class T, class... Of>
  static DFDX_INLINE type<T> apply(type<Of> const&... x) {
    auto const y = evaluate<Op, number<Of>...>(x...);
    if constexpr (std::is_same_v<std::remove_const_t<decltype(y)>, type<T>>) return y;
    else return convert<T, result_t<Op, number<Of>...>>(y);
  }

  template <index_t Do, class T>
  static DFDX_INLINE T horizontal(type<T> const& x) {
    if constexpr (Do == loop_code::reduce_sum && std::is_floating_point_v<T>) {
      return sum_of<T>(x);
    } else if constexpr ((Do == loop_code::reduce_max || Do == loop_code::reduce_min) &&
                         std::is_same_v<T, float>) {
      // The instruction leaves out NaN.
      long const nan = __riscv_vfirst(__riscv_vmfne(x, x, every), every);
      if (nan >= 0) [[unlikely]]
        return std::numeric_limits<float>::quiet_NaN();
      vfloat32m1_t const first = __riscv_vlmul_trunc_f32m1(x);
      if constexpr (Do == loop_code::reduce_max) return __riscv_vfmv_f(__riscv_vfredmax(x, first, every));
      else return __riscv_vfmv_f(__riscv_vfredmin(x, first, every));
    } else {
      // Halves on one another.
      type<T> all = x;
      for (auto half = static_cast<std::size_t>(lanes()) / 2; half > 0; half /= 2)
        all = combine<Do, T>(all, __riscv_vslidedown(all, half, every));
      return first_number<T>(all);
    }
  }

 private:
  // What lanes of T hold.
  template <class T>
  using number = std::conditional_t<byte_number<T>, std::int32_t, T>;
  template <class T>
  static DFDX_INLINE T first_number(type<T> const& x) {
    if constexpr (std::is_floating_point_v<T>) return __riscv_vfmv_f(x);
    else return static_cast<T>(__riscv_vmv_x(x));
  }
};

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
