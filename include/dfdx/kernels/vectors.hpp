// SPDX-License-Identifier: BSL-1.0
// The vectors that elementary functions are written for: xsimd's, and where vectors have no size, symbols of them
// (rvv/formula.hpp).
#pragma once

#include <dfdx/kernels/rvv/formula.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// vectors - their functions, by xsimd's names.
#if defined(DFDX_RVV)
namespace vectors {
using rvv::abs, rvv::fma, rvv::fms, rvv::fnma, rvv::min, rvv::max, rvv::copysign, rvv::nearbyint, rvv::floor;
using rvv::bitwise_cast, rvv::batch_cast, rvv::sqrt, rvv::trunc, rvv::ceil;
using xsimd::abs, xsimd::fma, xsimd::fms, xsimd::fnma, xsimd::min, xsimd::max, xsimd::copysign,
    xsimd::nearbyint;
using xsimd::bitwise_cast, xsimd::batch_cast, xsimd::sqrt, xsimd::trunc, xsimd::ceil, xsimd::floor,
    xsimd::any;
}  // namespace vectors
#else
namespace vectors = xsimd;
#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
