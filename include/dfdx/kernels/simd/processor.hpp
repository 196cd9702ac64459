// SPDX-License-Identifier: BSL-1.0
//
// processor - which processor a kernel is compiled for, where its flags say so and it matters beyond its instructions.
#pragma once

#include <dfdx/core/config.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

// g++ 12 takes Zen 4 for a Zen 3 that has AVX-512, and Zen 5 too, which alone of them has VP2INTERSECT.
#if defined(__znver5__) || ((defined(__znver3__) || defined(__znver4__)) && defined(__AVX512VP2INTERSECT__))
inline constexpr bool on_zen4 = false, on_zen5 = true;
#elif defined(__znver4__) || (defined(__znver3__) && defined(__AVX512VL__))
inline constexpr bool on_zen4 = true, on_zen5 = false;
#else
inline constexpr bool on_zen4 = false, on_zen5 = false;
#endif

}  // namespace dfdx::kernels::inline DFDX_TARGET
