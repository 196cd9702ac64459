// SPDX-License-Identifier: BSL-1.0
// Compiler switches: every macro of the library except DFDX_FIELDS, and nothing else.
#pragma once

#define DFDX_VERSION_MAJOR 0
#define DFDX_VERSION_MINOR 1
#define DFDX_VERSION_PATCH 0

#if defined(__CUDACC__)
#define DFDX_DEVICE __host__ __device__
#else
#define DFDX_DEVICE
#endif

// Steps of a fused loop must melt into it: a call per lane value would cost more than the arithmetic.
#if defined(__GNUC__) || defined(__clang__)
#define DFDX_INLINE DFDX_DEVICE inline __attribute__((always_inline))
#define DFDX_RESTRICT __restrict__
#else
#define DFDX_INLINE DFDX_DEVICE inline
#define DFDX_RESTRICT
#endif
