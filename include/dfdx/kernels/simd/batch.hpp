// SPDX-License-Identifier: BSL-1.0
//
// batch - the one gate to xsimd: the lane type of every simd kernel. Empty under nvcc, whose front end cannot read it.
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

/// Bytes of a register.
template <class T>
inline constexpr std::size_t register_bytes = sizeof(typename lane<T>::register_type);

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

}  // namespace detail

/// load_as - V at p, where V is a lane of T or T itself: lets one template serve lanes and scalar tails.
template <class V, class T>
inline V load_as(T const* p) {
  if constexpr (std::is_same_v<V, T>) return *p;
  else return V::load_unaligned(p);
}

/// leave_vectors - before functions of the platform, which were compiled without AVX: what is left in the upper parts
/// of vectors makes them take several times as long, and g++ -Og does not see to it.
DFDX_INLINE void leave_vectors() {
#if defined(__AVX__)
  _mm256_zeroupper();
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
