// SPDX-License-Identifier: BSL-1.0
// Determinants and inverses of matrices of up to four rows, by cofactors.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/core/config.hpp>

namespace dfdx::op::detail {

/// Up to so many rows cofactors cost less than elimination.
inline constexpr int most_by_cofactors = 4;

/// by_cofactors - the determinant of a of N rows, and in `adjugate`, unless that is null, the matrix of its cofactors,
/// transposed. By Laplace's expansion: of four rows along pairs of rows.
template <int N>
DFDX_INLINE double by_cofactors(double const (&a)[N][N], double (*adjugate)[N]) {
  auto const minor = [&](int i, int k, int m, int n) { return a[i][m] * a[k][n] - a[i][n] * a[k][m]; };
  if constexpr (N == 1) {
    if (adjugate != nullptr) adjugate[0][0] = 1;
    return a[0][0];
  } else if constexpr (N == 2) {
    if (adjugate != nullptr) {
      adjugate[0][0] = a[1][1], adjugate[0][1] = -a[0][1];
      adjugate[1][0] = -a[1][0], adjugate[1][1] = a[0][0];
    }
    return minor(0, 1, 0, 1);
  } else if constexpr (N == 3) {
    double const x = minor(1, 2, 1, 2), y = minor(1, 2, 2, 0), z = minor(1, 2, 0, 1);
    if (adjugate != nullptr) {
      adjugate[0][0] = x, adjugate[0][1] = minor(0, 2, 2, 1), adjugate[0][2] = minor(0, 1, 1, 2);
      adjugate[1][0] = y, adjugate[1][1] = minor(0, 2, 0, 2), adjugate[1][2] = minor(0, 1, 2, 0);
      adjugate[2][0] = z, adjugate[2][1] = minor(0, 2, 1, 0), adjugate[2][2] = minor(0, 1, 0, 1);
    }
    return a[0][0] * x + a[0][1] * y + a[0][2] * z;
  } else {
    double const s01 = minor(0, 1, 0, 1), s02 = minor(0, 1, 0, 2), s03 = minor(0, 1, 0, 3);
    double const s12 = minor(0, 1, 1, 2), s13 = minor(0, 1, 1, 3), s23 = minor(0, 1, 2, 3);
    double const t01 = minor(2, 3, 0, 1), t02 = minor(2, 3, 0, 2), t03 = minor(2, 3, 0, 3);
    double const t12 = minor(2, 3, 1, 2), t13 = minor(2, 3, 1, 3), t23 = minor(2, 3, 2, 3);
    if (adjugate != nullptr) {
      adjugate[0][0] = a[1][1] * t23 - a[1][2] * t13 + a[1][3] * t12;
      adjugate[0][1] = -a[0][1] * t23 + a[0][2] * t13 - a[0][3] * t12;
      adjugate[0][2] = a[3][1] * s23 - a[3][2] * s13 + a[3][3] * s12;
      adjugate[0][3] = -a[2][1] * s23 + a[2][2] * s13 - a[2][3] * s12;
      adjugate[1][0] = -a[1][0] * t23 + a[1][2] * t03 - a[1][3] * t02;
      adjugate[1][1] = a[0][0] * t23 - a[0][2] * t03 + a[0][3] * t02;
      adjugate[1][2] = -a[3][0] * s23 + a[3][2] * s03 - a[3][3] * s02;
      adjugate[1][3] = a[2][0] * s23 - a[2][2] * s03 + a[2][3] * s02;
      adjugate[2][0] = a[1][0] * t13 - a[1][1] * t03 + a[1][3] * t01;
      adjugate[2][1] = -a[0][0] * t13 + a[0][1] * t03 - a[0][3] * t01;
      adjugate[2][2] = a[3][0] * s13 - a[3][1] * s03 + a[3][3] * s01;
      adjugate[2][3] = -a[2][0] * s13 + a[2][1] * s03 - a[2][3] * s01;
      adjugate[3][0] = -a[1][0] * t12 + a[1][1] * t02 - a[1][2] * t01;
      adjugate[3][1] = a[0][0] * t12 - a[0][1] * t02 + a[0][2] * t01;
      adjugate[3][2] = -a[3][0] * s12 + a[3][1] * s02 - a[3][2] * s01;
      adjugate[3][3] = a[2][0] * s12 - a[2][1] * s02 + a[2][2] * s01;
    }
    return s01 * t23 - s02 * t13 + s03 * t12 + s12 * t03 - s13 * t02 + s23 * t01;
  }
}

}  // namespace dfdx::op::detail
