// SPDX-License-Identifier: BSL-1.0
// What the bulk copy engine of Hopper GPUs is told of a matrix before it copies parts of it. The driver makes it; its
// function is found when it is first needed, so that programs need not link the driver's library.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include <dfdx/core/dtype.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// BulkMatrices - matrices of numbers of 16 bits: `inner` beside each other, `outer` lines of them `outer_step` numbers
/// apart, `count` matrices that are `step` apart.
struct BulkMatrices {
  void const* first = nullptr;
  std::int64_t inner = 0, outer = 0, outer_step = 0, count = 1, step = 0;
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
  // What there is one of is as far from the next as may be.
  std::int64_t const of_line = (x.inner + aligned - 1) / aligned * aligned;
  std::int64_t const outer_step = x.outer == 1 ? of_line : x.outer_step;
  std::int64_t const step = x.count == 1 ? outer_step * x.outer : x.step;
  for (std::int64_t const n : {x.inner, x.outer, x.count})
    if (n <= 0 || n > most) return false;
  for (std::int64_t const n : {outer_step, step})
    if (n <= 0 || n % aligned != 0 || n >= std::int64_t{1} << 38) return false;
  if (encode == nullptr || reinterpret_cast<std::uintptr_t>(x.first) % 16 != 0) return false;
  cuuint64_t const extents[] = {static_cast<cuuint64_t>(x.inner), static_cast<cuuint64_t>(x.outer),
                                static_cast<cuuint64_t>(x.count)};
  cuuint64_t const steps[] = {static_cast<cuuint64_t>(outer_step) * 2, static_cast<cuuint64_t>(step) * 2};
  cuuint32_t const box[] = {bulk_line, static_cast<cuuint32_t>(lines), 1}, each[] = {1, 1, 1};
  // The numbers are not looked at, so that f16 stands for both kinds.
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<void*>(x.first), extents, steps, box,
                each, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
