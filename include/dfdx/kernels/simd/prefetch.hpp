// SPDX-License-Identifier: BSL-1.0
// Has lines of memory come before they are needed: hints, of any address.
#pragma once

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// What will be read, into the second cache.
template <class T>
DFDX_INLINE void ask_to_read([[maybe_unused]] T const* p, [[maybe_unused]] std::ptrdiff_t bytes_on = 0) {
#if defined(__GNUC__)
  __builtin_prefetch(reinterpret_cast<void const*>(reinterpret_cast<std::uintptr_t>(p) +
                                                   static_cast<std::uintptr_t>(bytes_on)),
                     0, 2);
#endif
}
/// What will be written, into the first.
template <class T>
DFDX_INLINE void ask_to_write([[maybe_unused]] T const* p) {
#if defined(__GNUC__)
  __builtin_prefetch(p, 1, 3);
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
