// SPDX-License-Identifier: BSL-1.0
// The error function of single numbers where a register holds a table of sixteen: a polynomial of its own for each
// quarter from 0 to 4 about its multiple, whose coefficients are looked up. Half of the time of two polynomials for
// all, of which one is an exponent.
#pragma once

#include <dfdx/kernels/simd/batch.hpp>

#if !defined(__CUDACC__) && defined(__AVX512F__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// holds_table - whether such a vector holds a table of sixteen numbers, as table_erf and table_exp look up.
template <class X>
inline constexpr bool holds_table = false;
template <class A>
inline constexpr bool holds_table<xsimd::batch<float, A>> = sizeof(xsimd::batch<float, A>) == 64;

// Of (x - k / 4)^j, for k = 0..15: Chebyshev fits to 4 from 3.625 on for the last; odd for k = 0, without x itself.
alignas(64) inline constexpr float erf_coefficients[6][16] = {
    {0, 0.276326388f, 0.520499885f, 0.711155653f, 0.842700779f, 0.92290014f, 0.966105163f, 0.986671686f,
     0.995322287f, 0.998537302f, 0.999593019f, 0.999899387f, 0.999977887f, 0.999995708f, 0.999999285f,
     0.999999881f},
    {0.128379167f, 1.06001413f, 0.87878257f, 0.642931044f, 0.415107489f, 0.236521125f, 0.118930288f,
     0.0527749956f, 0.0206669848f, 0.00714231888f, 0.00217828434f, 0.00058627734f, 0.000139253098f,
     2.91890465e-05f, 5.39943358e-06f, 8.8082993e-07f},
    {0, -0.264997989f, -0.43938446f, -0.482194632f, -0.415108114f, -0.295654297f, -0.178398088f,
     -0.092357479f, -0.0413340405f, -0.016069822f, -0.00544532714f, -0.00161203451f, -0.000417657371f,
     -9.48278903e-05f, -1.88872109e-05f, -3.30934427e-06f},
    {-0.376122713f, -0.309168577f, -0.146464497f, 0.0267862752f, 0.138367087f, 0.16753529f, 0.138752654f,
     0.0901581123f, 0.0482234284f, 0.0217246469f, 0.00835001562f, 0.00276030018f, 0.000789046928f,
     0.000195786284f, 4.22874691e-05f, 8.09320045e-06f},
    {0, 0.126034856f, 0.181910977f, 0.150058091f, 0.0692907274f, -0.0056624976f, -0.0441468768f,
     -0.0478918403f, -0.0344335586f, -0.0191510431f, -0.00868785661f, -0.00329699367f, -0.00106175116f,
     -0.000292779441f, -6.95540875e-05f, -1.38656969e-05f},
    {0.112210386f, 0.0796753541f, 0.00744898291f, -0.0528122857f, -0.0688301697f, -0.0470956936f,
     -0.0149767483f, 0.00648272783f, 0.0130098779f, 0.0106418133f, 0.00612995774f, 0.00277092052f,
     0.001025707f, 0.000317792059f, 8.34864913e-05f, 1.29538503e-05f}};

/// table_erf - within 1.5 units in the last place.
template <class A>
DFDX_INLINE xsimd::batch<float, A> table_erf(xsimd::batch<float, A> const& x) {
  // Numbers about `shift` are quarters: adding it rounds to one, whose number is what the mantissa ends in.
  constexpr float shift = 3145728, last = 3.75f;
  __m512 const sign = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0x80000000u)));
  __m512 const a = _mm512_min_ps(_mm512_set1_ps(4), _mm512_andnot_ps(sign, x));  // in this order NaN stays
  __m512 const shifted = _mm512_min_ps(_mm512_set1_ps(shift + last), _mm512_add_ps(a, _mm512_set1_ps(shift)));
  __m512 const t = _mm512_sub_ps(a, _mm512_sub_ps(shifted, _mm512_set1_ps(shift)));
  auto const coefficient = [&](int j) {
    return _mm512_permutexvar_ps(_mm512_castps_si512(shifted), _mm512_load_ps(erf_coefficients[j]));
  };
  __m512 p = coefficient(5);
  DFDX_UNROLL for (int j = 4; j > 0; --j) p = _mm512_fmadd_ps(p, t, coefficient(j));
  // 0.125 lies between two quarters, and is rounded to the even one.
  __mmask16 const small = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0.125f), _CMP_LE_OQ);
  __m512 const y = _mm512_fmadd_ps(p, t, _mm512_mask_mov_ps(coefficient(0), small, a));
  return _mm512_or_ps(y, _mm512_and_ps(sign, x));
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__ && __AVX512F__
