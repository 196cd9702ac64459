// SPDX-License-Identifier: BSL-1.0
//
// batch - the one gate to xsimd: the lane type of every simd kernel, and loads and stores of part of one.
//
// Partial accesses touch exactly the n elements asked for, never a byte more, so a kernel may end flush with
// a page that is not mapped. AVX-512 and AVX2 do it with masks (a masked-off element cannot fault), SSE2 with
// its moves of 4 and 8 bytes, the rest through a small buffer. The header is empty under nvcc, whose front
// end cannot read xsimd.
#pragma once

#include <dfdx/core/config.hpp>
#include <dfdx/core/integers.hpp>

#if !defined(__CUDACC__)

// What rounding takes from a sum is put back, integers are rounded to by adding and taking away, infinities and NaN are
// told apart: all of it is what these options let a compiler undo. Under g++ 12 exp is then wrong by a factor of two.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    (defined(__clang__) && __FINITE_MATH_ONLY__ + 0)
#error "dfdx: under -ffast-math and -Ofast exp and others are wrong: compile this file with -fno-fast-math"
#endif

#include <cstddef>  // before those of xsimd, one of which needs it and does not include it
#include <cstdint>
#include <cstring>
#include <type_traits>

// g++ warns about its own AVX-512 intrinsics, which start from registers that are undefined on purpose.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
// xsimd has no vectors for RISC-V unless their length is fixed when compiling, and for WebAssembly only where SIMD is
// switched on. Its portable ones, arrays of four floats, serve kernels that have no version in kernels/rvv.
#if (defined(__riscv) && !defined(__riscv_v_fixed_vlen)) || (defined(__wasm__) && !defined(__wasm_simd128__))
#define XSIMD_WITH_EMULATED 1
#define XSIMD_DEFAULT_ARCH emulated<128>
#include <xsimd/config/xsimd_config.hpp>
#undef XSIMD_NO_SUPPORTED_ARCHITECTURE
#endif
// It takes WebAssembly for Emscripten's alone; other compilers for it have the same vectors.
#if defined(__wasm_simd128__) && !defined(__EMSCRIPTEN__)
#include <xsimd/config/xsimd_config.hpp>
#undef XSIMD_WITH_WASM
#define XSIMD_WITH_WASM 1
#undef XSIMD_NO_SUPPORTED_ARCHITECTURE
#endif
// On 64-bit Arm xsimd 13 divides floats, and takes their roots, as on 32-bit Arm: by approximations, which are wrong in
// the last places and give NaN for the root of infinity; and z - x y it rounds twice. Its calls find what is declared
// before it.
#if defined(__aarch64__) && !defined(__ARM_FEATURE_SVE_BITS)
#define DFDX_XSIMD_NEON64 1
#include <xsimd/config/xsimd_config.hpp>
#include <xsimd/config/xsimd_inline.hpp>
#include <xsimd/types/xsimd_neon64_register.hpp>
#include <xsimd/types/xsimd_utils.hpp>
namespace xsimd::kernel {
template <class A>
batch<float, A> div(batch<float, A> const& x, batch<float, A> const& y, requires_arch<neon64>) noexcept;
template <class A>
batch<float, A> sqrt(batch<float, A> const& x, requires_arch<neon64>) noexcept;
template <class A>
batch<float, A> fnma(batch<float, A> const& x, batch<float, A> const& y, batch<float, A> const& z,
                     requires_arch<neon64>) noexcept;
template <class A>
batch<double, A> fnma(batch<double, A> const& x, batch<double, A> const& y, batch<double, A> const& z,
                      requires_arch<neon64>) noexcept;
}  // namespace xsimd::kernel
#endif
#include <xsimd/xsimd.hpp>
#if defined(DFDX_XSIMD_NEON64)
namespace xsimd::kernel {
template <class A>
batch<float, A> div(batch<float, A> const& x, batch<float, A> const& y, requires_arch<neon64>) noexcept {
  return vdivq_f32(x, y);
}
template <class A>
batch<float, A> sqrt(batch<float, A> const& x, requires_arch<neon64>) noexcept {
  return vsqrtq_f32(x);
}
template <class A>
batch<float, A> fnma(batch<float, A> const& x, batch<float, A> const& y, batch<float, A> const& z,
                     requires_arch<neon64>) noexcept {
  return vfmsq_f32(z, x, y);
}
template <class A>
batch<double, A> fnma(batch<double, A> const& x, batch<double, A> const& y, batch<double, A> const& z,
                      requires_arch<neon64>) noexcept {
  return vfmsq_f64(z, x, y);
}
}  // namespace xsimd::kernel
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Where a target has no product of 64 bits, SSE2 none of 32, xsimd multiplies one by one.
template <class T, class A>
  requires dfdx::math::wraps<T>
struct dfdx::math::unsigned_lanes<xsimd::batch<T, A>> {
  using U = std::make_unsigned_t<T>;
  static DFDX_INLINE auto of(xsimd::batch<T, A> const& x) { return xsimd::bitwise_cast<U>(x); }
  static DFDX_INLINE auto back(xsimd::batch<U, A> const& x) { return xsimd::bitwise_cast<T>(x); }
};

namespace dfdx::kernels::inline DFDX_TARGET {

/// lane - the widest vector of T on the target the translation unit is compiled for.
template <class T>
using lane = xsimd::batch<T>;

/// lane_size - how many T a lane holds.
template <class T>
inline constexpr int lane_size = static_cast<int>(lane<T>::size);

/// held - the vector, in a register. Where registers are few g++ otherwise reads a vector that is used several times
/// from memory each time, and reading is what then takes the time.
template <class V>
DFDX_INLINE V held(V v) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__SSE2__)
  asm("" : "+v"(v.data));
#endif
  return v;
}

namespace detail {

/// Bytes of a register, and of an element; the two numbers that choose a masked instruction.
template <class T>
inline constexpr std::size_t register_bytes = sizeof(typename lane<T>::register_type);

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

/// stream - stores a register where one begins, past the caches: a line that is all written is not read before. Another
/// thread sees it after end_streams.
#if defined(__SSE2__)
inline constexpr bool has_streams = true;
template <class T, class A>
DFDX_INLINE void stream(T* p, xsimd::batch<T, A> const& x) {
  auto const bits = xsimd::bitwise_cast<std::int32_t>(x);
#if defined(__AVX512F__)
  if constexpr (sizeof bits == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), bits);
#endif
#if defined(__AVX__)
  if constexpr (sizeof bits == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits);
#endif
  if constexpr (sizeof bits == 16) _mm_stream_si128(reinterpret_cast<__m128i*>(p), bits);
}
inline void end_streams() { _mm_sfence(); }
#else
inline constexpr bool has_streams = false;
template <class T, class A>
DFDX_INLINE void stream(T* p, xsimd::batch<T, A> const& x) {
  x.store_aligned(p);
}
inline void end_streams() {}
#endif

/// True where the compiler knows that n is a whole lane: then the partial access is an ordinary one.
template <class T>
DFDX_INLINE bool known_whole(int n) {
#if defined(__GNUC__)
  return __builtin_constant_p(n) && n == lane_size<T>;
#else
  return n == lane_size<T>;
#endif
}

}  // namespace detail

/// load_as - V at p, where V is a lane of T or T itself: lets one template serve lanes and scalar tails.
template <class V, class T>
inline V load_as(T const* p) {
  if constexpr (std::is_same_v<V, T>) return *p;
  else return V::load_unaligned(p);
}

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
    __m512i v;
    if constexpr (sizeof(T) == 4) v = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(k), p);
    else v = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(k), p);
    if constexpr (std::is_same_v<T, float>) return lane<T>(_mm512_castsi512_ps(v));
    else if constexpr (std::is_same_v<T, double>) return lane<T>(_mm512_castsi512_pd(v));
    else return lane<T>(v);
  }
#elif defined(__AVX2__)
  if constexpr (detail::has_mask_moves<T>) {
    __m256i const k = detail::first_lanes<T>(n);
    if constexpr (std::is_same_v<T, float>) return lane<T>(_mm256_maskload_ps(p, k));
    else if constexpr (std::is_same_v<T, double>) return lane<T>(_mm256_maskload_pd(p, k));
    else if constexpr (sizeof(T) == 4)
      return lane<T>(_mm256_maskload_epi32(reinterpret_cast<int const*>(p), k));
    else return lane<T>(_mm256_maskload_epi64(reinterpret_cast<long long const*>(p), k));
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

/// leave_vectors - before functions of the platform, which were compiled without AVX: what is left in the upper parts
/// of vectors makes them take several times as long, and g++ -Og does not see to it.
DFDX_INLINE void leave_vectors() {
#if defined(__AVX__)
  _mm256_zeroupper();
#endif
}

/// store_n - p[i] = lane i for i < n; writes nothing else. 0 <= n <= lane_size<T>.
template <class T>
DFDX_INLINE void store_n(T* p, lane<T> v, int n) {
  if (detail::known_whole<T>(n)) return v.store_unaligned(p);
#if defined(__AVX512F__)
  if constexpr (detail::has_mask_moves<T>) {
    auto const k = detail::first_bits(n);
    __m512i bits;
    if constexpr (std::is_same_v<T, float>) bits = _mm512_castps_si512(v);
    else if constexpr (std::is_same_v<T, double>) bits = _mm512_castpd_si512(v);
    else bits = v;
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(p, static_cast<__mmask16>(k), bits);
    else _mm512_mask_storeu_epi64(p, static_cast<__mmask8>(k), bits);
  }
#elif defined(__AVX2__)
  if constexpr (detail::has_mask_moves<T>) {
    __m256i const k = detail::first_lanes<T>(n);
    if constexpr (std::is_same_v<T, float>) _mm256_maskstore_ps(p, k, v);
    else if constexpr (std::is_same_v<T, double>) _mm256_maskstore_pd(p, k, v);
    else if constexpr (sizeof(T) == 4) _mm256_maskstore_epi32(reinterpret_cast<int*>(p), k, v);
    else _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), k, v);
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
