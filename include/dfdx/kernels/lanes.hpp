// SPDX-License-Identifier: BSL-1.0
// Lane values of fused loops: how a width (a number at a time, or vectors of 4- or 8-byte elements) holds, loads,
// stores, converts and reduces each dtype. Everything else about a fused loop (kernels/loop.hpp) is the same for
// all widths.
#pragma once

#include <limits>

#include <dfdx/core/convert.hpp>
#include <dfdx/core/loop_code.hpp>
#include <dfdx/core/math.hpp>
#include <dfdx/kernels/half.hpp>
#include <dfdx/kernels/rvv/lanes.hpp>
#include <dfdx/kernels/simd/bytes.hpp>
#include <dfdx/kernels/simd/every.hpp>
#include <dfdx/kernels/simd/functions.hpp>
#include <dfdx/kernels/simd/integers.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>
#include <dfdx/kernels/simd/truths.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Combination - what a reduction does; named by loop_code.
template <index_t Do>
struct Combination {
  template <class X>
  static DFDX_INLINE constexpr X apply(X const& a, X const& b) {
    if constexpr (Do == loop_code::reduce_sum) return static_cast<X>(math::plus(a, b));
    else if constexpr (Do == loop_code::reduce_prod) return static_cast<X>(math::times(a, b));
    else if constexpr (Do == loop_code::reduce_max) return math::maximum(a, b);
    else return math::minimum(a, b);
  }
  template <class T>
  static DFDX_INLINE constexpr T identity() {
    using L = std::numeric_limits<T>;
    if constexpr (Do == loop_code::reduce_sum) return T(0);
    else if constexpr (Do == loop_code::reduce_prod) return T(1);
    else if constexpr (Do == loop_code::reduce_max)
      return L::has_infinity ? static_cast<T>(-L::infinity()) : L::lowest();
    else return L::has_infinity ? L::infinity() : L::max();
  }
};

/// Lanes - one width. This one is a number at a time, for every dtype and in constant expressions.
template <index_t Width>
struct Lanes {
  static constexpr int size = 1;
  template <class T>
  using type = T;

  template <class T>
  static DFDX_INLINE constexpr T splat(T x) {
    return x;
  }
  template <bool Tail, class M>
  static DFDX_INLINE constexpr compute_t<M> load(M const* p, index_t, int) {
    return static_cast<compute_t<M>>(*p);
  }
  template <bool Tail, class M>
  static DFDX_INLINE constexpr void store(M* p, index_t, compute_t<M> x, int) {
    *p = static_cast<M>(x);
  }
  /// Stores a value that all lanes have in common.
  template <class M>
  static DFDX_INLINE constexpr void store_row(M* p, compute_t<M> x) {
    *p = static_cast<M>(x);
  }
  /// A number on its way to an element of type To.
  template <class To, class From>
  static DFDX_INLINE constexpr compute_t<To> convert(From const& x) {
#if defined( \
    __AVX2__)  // which shifts each element by as many places as it needs: compilers make vectors of the loop
    if constexpr (math::makes_integers<To, From>) return math::integer_without_branch<To>(x);
#endif
    return math::computed_number<To>(x);
  }
  template <class T>
  static DFDX_INLINE constexpr T positions(index_t first, index_t step) {
    static_cast<void>(step);
    return static_cast<T>(first);
  }
  /// Makes lanes from `count` on the identity, so that they take no part in a reduction.
  template <class T>
  static DFDX_INLINE constexpr T only_first(T x, int, T) {
    return x;
  }
  template <index_t Do, class T>
  static DFDX_INLINE constexpr T horizontal(T x) {
    return x;
  }
};

#if defined(DFDX_RVV)

template <>
struct Lanes<loop_code::four_bytes> : rvv::Lanes<Combination> {};
template <>
struct Lanes<loop_code::eight_bytes> : rvv::Lanes<Combination> {};

#elif !defined(__CUDACC__)

namespace detail {

/// VectorLanes - vectors whose elements all have as many bytes as F: F itself, the integer I, and truth values.
template <class F, class I>
struct VectorLanes {
  using Floats = xsimd::batch<F>;
  using Integers = xsimd::batch<I>;
  using Truths = xsimd::batch_bool<F>;
  static constexpr int size = static_cast<int>(Floats::size);

  // Bytes are integers of the lane's size, whose values a byte can have.
  template <class T>
  using type =
      std::conditional_t<std::is_same_v<T, bool>, Truths,
                         std::conditional_t<std::is_same_v<T, I> || byte_number<T>, Integers, Floats>>;

  template <class T>
  static DFDX_INLINE type<T> splat(T x) {
    if constexpr (byte_number<T>) return Integers(static_cast<I>(x));
    else return type<T>(x);
  }

  // Elements that are not contiguous, or not of the lane's size, pass through a buffer.
  template <class M, class T>
  static DFDX_INLINE void collect(M const* p, index_t stride, int count, T* buffer) {
    for (int i = 0; i < count; ++i) buffer[i] = static_cast<T>(p[i * stride]);
    for (int i = count; i < size; ++i) buffer[i] = T(0);
  }

  template <bool Tail, class M>
  static DFDX_INLINE type<compute_t<M>> load(M const* p, index_t stride, int count) {
    using T = compute_t<M>;
    if (stride == 0) return splat(static_cast<T>(*p));
    if constexpr (std::is_same_v<M, bool>) {
      if constexpr (!Tail)
        if (stride == 1) return load_truths<F>(p);
      alignas(64) I buffer[size];
      collect(p, stride, Tail ? count : size, buffer);
      return xsimd::batch_bool_cast<F>(Integers::load_aligned(buffer) != Integers(I(0)));
    } else if constexpr (byte_number<M>) {
      if constexpr (!Tail)
        if (stride == 1) return load_bytes<I>(p);
      alignas(64) I buffer[size];
      collect(p, stride, Tail ? count : size, buffer);
      return Integers::load_aligned(buffer);
    } else {
      if constexpr (std::is_same_v<M, T>) {
        if (stride == 1) {
          if constexpr (Tail) return load_n(p, count);
          else return type<T>::load_unaligned(p);
        }
      }
      if constexpr (half_number<M> && std::is_same_v<F, float> && !Tail)
        if (stride == 1) return load_wide<float>(p);
      alignas(64) T buffer[size];
      collect(p, stride, Tail ? count : size, buffer);
      return type<T>::load_aligned(buffer);
    }
  }

  template <bool Tail, class M>
  static DFDX_INLINE void store(M* p, index_t stride, type<compute_t<M>> const& x, int count) {
    using T = compute_t<M>;
    if constexpr (std::is_same_v<M, bool>) {
      if constexpr (!Tail)
        if (stride == 1) return store_truths<F>(p, x);
      alignas(64) I buffer[size];
      select(xsimd::batch_bool_cast<I>(x), Integers(I(1)), Integers(I(0))).store_aligned(buffer);
      for (int i = 0; i < (Tail ? count : size); ++i) p[i * stride] = buffer[i] != 0;
    } else if constexpr (byte_number<M>) {
      if constexpr (!Tail)
        if (stride == 1) return store_bytes(p, x);
      alignas(64) I buffer[size];
      x.store_aligned(buffer);
      for (int i = 0; i < (Tail ? count : size); ++i) p[i * stride] = static_cast<M>(buffer[i]);
    } else {
      if constexpr (std::is_same_v<M, T>) {
        if (stride == 1) {
          if constexpr (Tail) store_n(p, x, count);
          else x.store_unaligned(p);
          return;
        }
      }
      if constexpr (half_number<M> && std::is_same_v<F, float> && !Tail)
        if (stride == 1) return store_narrow(p, x);
      alignas(64) T buffer[size];
      x.store_aligned(buffer);
      for (int i = 0; i < (Tail ? count : size); ++i) p[i * stride] = static_cast<M>(buffer[i]);
    }
  }

  /// loads_every, stores_every - whether all lanes are read, or written, by whole vectors where elements of type M lie
  /// `step` apart (kernels/simd/every.hpp).
  template <class M>
  static constexpr bool as_they_are =
      std::is_same_v<M, compute_t<M>> && !std::is_same_v<M, bool> && !byte_number<M>;
  template <class M>
  static constexpr bool loads_every(index_t step) {
    if constexpr (as_they_are<M>) return steps_by_vectors<type<M>>(step);
    else return false;
  }
  template <class M>
  static constexpr bool stores_every(index_t step) {
    if constexpr (as_they_are<M>) return has_masked_stores<type<M>> && steps_by_vectors<type<M>>(step);
    else return false;
  }
  template <index_t Step, class M>
  static DFDX_INLINE type<M> load_every(M const* p) {
    return detail::load_every<static_cast<int>(Step), type<M>>(p);
  }
  template <index_t Step, class M>
  static DFDX_INLINE void store_every(M* p, type<M> const& x) {
    detail::store_every<static_cast<int>(Step)>(p, x);
  }

  /// can_stream - whether elements of type M can be stored past the caches: lanes as they are.
  template <class M>
  static constexpr bool can_stream = has_streams && as_they_are<M>;
  template <class M>
  static DFDX_INLINE void stream(M* p, type<M> const& x) {
    if (reinterpret_cast<std::uintptr_t>(p) % sizeof x == 0) detail::stream(p, x);
    else x.store_unaligned(p);
  }

  /// ask_ahead - for lines that stores in order will come to.
  template <class M>
  static DFDX_INLINE void ask_ahead(M* p) {
    ask_to_write(p, stores_ahead);
  }

  template <class M>
  static DFDX_INLINE void store_row(M* p, compute_t<M> x) {
    *p = static_cast<M>(x);
  }

  template <class To, class From>
  static DFDX_INLINE type<To> convert(type<From> const& x) {
    if constexpr (byte_number<From> && !std::is_same_v<From, To>) return convert<To, I>(x);
    else if constexpr (byte_number<To> && !std::is_same_v<From, To>) {
      Integers const whole = convert<I, From>(x);
      constexpr int bits = 8 * sizeof(I) - 8;
      if constexpr (std::is_signed_v<To>) return (whole << bits) >> bits;
      else return whole & Integers(I(255));
    } else if constexpr (std::is_same_v<type<To>, type<From>>) return x;
    else if constexpr (std::is_same_v<To, bool>) {
      if constexpr (std::is_same_v<From, I>) return xsimd::batch_bool_cast<F>(x != Integers(I(0)));
      else return x != Floats(F(0));
    } else if constexpr (std::is_same_v<From, bool>) {
      if constexpr (std::is_same_v<To, I>)
        return select(xsimd::batch_bool_cast<I>(x), Integers(I(1)), Integers(I(0)));
      else return select(x, Floats(F(1)), Floats(F(0)));
    } else if constexpr (std::is_same_v<To, I>) {
      return integers_of(x);
    } else {
      return xsimd::batch_cast<F>(x);
    }
  }

  template <class T>
  static DFDX_INLINE type<T> positions(index_t first, index_t step) {
    alignas(64) T buffer[size];
    if constexpr (sizeof(T) == 4) {
      // Compilers put lanes together one by one, which took longer than the exponential of a softmax. f32 has all of
      // these integers.
      for (int i = 0; i < size; ++i) buffer[i] = static_cast<T>(i);
      if (step == 1 && (std::is_integral_v<T> || (first >= 0 && first < (index_t{1} << 24) - size)))
        return type<T>(static_cast<T>(first)) + type<T>::load_aligned(buffer);
    }
    for (int i = 0; i < size; ++i) buffer[i] = static_cast<T>(first + i * step);
    if constexpr (std::is_same_v<T, bool>) return load<false>(buffer, 1, size);
    else return type<T>::load_aligned(buffer);
  }

  template <class T>
  static DFDX_INLINE type<T> only_first(type<T> const& x, int count, T identity) {
    return select(mask_first_n<T>(count), x, splat(identity));
  }

  template <index_t Do, class T>
  static DFDX_INLINE T horizontal(type<T> const& x) {
    if constexpr (Do == loop_code::reduce_sum) return xsimd::reduce_add(x);
    else if constexpr (std::is_same_v<T, F> && Do != loop_code::reduce_prod) {
      // NaN are looked for once and not in every half.
      if (xsimd::any(x != x)) [[unlikely]]
        return std::numeric_limits<T>::quiet_NaN();
      if constexpr (Do == loop_code::reduce_max) return xsimd::reduce_max(x);
      else return xsimd::reduce_min(x);
    } else if constexpr (!std::is_same_v<T, bool> && !byte_number<T>)  // in halves
      return xsimd::reduce([](auto const& a, auto const& b) { return Combination<Do>::apply(a, b); }, x);
    alignas(64) T buffer[size];
    x.store_aligned(buffer);
    T r = buffer[0];
    for (int i = 1; i < size; ++i) r = Combination<Do>::apply(r, buffer[i]);
    return r;
  }
};

}  // namespace detail

template <>
struct Lanes<loop_code::four_bytes> : detail::VectorLanes<float, std::int32_t> {};
template <>
struct Lanes<loop_code::eight_bytes> : detail::VectorLanes<double, std::int64_t> {};

#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET
