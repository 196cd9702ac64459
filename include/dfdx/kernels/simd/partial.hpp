// SPDX-License-Identifier: BSL-1.0
//
// partial - loads and stores of part of a lane.
//
// They touch exactly the n elements asked for, never a byte more, so a kernel may end flush with a page that is not
// mapped. AVX-512 and AVX2 do it with masks (a masked-off element cannot fault), SSE2 with its moves of 4 and 8 bytes,
// the rest through a small buffer.
//
// Where the compiler knows n, moves are as small as can be, and without masks where two are enough: a load waits for a
// store before it that may touch the same bytes, and processors count what a mask leaves out. On Zen 5 a product of
// 4 x 4, its factor behind the result of the one before, took 9.6 ns with masks of whole registers, and takes 2.7; a
// chain of ops on three numbers 13.4 and 4.5.
#pragma once

#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

template <class T>
inline constexpr bool has_mask_moves =
#if defined(__AVX512F__)
    register_bytes<T> == 64 && (sizeof(T) == 4 || sizeof(T) == 8);
#elif defined(__AVX2__)
    register_bytes<T> == 32 && (sizeof(T) == 4 || sizeof(T) == 8);
#else
    false;
#endif

#if defined(__AVX512F__)
/// Bits 0..n-1 set; n in [0, 16]. The shift is done in 32 bits, so n == 16 is no special case.
inline unsigned first_bits(int n) { return (1u << n) - 1u; }
#elif defined(__AVX2__)
template <class T>
inline __m256i first_lanes(int n) {
  if constexpr (sizeof(T) == 4)
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  else return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

#if defined(__SSE2__)
/// Moves of n * sizeof(T) < 16 bytes. With n a constant these are one to three instructions.
template <class T>
inline __m128i load_part(T const* p, int n) {
  auto const* at = reinterpret_cast<char const*>(p);
  int const bytes = n * static_cast<int>(sizeof(T));
  int word = 0;
  if (bytes & 4) std::memcpy(&word, at + (bytes & 8), 4);
  __m128i const high = _mm_cvtsi32_si128(word);
  if (!(bytes & 8)) return high;
  return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(at)), high);
}

template <class T>
inline void store_part(T* p, __m128i v, int n) {
  auto* at = reinterpret_cast<char*>(p);
  int const bytes = n * static_cast<int>(sizeof(T));
  if (bytes & 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(at), v);
    v = _mm_unpackhi_epi64(v, v);
    at += 8;
  }
  int const word = _mm_cvtsi128_si32(v);
  if (bytes & 4) std::memcpy(at, &word, 4);
}

template <class T>
inline constexpr bool has_part_moves = register_bytes<T> == 16 && (sizeof(T) == 4 || sizeof(T) == 8);
#else
template <class T>
inline constexpr bool has_part_moves = false;
#endif

/// The bytes of n elements where the compiler knows n, else those of a register.
template <class T>
DFDX_INLINE int known_bytes(int n) {
#if defined(__GNUC__)
  if (__builtin_constant_p(n)) return n * static_cast<int>(sizeof(T));
#endif
  return static_cast<int>(register_bytes<T>);
}

/// True where the compiler knows that n is a whole lane: then the partial access is an ordinary one.
template <class T>
DFDX_INLINE bool known_whole(int n) {
#if defined(__GNUC__)
  return __builtin_constant_p(n) && n == lane_size<T>;
#else
  return n == lane_size<T>;
#endif
}

#if defined(__AVX2__)
/// Whether so many elements, fewer than half a register, are moved at once without a mask.
template <class T>
DFDX_INLINE bool is_one_move(int n) {
  auto const bytes = n * static_cast<int>(sizeof(T));
  return bytes == 4 || bytes == 8 || bytes == 16;
}

// The first 16 or 32 bytes of a register: n * sizeof(T) of them at most.
template <class T>
DFDX_INLINE __m128i load_16(T const* p, int n) {
  if (n * sizeof(T) < 16) return load_part(p, n);
  return _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
}
template <class T>
DFDX_INLINE void store_16(T* p, __m128i v, int n) {
  if (n * sizeof(T) < 16) return store_part(p, v, n);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
#if defined(__AVX512VL__)
template <class T>
DFDX_INLINE __m256i load_32(T const* p, int n) {
  constexpr int half = 16 / static_cast<int>(sizeof(T));
  if (n == 2 * half) return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
  if (is_one_move<T>(n - half))
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p, half)), load_16(p + half, n - half), 1);
  auto const k = static_cast<__mmask8>(first_bits(n));
  if constexpr (sizeof(T) == 4) return _mm256_maskz_loadu_epi32(k, p);
  else return _mm256_maskz_loadu_epi64(k, p);
}
template <class T>
DFDX_INLINE void store_32(T* p, __m256i v, int n) {
  constexpr int half = 16 / static_cast<int>(sizeof(T));
  if (n == 2 * half) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  if (is_one_move<T>(n - half)) {
    store_16(p, _mm256_castsi256_si128(v), half);
    return store_16(p + half, _mm256_extracti128_si256(v, 1), n - half);
  }
  auto const k = static_cast<__mmask8>(first_bits(n));
  if constexpr (sizeof(T) == 4) _mm256_mask_storeu_epi32(p, k, v);
  else _mm256_mask_storeu_epi64(p, k, v);
}
#endif
/// A lane of T of these bits, and its bits.
template <class T, class Bits>
DFDX_INLINE lane<T> of_bits(Bits bits) {
  return xsimd::bitwise_cast<T>(lane<std::int32_t>(bits));
}
template <class T>
DFDX_INLINE auto bits_of(lane<T> const& v) {
  return static_cast<typename lane<std::int32_t>::register_type>(xsimd::bitwise_cast<std::int32_t>(v));
}
#endif

}  // namespace detail

/// mask_first_n - lanes 0..n-1 true, the others false; 0 <= n <= lane_size<T>.
template <class T>
inline typename lane<T>::batch_bool_type mask_first_n(int n) {
  using Mask = typename lane<T>::batch_bool_type;
#if defined(__AVX512F__)
  if constexpr (detail::has_mask_moves<T>)
    return Mask(static_cast<typename Mask::register_type>(detail::first_bits(n)));
#elif defined(__AVX2__)
  if constexpr (detail::has_mask_moves<T>) {
    __m256i const bits = detail::first_lanes<T>(n);
    typename Mask::register_type native;
    std::memcpy(&native, &bits, sizeof(native));
    return Mask(native);
  }
#endif
  if constexpr (!detail::has_mask_moves<T>) {
    alignas(64) bool on[lane<T>::size];
    for (int i = 0; i < lane_size<T>; ++i) on[i] = i < n;
    return Mask::load_unaligned(on);
  }
}

/// load_n - lanes 0..n-1 from p[0..n-1], the others zero; reads nothing else. 0 <= n <= lane_size<T>.
template <class T>
DFDX_INLINE lane<T> load_n(T const* p, int n) {
  if (detail::known_whole<T>(n)) return lane<T>::load_unaligned(p);
#if defined(__AVX512F__)
  if constexpr (detail::has_mask_moves<T>) {
    auto const k = detail::first_bits(n);
#if defined(__AVX512VL__)
    int const bytes = detail::known_bytes<T>(n);
    if (bytes <= 16) return detail::of_bits<T>(_mm512_zextsi128_si512(detail::load_16(p, n)));
    if (bytes <= 32) return detail::of_bits<T>(_mm512_zextsi256_si512(detail::load_32(p, n)));
#endif
    if constexpr (sizeof(T) == 4)
      return detail::of_bits<T>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(k), p));
    else return detail::of_bits<T>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(k), p));
  }
#elif defined(__AVX2__)
  if constexpr (detail::has_mask_moves<T>) {
    if (detail::known_bytes<T>(n) <= 16)
      return detail::of_bits<T>(_mm256_zextsi128_si256(detail::load_16(p, n)));
    __m256i const k = detail::first_lanes<T>(n);
    if constexpr (sizeof(T) == 4)
      return detail::of_bits<T>(_mm256_maskload_epi32(reinterpret_cast<int const*>(p), k));
    else return detail::of_bits<T>(_mm256_maskload_epi64(reinterpret_cast<long long const*>(p), k));
  }
#endif
  if constexpr (!detail::has_mask_moves<T>) {
    if (n == lane_size<T>) return lane<T>::load_unaligned(p);
#if defined(__SSE2__)
    if constexpr (detail::has_part_moves<T>) {
      __m128i const v = detail::load_part(p, n);
      if constexpr (std::is_same_v<T, float>) return lane<T>(_mm_castsi128_ps(v));
      else if constexpr (std::is_same_v<T, double>) return lane<T>(_mm_castsi128_pd(v));
      else return lane<T>(v);
    }
#endif
    alignas(64) T part[lane<T>::size] = {};
    for (int i = 0; i < n; ++i) part[i] = p[i];
    return lane<T>::load_aligned(part);
  }
}

/// store_n - p[i] = lane i for i < n; writes nothing else. 0 <= n <= lane_size<T>.
template <class T>
DFDX_INLINE void store_n(T* p, lane<T> v, int n) {
  if (detail::known_whole<T>(n)) return v.store_unaligned(p);
#if defined(__AVX512F__)
  if constexpr (detail::has_mask_moves<T>) {
    auto const k = detail::first_bits(n);
    auto const bits = detail::bits_of<T>(v);
#if defined(__AVX512VL__)
    int const bytes = detail::known_bytes<T>(n);
    if (bytes <= 16) return detail::store_16(p, _mm512_castsi512_si128(bits), n);
    if (bytes <= 32) return detail::store_32(p, _mm512_castsi512_si256(bits), n);
    constexpr int half = lane_size<T> / 2;
    if (bytes < 64 && detail::is_one_move<T>(n - half)) {
      detail::store_32(p, _mm512_castsi512_si256(bits), half);
      return detail::store_16(p + half, _mm512_extracti32x4_epi32(bits, 2), n - half);
    }
#endif
    // Of the second half no part is stored by a mask: g++ 12 joins that with what takes the half from its register, and
    // vextracti64x4 faults on what the mask leaves out.
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(p, static_cast<__mmask16>(k), bits);
    else _mm512_mask_storeu_epi64(p, static_cast<__mmask8>(k), bits);
  }
#elif defined(__AVX2__)
  if constexpr (detail::has_mask_moves<T>) {
    auto const bits = detail::bits_of<T>(v);
    if (detail::known_bytes<T>(n) <= 16) return detail::store_16(p, _mm256_castsi256_si128(bits), n);
    __m256i const k = detail::first_lanes<T>(n);
    if constexpr (sizeof(T) == 4) _mm256_maskstore_epi32(reinterpret_cast<int*>(p), k, bits);
    else _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), k, bits);
  }
#endif
  if constexpr (!detail::has_mask_moves<T>) {
    if (n == lane_size<T>) return v.store_unaligned(p);
#if defined(__SSE2__)
    if constexpr (detail::has_part_moves<T>) {
      if constexpr (std::is_same_v<T, float>) return detail::store_part(p, _mm_castps_si128(v), n);
      else if constexpr (std::is_same_v<T, double>) return detail::store_part(p, _mm_castpd_si128(v), n);
      else return detail::store_part(p, v, n);
    }
#endif
    alignas(64) T part[lane<T>::size];
    v.store_aligned(part);
    for (int i = 0; i < n; ++i) p[i] = part[i];
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
