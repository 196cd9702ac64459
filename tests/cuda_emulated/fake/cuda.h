// SPDX-License-Identifier: BSL-1.0
// What dfdx uses of the CUDA driver, on the CPU: maps of matrices for the bulk copy engine, refused as the driver's
// documentation says.
#pragma once

#include <cstdint>
#include <cstring>

using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;
enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_INVALID_CONTEXT = 201 };
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6 };
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B = 3 };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3 };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };
struct alignas(64) CUtensorMap {
  cuuint64_t opaque[16];
};

namespace cuda_fake {

/// Whether the driver has not seen this thread: until it sets its device.
inline bool is_stranger = false;

/// What a map holds here.
struct MapOfMatrices {
  std::byte const* first;
  cuuint64_t extents[5], steps[5];  // of numbers, and bytes
  cuuint32_t box[5];
};
static_assert(sizeof(MapOfMatrices) <= sizeof(CUtensorMap));

}  // namespace cuda_fake

inline CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* first,
                                       cuuint64_t const* extents, cuuint64_t const* steps,
                                       cuuint32_t const* box, cuuint32_t const* each, CUtensorMapInterleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                       CUtensorMapFloatOOBfill) {
  cuda_fake::MapOfMatrices m{static_cast<std::byte const*>(first), {}, {2}, {}};
  bool right = rank == 5 && swizzle == CU_TENSOR_MAP_SWIZZLE_128B && box[0] * 2 <= 128 &&
               box[0] * 2 % 16 == 0 && reinterpret_cast<std::uintptr_t>(map) % 64 == 0 &&
               reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
  for (cuuint32_t d = 0; right && d < rank; ++d) {
    right =
        extents[d] > 0 && extents[d] <= cuuint64_t{1} << 32 && box[d] > 0 && box[d] <= 256 && each[d] == 1;
    m.extents[d] = extents[d], m.box[d] = box[d];
    if (d == 0) continue;
    right = right && steps[d - 1] % 16 == 0 && steps[d - 1] < cuuint64_t{1} << 40;
    m.steps[d] = steps[d - 1];
  }
  if (cuda_fake::is_stranger) return CUDA_ERROR_INVALID_CONTEXT;
  if (!right) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(map, &m, sizeof m);
  return CUDA_SUCCESS;
}
