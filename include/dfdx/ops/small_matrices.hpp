// SPDX-License-Identifier: BSL-1.0
// Linear algebra of matrices whose size is known, in programs: in double too, without what sizes that are not known
// cost. Rows are whole vectors, of elements of which the last may have no meaning.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <dfdx/core/config.hpp>
#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/ops/cofactors.hpp>

namespace dfdx::op::detail {

// Numbers of a row of N.
template <int N>
inline constexpr int row_room = N <= 1   ? 1
                                : N <= 2 ? 2
                                : N <= 4 ? 4
                                : N <= 8 ? 8
                                         : 16;

/// SmallMatrix - M rows of N numbers, each in room for whole vectors.
template <int M, int N>
struct SmallMatrix {
  static constexpr int room = row_room<N>;
  alignas(8 * room) double v[M][room];

  template <class T>
  void read(T const* x) {
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < room; ++j) v[i][j] = j < N ? static_cast<double>(x[i * N + j]) : 0;
  }
  template <class T>
  void write(T* y) const {
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) y[i * N + j] = static_cast<T>(v[i][j]);
  }
  // Of rows i and k: all is read before anything is written, for compilers do not know that the rows are two.
  void exchange([[maybe_unused]] int i, [[maybe_unused]] int k) {
    if constexpr (M > 1) {  // (g++ 12 warns of rows that are not there)
      double x[room];
      DFDX_UNROLL for (int j = 0; j < room; ++j) x[j] = v[i][j];
      DFDX_UNROLL for (int j = 0; j < room; ++j) v[i][j] = v[k][j];
      DFDX_UNROLL for (int j = 0; j < room; ++j) v[k][j] = x[j];
    }
  }
  // Row i less f times row k.
  void subtract([[maybe_unused]] int i, [[maybe_unused]] int k, [[maybe_unused]] double f) {
    if constexpr (M > 1) {
      double x[room];
      DFDX_UNROLL for (int j = 0; j < room; ++j) x[j] = v[i][j] - f * v[k][j];
      DFDX_UNROLL for (int j = 0; j < room; ++j) v[i][j] = x[j];
    }
  }
  void divide(int i, double by) { DFDX_UNROLL for (int j = 0; j < room; ++j) v[i][j] /= by; }
};

// As factorize. What elimination leaves below the diagonal is not 0 but nothing reads it.
template <int N, class T>
void factorize_small(T const* a, double* factors) {
  SmallMatrix<N, N> u, l{};
  u.read(a);
  for (int k = 0; k < N; ++k) {
    int with = k;
    for (int i = k + 1; i < N; ++i)
      if (std::fabs(u.v[i][k]) > std::fabs(u.v[with][k])) with = i;
    factors[N * N + k] = with;
    if (with != k) u.exchange(k, with), l.exchange(k, with);
    for (int i = k + 1; i < N; ++i) {
      double const f = u.v[i][k] == 0 ? 0 : u.v[i][k] / u.v[k][k];
      l.v[i][k] = f;
      u.subtract(i, k, f);
    }
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) factors[i * N + j] = j < i ? l.v[i][j] : u.v[i][j];
}

// As substitute.
template <bool Upper, bool Unit, bool Transposed, int N, int K, class T>
void substitute_small(T const* a, SmallMatrix<N, K>& b) {
  constexpr bool from_below = Upper != Transposed;
  if constexpr (K == 1) {
    // In registers, as far as they go.
    double x[N];
    for (int i = 0; i < N; ++i) x[i] = b.v[i][0];
    DFDX_UNROLL for (int k = 0; k < N; ++k) {
      int const i = from_below ? N - 1 - k : k;
      if (!Unit) x[i] /= static_cast<double>(a[i * N + i]);
      DFDX_UNROLL for (int j = from_below ? 0 : i + 1; j < (from_below ? i : N); ++j) x[j] -=
          x[i] * static_cast<double>(Transposed ? a[i * N + j] : a[j * N + i]);
    }
    for (int i = 0; i < N; ++i) b.v[i][0] = x[i];
  } else {
    for (int k = 0; k < N; ++k) {
      int const i = from_below ? N - 1 - k : k;
      if (!Unit) b.divide(i, static_cast<double>(a[i * N + i]));
      for (int j = from_below ? 0 : i + 1; j < (from_below ? i : N); ++j)
        b.subtract(j, i, static_cast<double>(Transposed ? a[i * N + j] : a[j * N + i]));
    }
  }
}

// As solve_factorized.
template <bool Transposed, int N, int K>
bool solve_small(double const* factors, SmallMatrix<N, K>& b) {
  bool singular = false;
  for (int k = 0; k < N; ++k) singular = singular || factors[k * N + k] == 0;
  if (singular) return false;
  auto const exchange = [&](int k) {
    auto const with = static_cast<int>(factors[N * N + k]);
    if (with != k) b.exchange(k, with);
  };
  if constexpr (!Transposed)
    for (int k = 0; k < N; ++k) exchange(k);
  substitute_small<Transposed, !Transposed, Transposed>(factors, b);
  substitute_small<!Transposed, Transposed, Transposed>(factors, b);
  if constexpr (Transposed)
    for (int k = N; k-- > 0;) exchange(k);
  return true;
}

// l of l l^T = a; false where there is none.
template <int N, class T>
bool cholesky_small(T const* a, T* l) {
  double v[N][N];
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) v[i][j] = static_cast<double>(a[i * N + j]);  // (a whole row: a fixed length)
  bool fine = true;
  DFDX_UNROLL for (int k = 0; k < N; ++k) {
    fine = fine && v[k][k] > 0;
    v[k][k] = std::sqrt(v[k][k]);
    DFDX_UNROLL for (int i = k + 1; i < N; ++i) v[i][k] /= v[k][k];
    DFDX_UNROLL for (int i = k + 1; i < N; ++i) DFDX_UNROLL for (int j = k + 1; j <= i; ++j) v[i][j] -=
        v[i][k] * v[j][k];
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) l[i * N + j] = j > i ? T(0) : static_cast<T>(v[i][j]);
  return fine;
}

// Of a(i, j), up to four rows; 0 where cofactors may have lost what elimination keeps, for numbers are very large or
// very small.
template <int N, class A>
double determinant_by_cofactors(A const& a, double (*adjugate)[N]) {
  double v[N][N], largest = 0;
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j)
      v[i][j] = static_cast<double>(a(i, j)), largest = std::max(largest, std::fabs(v[i][j]));
  double const r = by_cofactors(v, adjugate);
  return std::fabs(r) > 1e-200 && largest < 1e60 ? r : 0;
}
// The factors of a(i, j).
template <int N, class A>
void factorize_few(A const& a, double* factors) {
  double all[N * N];
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) all[i * N + j] = static_cast<double>(a(i, j));
  factorize_small<N>(all, factors);
}
// The determinant of a matrix of n rows by its factors.
template <int = 0>
double determinant_of_factors(double const* factors, index_t pitch, index_t n) {
  double r = 1;
  for (index_t i = 0; i < n; ++i)
    r *= factors[n * pitch + i] == static_cast<double>(i) ? factors[i * pitch + i] : -factors[i * pitch + i];
  return r;
}
// The inverse of a(i, j) in y, or false.
template <int N, class A>
bool invert_small(A const& a, SmallMatrix<N, N>& y) {
  double adjugate[N][N];
  if (double const d = determinant_by_cofactors(a, adjugate); d != 0) {
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) y.v[i][j] = adjugate[i][j] / d;
    return true;
  }
  double factors[2 * N * N];
  factorize_few<N>(a, factors);
  y = {};
  for (int i = 0; i < N; ++i) y.v[i][i] = 1;
  return solve_small<false>(factors, y);
}

// The determinant of a(i, j), by elimination where cofactors will not do.
template <int N, class A>
double determinant_small(A const& a) {
  if (double const d = determinant_by_cofactors<N>(a, nullptr); d != 0) return d;
  double factors[2 * N * N];
  factorize_few<N>(a, factors);
  return determinant_of_factors(factors, N, N);
}
// f(the number as a constant), for up to four rows.
template <class F>
void with_few_rows(index_t n, F const& f) {
  if (n == 1) f(std::integral_constant<int, 1>{});
  else if (n == 2) f(std::integral_constant<int, 2>{});
  else if (n == 3) f(std::integral_constant<int, 3>{});
  else if (n == 4) f(std::integral_constant<int, 4>{});
}

/// for_small - f(matrix of each operand, where it lies) for the matrices of a step's operands, the last its result.
template <class Step, class F>
void for_small(void* const* base, F const& f) {
  constexpr auto const& x = Step::operands;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    for (index_t i = 0; i < x.matrices; ++i)
      f(static_cast<element_t<x.dtype[K]>*>(base[K]) + i * x.rows[K] * x.columns[K]...);
  }(std::make_index_sequence<static_cast<std::size_t>(x.count)>{});
}

}  // namespace dfdx::op::detail
