// SPDX-License-Identifier: BSL-1.0
// What the bulk copy engine of Hopper GPUs is told of a matrix before it copies parts of it. The driver makes it; its
// function is found when it is first needed, so that programs need not link the driver's library.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// BulkMatrices - matrices of numbers of 16 bits: `inner` beside each other, `outer` lines of them `outer_step` numbers
/// apart, and of the matrices `counts` along three axes, `steps` apart.
struct BulkMatrices {
  void const* first = nullptr;
  std::int64_t inner = 0, outer = 0, outer_step = 0;
  std::array<std::int64_t, 3> counts{1, 1, 1}, steps{};
};

/// bulk_line - how many numbers of a line are copied at once: 128 bytes, whose pieces of 16 are then swapped within
/// each eight lines so that columns lie in different banks (CU_TENSOR_MAP_SWIZZLE_128B).
inline constexpr int bulk_line = 64;

/// tensor_map - for copies of `lines` lines of 64 numbers each, with zeros where the matrices end; false if the engine
/// cannot copy from there: everything has to be aligned to 16 bytes.
inline bool tensor_map(CUtensorMap& map, BulkMatrices const& x, int lines) {
  static auto const encode = [] {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found) !=
        cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      f = nullptr;
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(f);
  }();
  constexpr std::int64_t aligned = 8, most = std::int64_t{1} << 31;
  constexpr std::size_t axes = 5;
  std::int64_t const counts[axes] = {x.inner, x.outer, x.counts[0], x.counts[1], x.counts[2]},
                     steps[axes] = {1, x.outer_step, x.steps[0], x.steps[1], x.steps[2]};
  cuuint64_t extents[axes], bytes[axes - 1];
  std::int64_t behind = x.inner;
  for (std::size_t d = 0; d < axes; ++d) {
    if (counts[d] <= 0 || counts[d] > most) return false;
    extents[d] = static_cast<cuuint64_t>(counts[d]);
    if (d == 0) continue;
    // What there is one of may be as far from the next as is allowed.
    std::int64_t const step = counts[d] == 1 ? (behind + aligned - 1) / aligned * aligned : steps[d];
    if (step <= 0 || step % aligned != 0 || step >= std::int64_t{1} << 38) return false;
    bytes[d - 1] = static_cast<cuuint64_t>(step) * 2;
    if (behind > (std::int64_t{1} << 38)) return false;
    behind = step * counts[d];
  }
  if (encode == nullptr || reinterpret_cast<std::uintptr_t>(x.first) % 16 != 0) return false;
  cuuint32_t const box[axes] = {bulk_line, static_cast<cuuint32_t>(lines), 1, 1, 1},
                   each[axes] = {1, 1, 1, 1, 1};
  // The numbers are not looked at, so that f16 stands for both kinds.
  auto const made = [&] {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, axes, const_cast<void*>(x.first), extents, bytes,
                  box, each, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult said = made();
  if (said == CUDA_ERROR_INVALID_CONTEXT) {  // the driver has not seen this thread yet
    check("current device", cudaSetDevice(current_device().index));
    said = made();
  }
  return said == CUDA_SUCCESS;
}

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
