// SPDX-License-Identifier: BSL-1.0
// The exponential of single numbers where a register holds the sixteen powers of 2^(1/16): what is left of the exponent
// is so small that a polynomial of degree three does. Twelve instructions, where one power and degree six take sixteen.
#pragma once

#include <dfdx/kernels/simd/erf_table.hpp>

#if !defined(__CUDACC__) && defined(__AVX512F__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

alignas(64) inline constexpr float powers_of_two[16] = {
    1,           1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
    1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f, 1.68179286f, 1.75625217f, 1.83400810f, 1.91520655f};

/// table_exp - e^x, within 1.1 units in the last place, for x in [-104, 89] (which has 0 and infinity) and NaN.
template <class A>
DFDX_INLINE xsimd::batch<float, A> table_exp(xsimd::batch<float, A> const& x) {
  // Numbers about `shift` are sixteenths: adding it rounds to one, which of the table's is what the mantissa ends in.
  __m512 const shift = _mm512_set1_ps(786432);
  __m512 const shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504f), shift);
  __m512 const n = _mm512_sub_ps(shifted, shift);
  // ln 2 in two parts, of which n times the first is exact; e^r - 1 = r + r^2 (1/2 + r/6), where |r| <= ln 2 / 32 and
  // the 1/2 is a little more for the sake of r^4.
  __m512 const high = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  __m512 const r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), high);
  __m512 const p = _mm512_fmadd_ps(r, _mm512_set1_ps(0.166666667f), _mm512_set1_ps(0.50001955f));
  __m512 const less = _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, r);
  __m512 const power = _mm512_permutexvar_ps(_mm512_castps_si512(shifted), _mm512_load_ps(powers_of_two));
  return _mm512_scalef_ps(_mm512_fmadd_ps(power, less, power), n);  // which takes the whole part of n
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__ && __AVX512F__
