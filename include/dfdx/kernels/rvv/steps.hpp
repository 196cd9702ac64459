// SPDX-License-Identifier: BSL-1.0
// One step of a formula on vectors. Operands are vectors or numbers; instructions that take a number from a register of
// numbers are used wherever there are any.
#pragma once

#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

namespace detail {

template <Kind K>
struct number_of_kind {
  using type = bool;
};
template <>
struct number_of_kind<Kind::f32> {
  using type = float;
};
template <>
struct number_of_kind<Kind::f64> {
  using type = double;
};
template <>
struct number_of_kind<Kind::i32> {
  using type = std::int32_t;
};
template <>
struct number_of_kind<Kind::i64> {
  using type = std::int64_t;
};

}  // namespace detail

template <Kind K>
using number_t = typename detail::number_of_kind<K>::type;

/// as_kind - the value in a variable: integers are kept in variables of floats.
template <Kind K, class V>
DFDX_INLINE auto as_kind(V const& x) {
  if constexpr (std::is_same_v<V, vector_t<number_t<K>>>) return x;
  else if constexpr (K == Kind::i32) return __riscv_vreinterpret_i32m2(x);
  else return __riscv_vreinterpret_i64m4(x);
}
template <class To, class V>
DFDX_INLINE void keep(To& to, V const& x) {
  if constexpr (std::is_same_v<To, V>) to = x;
  else if constexpr (std::is_same_v<To, Floats>) to = __riscv_vreinterpret_f32m2(x);
  else to = __riscv_vreinterpret_f64m4(x);
}

template <class V>
inline constexpr bool is_a_number = std::is_arithmetic_v<V>;

/// vector_operand - a vector, of a number that many times.
template <class V>
DFDX_INLINE auto vector_operand(V const& x) {
  if constexpr (is_a_number<V>) return splat(x);
  else return x;
}

namespace detail {

/// call_each - numbers of vectors through memory, for a C++ function to be called with each.
template <class T, class V>
__attribute__((noinline)) V call_each(T (*f)(T), V x) {
  auto const n = static_cast<std::size_t>(lanes());
  auto* const a = static_cast<T*>(__builtin_alloca(n * sizeof(T)));
  store_part(a, 1, x, n);
  for (std::size_t i = 0; i < n; ++i) a[i] = f(a[i]);
  return load_part(a, 1, n);
}
template <class T, class V>
__attribute__((noinline)) V call_each(T (*f)(T, T), V x, V y) {
  auto const n = static_cast<std::size_t>(lanes());
  auto* const a = static_cast<T*>(__builtin_alloca(2 * n * sizeof(T)));
  store_part(a, 1, x, n);
  store_part(a + n, 1, y, n);
  for (std::size_t i = 0; i < n; ++i) a[i] = f(a[i], a[n + i]);
  return load_part(a, 1, n);
}

template <class T, bool Two>
constexpr auto function(Functions const& f) {
  if constexpr (std::is_same_v<T, std::int32_t>) return f.two_i32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return f.two_i64;
  else if constexpr (std::is_same_v<T, float> && Two) return f.two_f32;
  else if constexpr (std::is_same_v<T, float>) return f.f32;
  else if constexpr (Two) return f.two_f64;
  else return f.f64;
}

/// nearest - integers next to x, to even. Numbers from 2^23 (2^52) on have no fraction; NaN and infinity stay.
template <class V>
DFDX_INLINE V nearest(V const& x) {
  constexpr bool single = std::is_same_v<V, Floats>;
  Mask small;
  if constexpr (single) small = __riscv_vmflt(__riscv_vfabs(x, every), 0x1p23f, every);
  else small = __riscv_vmflt(__riscv_vfabs(x, every), 0x1p52, every);
  auto const n = __riscv_vfcvt_x(small, x, every);
  return __riscv_vfsgnj(__riscv_vfcvt_f_mu(small, x, n, every), x, every);
}
/// truncated - from the nearest integer. There are instructions that truncate by themselves, but qemu 7.2, under which
/// all this is tested, ends at them with a failed assertion.
template <class V>
DFDX_INLINE V truncated(V const& x) {
  V const n = nearest(x);
  Mask const beyond = __riscv_vmfgt(__riscv_vfabs(n, every), __riscv_vfabs(x, every), every);
  V one;
  if constexpr (std::is_same_v<V, Floats>) one = splat(1.0f);
  else one = splat(1.0);
  V const less = __riscv_vfsub(n, __riscv_vfsgnj(one, x, every), every);
  return __riscv_vfsgnj(__riscv_vmerge(n, less, beyond, every), x, every);
}

/// convert_lanes - numbers of another type, as the instructions have them: integers for numbers that they hold.
template <class To, class From>
DFDX_INLINE vector_t<To> convert_lanes(vector_t<From> const& x) {
  if constexpr (byte_number<To> && !std::is_same_v<To, From>) {
    Ints const whole = convert_lanes<std::int32_t, From>(x);
    if constexpr (std::is_signed_v<To>) return __riscv_vsra(__riscv_vsll(whole, 24, every), 24, every);
    else return __riscv_vand(whole, 255, every);
  } else if constexpr (byte_number<From> && !std::is_same_v<To, From>) {
    return convert_lanes<To, std::int32_t>(x);
  } else if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_floating_point_v<From>) return __riscv_vmfne(x, From(0), every);
    else return __riscv_vmsne(x, From(0), every);
  } else if constexpr (std::is_same_v<From, bool>) {
    if constexpr (std::is_floating_point_v<To>) return __riscv_vfmerge(splat(To(0)), To(1), x, every);
    else return __riscv_vmerge(splat(To(0)), To(1), x, every);
  } else if constexpr (std::is_same_v<To, float>) {
    if constexpr (std::is_same_v<From, std::int32_t>) return __riscv_vfcvt_f(x, every);
    else return __riscv_vfncvt_f(x, every);
  } else if constexpr (std::is_same_v<To, double>) {
    if constexpr (std::is_same_v<From, std::int64_t>) return __riscv_vfcvt_f(x, every);
    else return __riscv_vfwcvt_f(x, every);
  } else if constexpr (std::is_same_v<To, std::int32_t>) {
    if constexpr (std::is_same_v<From, float>) return __riscv_vfcvt_x(truncated(x), every);
    else if constexpr (std::is_same_v<From, double>) return __riscv_vfncvt_x(truncated(x), every);
    else return __riscv_vncvt_x(x, every);
  } else {
    if constexpr (std::is_same_v<From, double>) return __riscv_vfcvt_x(truncated(x), every);
    else if constexpr (std::is_same_v<From, float>) return __riscv_vfwcvt_x(truncated(x), every);
    else return __riscv_vsext_vf2(x, every);
  }
}

template <class V>
inline constexpr bool is_floating_vector = std::is_same_v<V, Floats> || std::is_same_v<V, Doubles>;

template <Do What, class A, class B>
DFDX_INLINE auto arithmetic(A const& a, B const& b) {
  constexpr bool floats = is_floating_vector<A> || is_floating_vector<B>;
  if constexpr (is_a_number<A> && (What == Do::add || What == Do::mul)) {
    return arithmetic<What>(b, a);
  } else if constexpr (is_a_number<A> && What == Do::sub) {
    if constexpr (floats) return __riscv_vfrsub(b, a, every);
    else return __riscv_vrsub(b, a, every);
  } else if constexpr (is_a_number<A>) {
    if constexpr (floats) return __riscv_vfrdiv(b, a, every);
    else return __riscv_vdiv(splat(a), b, every);
  } else if constexpr (floats) {
    if constexpr (What == Do::add) return __riscv_vfadd(a, b, every);
    else if constexpr (What == Do::sub) return __riscv_vfsub(a, b, every);
    else if constexpr (What == Do::mul) return __riscv_vfmul(a, b, every);
    else return __riscv_vfdiv(a, b, every);
  } else {
    if constexpr (What == Do::add) return __riscv_vadd(a, b, every);
    else if constexpr (What == Do::sub) return __riscv_vsub(a, b, every);
    else if constexpr (What == Do::mul) return __riscv_vmul(a, b, every);
    else return __riscv_vdiv(a, b, every);
  }
}

template <Do What, class A, class B>
DFDX_INLINE Mask compared(A const& a, B const& b) {
  constexpr bool floats = is_floating_vector<A> || is_floating_vector<B>;
  if constexpr (std::is_same_v<A, Mask> || std::is_same_v<B, Mask>) {
    Mask const x = vector_operand(a), y = vector_operand(b);
    if constexpr (What == Do::equal) return __riscv_vmxnor(x, y, every);
    else if constexpr (What == Do::differs) return __riscv_vmxor(x, y, every);
    else if constexpr (What == Do::less) return __riscv_vmandn(y, x, every);
    else return __riscv_vmorn(y, x, every);
  } else if constexpr (is_a_number<A>) {
    if constexpr (What == Do::equal || What == Do::differs) return compared<What>(b, a);
    else if constexpr (floats && What == Do::less) return __riscv_vmfgt(b, a, every);
    else if constexpr (floats) return __riscv_vmfge(b, a, every);
    else if constexpr (What == Do::less) return __riscv_vmsgt(b, a, every);
    else return __riscv_vmsge(b, a, every);
  } else if constexpr (floats) {
    if constexpr (What == Do::equal) return __riscv_vmfeq(a, b, every);
    else if constexpr (What == Do::differs) return __riscv_vmfne(a, b, every);
    else if constexpr (What == Do::less) return __riscv_vmflt(a, b, every);
    else return __riscv_vmfle(a, b, every);
  } else {
    if constexpr (What == Do::equal) return __riscv_vmseq(a, b, every);
    else if constexpr (What == Do::differs) return __riscv_vmsne(a, b, every);
    else if constexpr (What == Do::less) return __riscv_vmslt(a, b, every);
    else return __riscv_vmsle(a, b, every);
  }
}

template <Do What, class A, class B, class C>
DFDX_INLINE auto multiplied(A const& a, B const& b, C const& c) {
  if constexpr (is_a_number<B> && !is_a_number<A>) return multiplied<What>(b, a, c);
  // A number is added by an instruction, while a vector of it would take a register: a polynomial has more of them than
  // there are, and to fetch one costs more than the multiply-add saves.
  else if constexpr (is_a_number<C> && What == Do::fma)
    return arithmetic<Do::add>(arithmetic<Do::mul>(a, b), c);
  else {
    auto const sum = vector_operand(c);
    auto const factor = vector_operand(b);
    if constexpr (What == Do::fma) return __riscv_vfmacc(sum, a, factor, every);
    else if constexpr (What == Do::fms) return __riscv_vfmsac(sum, a, factor, every);
    else return __riscv_vfnmsac(sum, a, factor, every);
  }
}

}  // namespace detail

/// perform - one step; S::value says which.
template <class S, class A>
DFDX_INLINE auto perform(A const& a) {
  constexpr Step s = S::value;
  using T = number_t<s.kind>;
  constexpr bool floats = s.from == Kind::f32 || s.from == Kind::f64;
  if constexpr (s.what == Do::neg) {
    if constexpr (floats) return __riscv_vfneg(a, every);
    else return __riscv_vneg(a, every);
  } else if constexpr (s.what == Do::abs) {
    if constexpr (floats) return __riscv_vfabs(a, every);
    else return __riscv_vmax(a, __riscv_vneg(a, every), every);
  } else if constexpr (s.what == Do::sqrt) {
    return __riscv_vfsqrt(vector_operand(a), every);
  } else if constexpr (s.what == Do::nearest) {
    return detail::nearest(vector_operand(a));
  } else if constexpr (s.what == Do::truncate) {
    return detail::truncated(vector_operand(a));
  } else if constexpr (s.what == Do::opposite) {
    return __riscv_vmnot(a, every);
  } else if constexpr (s.what == Do::shift_left) {
    return __riscv_vsll(a, static_cast<std::size_t>(s.bits), every);
  } else if constexpr (s.what == Do::shift_right) {
    return __riscv_vsra(a, static_cast<std::size_t>(s.bits), every);
  } else if constexpr (s.what == Do::reinterpret) {
    if constexpr (s.kind == Kind::i32) return __riscv_vreinterpret_i32m2(vector_operand(a));
    else if constexpr (s.kind == Kind::i64) return __riscv_vreinterpret_i64m4(vector_operand(a));
    else if constexpr (s.kind == Kind::f32) return __riscv_vreinterpret_f32m2(vector_operand(a));
    else return __riscv_vreinterpret_f64m4(vector_operand(a));
  } else if constexpr (s.what == Do::convert) {
    return detail::convert_lanes<T, number_t<s.from>>(vector_operand(a));
  } else {
    static_assert(s.what == Do::call);
    constexpr auto f = detail::function<T, false>(s.functions);
    return detail::call_each(f, vector_operand(a));
  }
}

template <class S, class A, class B>
DFDX_INLINE auto perform(A const& a, B const& b) {
  constexpr Step s = S::value;
  if constexpr (s.what == Do::add || s.what == Do::sub || s.what == Do::mul || s.what == Do::div) {
    return detail::arithmetic<s.what>(a, b);
  } else if constexpr (s.what == Do::equal || s.what == Do::differs || s.what == Do::less ||
                       s.what == Do::at_most) {
    return detail::compared<s.what>(a, b);
  } else if constexpr (s.what == Do::copysign) {
    return __riscv_vfsgnj(vector_operand(a), b, every);
  } else if constexpr (s.what == Do::both) {
    return __riscv_vmand(vector_operand(a), vector_operand(b), every);
  } else if constexpr (s.what == Do::either) {
    return __riscv_vmor(vector_operand(a), vector_operand(b), every);
  } else if constexpr (s.what == Do::bit_and) {
    if constexpr (is_a_number<A>) return __riscv_vand(b, a, every);
    else return __riscv_vand(a, b, every);
  } else {
    static_assert(s.what == Do::call);
    using T = number_t<s.kind>;
    constexpr auto f = detail::function<T, true>(s.functions);
    return detail::call_each(f, vector_operand(a), vector_operand(b));
  }
}

template <class S, class A, class B, class C>
DFDX_INLINE auto perform(A const& a, B const& b, C const& c) {
  constexpr Step s = S::value;
  using T = number_t<s.kind>;
  if constexpr (s.what == Do::select) {
    auto const otherwise = vector_operand(c);
    if constexpr (is_a_number<B> && std::is_floating_point_v<B>)
      return __riscv_vfmerge(otherwise, b, a, every);
    else return __riscv_vmerge(otherwise, b, a, every);
  } else if constexpr (s.what == Do::call_where) {
    vector_t<T> r = vector_operand(b);
    if (__riscv_vfirst(c, every) >= 0) [[unlikely]] {
      constexpr auto f = detail::function<T, false>(s.functions);
      r = __riscv_vmerge(r, detail::call_each(f, a), c, every);
    }
    return r;
  } else {
    return detail::multiplied<s.what>(a, b, c);
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
