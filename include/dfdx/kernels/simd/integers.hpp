// SPDX-License-Identifier: BSL-1.0
//
// integers - real numbers as integers, by the rule of core/convert.hpp: lanes of them, and rows.
#pragma once

#include <dfdx/core/convert.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// The integers of as many bytes as F.
template <class F>
using integer_beside = std::conditional_t<sizeof(F) == 4, std::int32_t, std::int64_t>;

/// Apart, for numbers that no integer holds are rare, and the lanes of a loop are many.
template <class F, class A>
[[gnu::noinline, gnu::cold]] inline xsimd::batch<integer_beside<F>, A> integers_one_by_one(
    xsimd::batch<F, A> const& x) {
  using I = integer_beside<F>;
  constexpr std::size_t n = xsimd::batch<F, A>::size;
  alignas(64) F from[n];
  alignas(64) I to[n];
  x.store_aligned(from);
  for (std::size_t i = 0; i < n; ++i) to[i] = math::integer_of<I>(from[i]);
  return xsimd::batch<I, A>::load_aligned(to);
}

}  // namespace detail

/// integers_of - math::integer_of of each number, as integers of their size.
template <class F, class A>
DFDX_INLINE xsimd::batch<detail::integer_beside<F>, A> integers_of(xsimd::batch<F, A> const& x) {
  using I = detail::integer_beside<F>;
  using V = xsimd::batch<F, A>;
#if defined(__SSE4_1__) && !defined(__AVX512DQ__)
  // There is no instruction for integers of 64 bits. Beside 3 2^51 a whole number stands in the last digits.
  if constexpr (sizeof(F) == 8) {
    V const beside(F(0x1.8p52));
    if (xsimd::all(xsimd::abs(x) < V(F(0x1p51)))) [[likely]]
      return xsimd::bitwise_cast<I>(xsimd::trunc(x) + beside) - xsimd::bitwise_cast<I>(beside);
  }
#endif
  if (xsimd::all(xsimd::abs(x) < V(math::wide_end<I, F>))) [[likely]] {
#if defined(__x86_64__) && \
    !defined(__SSE4_1__)  // xsimd's goes through memory, in other steps than it is read
    if constexpr (sizeof(F) == 8)
      return _mm_set_epi64x(_mm_cvttsd_si64(_mm_unpackhi_pd(x, x)), _mm_cvttsd_si64(x));
#endif
    return xsimd::batch_cast<I>(x);
  }
  return detail::integers_one_by_one(x);
}

/// convert_to_integers - y[i] = math::integer_of<I>(x[i]) for as many of n as whole lanes hold, or blocks, which it
/// returns.
template <class I, class F>
std::int64_t convert_to_integers(I* DFDX_RESTRICT y, F const* DFDX_RESTRICT x, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (sizeof(I) == sizeof(F)) {
    for (; i + lane_size<F> <= n; i += lane_size<F>)
      integers_of(lane<F>::load_unaligned(x + i)).store_unaligned(y + i);
    return i;
  }
  // In a block that has no others the instructions of C++'s own conversion do, which compilers find for any two types
  // where they know how many numbers there are.
  using V = lane<F>;
  constexpr int block = 64;
  V const end(math::wide_end<I, F>);
  for (; i + block <= n; i += block) {
    auto is_below = xsimd::abs(V::load_unaligned(x + i)) < end;
    for (int k = lane_size<F>; k < block; k += lane_size<F>)
      is_below = is_below & (xsimd::abs(V::load_unaligned(x + i + k)) < end);
    if (xsimd::all(is_below)) [[likely]]
      for (int k = 0; k < block; ++k) y[i + k] = static_cast<I>(static_cast<math::wide_t<I>>(x[i + k]));
    else
      for (int k = 0; k < block; ++k) y[i + k] = math::integer_of<I>(x[i + k]);
  }
  return i;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
