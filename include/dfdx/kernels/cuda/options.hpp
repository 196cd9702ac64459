// SPDX-License-Identifier: BSL-1.0
// What users may say of how devices compute.
#pragma once

#include <cstdint>
#include <limits>

namespace dfdx {

/// CudaOptions - how products and convolutions are computed on devices.
struct CudaOptions {
  /// Products and convolutions of f32 in 19 bits on tensor cores, ten times as fast and a thousand times less exact.
  /// Off, as in PyTorch for products.
  bool tf32 = false;
  /// Products of that many multiplications or more by cuBLASLt, where it takes them; others by a kernel of dfdx, which
  /// has less to start.
  std::int64_t cublas_from = std::int64_t{1} << 20;
  /// Convolutions of that many multiplications or more by cuDNN, where it is installed; others by a kernel of dfdx.
  std::int64_t cudnn_from = std::int64_t{1} << 24;
  /// Products of f16 and bf16 of that many multiplications or more by a kernel of dfdx for the warpgroups of Hopper
  /// GPUs, in programs compiled for sm_90a and where operands are aligned to 16 bytes. Never unless asked: on an H100
  /// it has 0.90 to 0.97 of cuBLASLt's speed.
  std::int64_t warpgroup_products_from = std::numeric_limits<std::int64_t>::max();
  /// The same of attention, where it is twice as fast as the kernels for every generation.
  std::int64_t warpgroup_attention_from = std::int64_t{1} << 20;
  /// Programs that are called again with the same memory become CUDA graphs. Off, a profiler sees each step's range.
  bool capture = true;
  /// Kernels of a decoder's single tokens begin while those before them end, in programs compiled for sm_90a.
  /// (Off unless asked: it has not been measured yet.)
  bool early = false;

  bool operator==(CudaOptions const&) const = default;
};
/// cuda_options - of this process.
inline CudaOptions cuda_options;

}  // namespace dfdx
