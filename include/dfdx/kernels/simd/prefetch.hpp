// SPDX-License-Identifier: BSL-1.0
// Has lines of memory come before they are needed: hints, of any address.
#pragma once

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// So many bytes on from p, which is no address of an element there.
template <class T>
DFDX_INLINE void const* bytes_from(T const* p, std::ptrdiff_t bytes_on) {
  return reinterpret_cast<void const*>(reinterpret_cast<std::uintptr_t>(p) +
                                       static_cast<std::uintptr_t>(bytes_on));
}
/// What will be read, into the second cache.
template <class T>
DFDX_INLINE void ask_to_read([[maybe_unused]] T const* p, [[maybe_unused]] std::ptrdiff_t bytes_on = 0) {
#if defined(__GNUC__)
  __builtin_prefetch(bytes_from(p, bytes_on), 0, 2);
#endif
}
/// What will be written, into the first.
template <class T>
DFDX_INLINE void ask_to_write([[maybe_unused]] T const* p, [[maybe_unused]] std::ptrdiff_t bytes_on = 0) {
#if defined(__GNUC__)
  __builtin_prefetch(bytes_from(p, bytes_on), 1, 3);
#endif
}

/// Stores in order ask for what they come to so many bytes later: as long as memory far away takes.
inline constexpr std::ptrdiff_t stores_ahead = 1024;

/// Upcoming - memory that is read after what is computed now, asked for in that many parts.
class Upcoming {
 public:
  Upcoming() = default;
  template <class T>
  Upcoming(T const* p, std::ptrdiff_t count, std::ptrdiff_t parts)
      : at_(reinterpret_cast<char const*>(p)),
        lines_((count * static_cast<std::ptrdiff_t>(sizeof(T)) + line - 1) / line),
        each_((lines_ + parts - 1) / (parts > 0 ? parts : 1)) {}
  /// Asks for the next part, if there is one.
  DFDX_INLINE void ask() {
    std::ptrdiff_t const n = each_ < lines_ ? each_ : lines_;
    for (std::ptrdiff_t i = 0; i < n; ++i, at_ += line) ask_to_read(at_);
    lines_ -= n;
  }

 private:
  static constexpr std::ptrdiff_t line = 64;
  char const* at_ = nullptr;
  std::ptrdiff_t lines_ = 0, each_ = 0;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
