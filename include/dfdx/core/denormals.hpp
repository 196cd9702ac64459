// SPDX-License-Identifier: BSL-1.0
// FlushDenormals - a guard under which numbers that are too small for a full significand count as zero.
#pragma once

#include <cstdint>

namespace dfdx {

namespace detail {

#if !defined(__CUDA_ARCH__) && defined(__SSE2__)
inline constexpr bool has_denormal_mode = true;
inline constexpr std::uint64_t flushing = 0x8040;  // of MXCSR: flush to zero, denormals are zero
inline std::uint64_t float_mode() { return __builtin_ia32_stmxcsr(); }
inline void set_float_mode(std::uint64_t mode) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(mode)); }
#elif !defined(__CUDA_ARCH__) && defined(__aarch64__)
inline constexpr bool has_denormal_mode = true;
inline constexpr std::uint64_t flushing = std::uint64_t{1} << 24;  // of FPCR: FZ
inline std::uint64_t float_mode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void set_float_mode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
inline constexpr bool has_denormal_mode = false;
inline constexpr std::uint64_t flushing = 0;
inline std::uint64_t float_mode() { return 0; }
inline void set_float_mode(std::uint64_t) {}
#endif

/// FloatMode - the thread computes in a mode, and when it is done in that of before.
class FloatMode {
 public:
  explicit FloatMode(std::uint64_t mode) : before_(float_mode()) {
    if (mode != before_) set_float_mode(mode);
  }
  ~FloatMode() {
    if (float_mode() != before_) set_float_mode(before_);
  }
  FloatMode(FloatMode const&) = delete;
  FloatMode& operator=(FloatMode const&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace detail

/// FlushDenormals - while it lives, the thread that made it, and those that share its kernels' work, take denormal
/// numbers (f32 below 1.2e-38, f64 below 2.3e-308) for zero and make none. Many processors take a hundred times as
/// long for arithmetic on them, which recurrent networks and filters meet whose states fade.
///
///   dfdx::FlushDenormals const guard;
///   y = step(model, x);
///
/// Dtypes     f32, f64; f16 and bf16 are computed in f32, of which their denormals are none
/// Errors     none; where the processor has no such mode (RISC-V; GPUs) nothing changes: `is_supported` tells
/// Source     Intel 64 and IA-32 Architectures Software Developer's Manual, 10.2.3.3; Arm Architecture Reference
///            Manual, FPCR.FZ
class FlushDenormals {
 public:
  static constexpr bool is_supported = detail::has_denormal_mode;

  explicit FlushDenormals(bool flush = true)
      : mode_(flush ? detail::float_mode() | detail::flushing : detail::float_mode() & ~detail::flushing) {}

 private:
  detail::FloatMode mode_;
};

}  // namespace dfdx
