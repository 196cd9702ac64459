// SPDX-License-Identifier: BSL-1.0
// Work divided among threads, by OpenMP where the including project compiles with it (-fopenmp); else in one piece.
#pragma once

#include <algorithm>
#include <cstdint>

#include <dfdx/core/config.hpp>
#include <dfdx/core/denormals.hpp>

#if defined(DFDX_THREADED)
#include <omp.h>
#endif

namespace dfdx::kernels::inline DFDX_TARGET {

/// has_threads - whether kernels may run on several threads.
#if defined(DFDX_THREADED)
inline constexpr bool has_threads = true;
#else
inline constexpr bool has_threads = false;
#endif

/// part_work - the work, in operations on an element that runs in vectors, for which a thread of its own pays: some ten
/// microseconds, for starting it and waiting for it takes a few.
#if defined(DFDX_PART_WORK)
inline constexpr std::int64_t part_work = DFDX_PART_WORK;
#else
inline constexpr std::int64_t part_work = 1 << 18;
#endif

/// work_of_products - the work of so many multiply-adds: registers are reused, and several run at once.
constexpr std::int64_t work_of_products(std::int64_t multiply_adds) { return multiply_adds / 4; }

/// parts_of - into how many parts some work is divided: at most as many as OpenMP would start threads
/// (OMP_NUM_THREADS, omp_set_num_threads), as there are pieces, and as are worth it. 1 inside of a parallel region.
inline int parts_of([[maybe_unused]] std::int64_t work, [[maybe_unused]] std::int64_t pieces) {
#if defined(DFDX_THREADED)
  std::int64_t const most = std::min(pieces, work / part_work);
  if (most > 1 && omp_in_parallel() == 0)
    return static_cast<int>(std::min<std::int64_t>(most, omp_get_max_threads()));
#endif
  return 1;
}

/// in_parallel - f(0), f(1), ... f(parts - 1), each on a thread, in the caller's mode (FlushDenormals). f must not
/// throw: an exception, as of memory that has run out, ends the program.
template <class F>
void in_parallel(int parts, F const& f) {
#if defined(DFDX_THREADED)
  if (parts > 1) {
    auto const mode = dfdx::detail::float_mode();
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; ++i) {
      dfdx::detail::FloatMode const same(mode);
      f(i);
    }
    return;
  }
#endif
  for (int i = 0; i < parts; ++i) f(i);
}

/// Part - one of nearly equal parts of 0 .. n, which begin at multiples of `unit`.
struct Part {
  std::int64_t begin, end;
};
constexpr Part part_of(std::int64_t n, int i, int parts, std::int64_t unit = 1) {
  std::int64_t const units = (n + unit - 1) / unit;
  return {std::min(n, units * i / parts * unit), std::min(n, units * (i + 1) / parts * unit)};
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
