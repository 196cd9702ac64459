// SPDX-License-Identifier: BSL-1.0
// Distances between all points of two lists, and the sums of differences that their gradients are: lanes run over the
// points of the second list, and no difference is stored.
#pragma once

#include <limits>

#include <dfdx/core/math.hpp>
#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/gemm.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Norm - which one a distance is: the sum of magnitudes, the root of the sum of squares, or the largest magnitude.
enum class Norm { sum, root, largest };

/// PointList - points of so many numbers: where the first begins, and how far points and their numbers are apart.
template <class T>
struct PointList {
  T const* at;
  std::int64_t row, column;
};

/// has_distances - whether there is a kernel for the p-norm.
constexpr bool has_distances(double p) {
  return p == 1 || p == 2 || p == std::numeric_limits<double>::infinity();
}

namespace detail {

#if !defined(__CUDACC__) && !defined(DFDX_RVV)

template <Norm N, class V>
DFDX_INLINE V joined(V sum, V difference) {
  if constexpr (N == Norm::sum) return sum + xsimd::abs(difference);
  else if constexpr (N == Norm::root) return xsimd::fma(difference, difference, sum);
  // A difference that is no number stays: of it and another one xsimd's max may give either.
  else return xsimd::select(xsimd::abs(difference) <= sum, sum, xsimd::abs(difference) + sum * V(0));
}

/// R points from a on, `row` apart, to those of a panel of C lanes, of which `count` exist.
template <Norm N, int R, int C, class T>
void distance_tile(T const* a, Index row, Index column, Index depth, T const* panel, T* y, Index y_row,
                   Index count) {
  using V = lane<T>;
  constexpr int W = lane_size<T>;
  V sum[R][C];
  DFDX_UNROLL for (int r = 0; r < R; ++r) DFDX_UNROLL for (int c = 0; c < C; ++c) sum[r][c] = V(T(0));
  for (Index k = 0; k < depth; ++k, a += column, panel += C * W) {
    V b[C];
    DFDX_UNROLL for (int c = 0; c < C; ++c) b[c] = V::load_aligned(panel + c * W);
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      V const x(a[r * row]);
      DFDX_UNROLL for (int c = 0; c < C; ++c) sum[r][c] = joined<N>(sum[r][c], x - b[c]);
    }
  }
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int c = 0; c < C; ++c) {
      Index const left = count - c * W;
      V const d = N == Norm::root ? xsimd::sqrt(sum[r][c]) : sum[r][c];
      if (left >= W) d.store_unaligned(y + r * y_row + c * W);
      else if (left > 0) store_n(y + r * y_row + c * W, d, static_cast<int>(left));
    }
  }
}

template <Norm N, class T>
void distances(PointList<T> a, Index n, PointList<T> b, Index m, Index depth, T* y) {
  constexpr int R = tile_sums > 8 ? 4 : 2, C = 2, width = C * lane_size<T>;
  Index const panels = ceil_div(m, width);
  Scratch<T> const packed(static_cast<std::size_t>(panels * width * depth));
  for (Index j = 0; j < panels; ++j) {
    Index const left = m - j * width;
    pack_columns(strided<T>{b.at + j * width * b.row, b.column, b.row}, depth,
                 left < width ? static_cast<int>(left) : width, width, packed.get() + j * width * depth);
  }
  int const parts = parts_of(work_of_products(n * m * depth), n);
  in_parallel(parts, [&](int i) {
    Part const p = part_of(n, i, parts);
    for (Index j = 0; j < panels; ++j) {
      T const* const panel = packed.get() + j * width * depth;
      Index const count = m - j * width;
      Index r = p.begin;
      for (; r + R <= p.end; r += R)
        distance_tile<N, R, C>(a.at + r * a.row, a.row, a.column, depth, panel, y + r * m + j * width, m,
                               count);
      for (; r < p.end; ++r)
        distance_tile<N, 1, C>(a.at + r * a.row, a.row, a.column, depth, panel, y + r * m + j * width, m,
                               count);
    }
  });
}

/// R numbers of a point a, less those of all m points: rows of b are `pitch` apart.
template <Norm N, int R, class T>
void difference_tile(T const* w, T const* a, Index column, T const* b, Index pitch, Index m, T* z) {
  using V = lane<T>;
  constexpr int W = lane_size<T>;
  V sum[R];
  DFDX_UNROLL for (int r = 0; r < R; ++r) sum[r] = V(T(0));
  for (Index j = 0; j < m; j += W, b += W) {
    V const weight = j + W <= m ? V::load_unaligned(w + j) : load_n(w + j, static_cast<int>(m - j));
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      V const d = V(a[r * column]) - V::load_aligned(b + r * pitch);
      sum[r] = xsimd::fma(weight, N == Norm::sum ? xsimd::sign(d) : d, sum[r]);
    }
  }
  DFDX_UNROLL for (int r = 0; r < R; ++r) z[r] = xsimd::reduce_add(sum[r]);
}

template <Norm N, class T>
void difference_sums(T const* w, PointList<T> a, Index n, PointList<T> b, Index m, Index depth, T* z) {
  constexpr int R = 4;
  Index const pitch = round_up(m, lane_size<T>);
  Scratch<T> const packed(static_cast<std::size_t>(pitch * depth));
  pack_columns(strided<T>{b.at, b.column, b.row}, depth, static_cast<int>(m), static_cast<int>(pitch),
               packed.get());
  int const parts = parts_of(work_of_products(n * m * depth), n);
  in_parallel(parts, [&](int i) {
    Part const p = part_of(n, i, parts);
    for (Index r = p.begin; r < p.end; ++r) {
      Index k = 0;
      auto const tile = [&]<int Rows>() {
        difference_tile<N, Rows>(w + r * m, a.at + r * a.row + k * a.column, a.column,
                                 packed.get() + k * pitch, pitch, m, z + r * depth + k);
      };
      for (; k + R <= depth; k += R) tile.template operator()<R>();
      for (; k < depth; ++k) tile.template operator()<1>();
    }
  });
}

#else

template <Norm N, class T>
void distances(PointList<T> a, std::int64_t n, PointList<T> b, std::int64_t m, std::int64_t depth, T* y) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) {
      T sum(0);
      for (std::int64_t k = 0; k < depth; ++k) {
        T const d = math::abs(a.at[i * a.row + k * a.column] - b.at[j * b.row + k * b.column]);
        if (N == Norm::largest) sum = d <= sum ? sum : d + sum * T(0);
        else sum += N == Norm::root ? d * d : d;
      }
      y[i * m + j] = N == Norm::root ? math::sqrt(sum) : sum;
    }
}

template <Norm N, class T>
void difference_sums(T const* w, PointList<T> a, std::int64_t n, PointList<T> b, std::int64_t m,
                     std::int64_t depth, T* z) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < depth; ++k) {
      T sum(0);
      for (std::int64_t j = 0; j < m; ++j) {
        T const d = a.at[i * a.row + k * a.column] - b.at[j * b.row + k * b.column];
        T const part = N == Norm::root ? d : d > 0 ? T(1) : d < 0 ? T(-1) : d;
        sum += w[i * m + j] * part;
      }
      z[i * depth + k] = sum;
    }
}

#endif

}  // namespace detail

/// distances - y_ij = |a_i - b_j|_p of n points a and m points b of `depth` numbers, y dense. There is a kernel for p.
template <class T>
void distances(double p, PointList<T> a, std::int64_t n, PointList<T> b, std::int64_t m, std::int64_t depth,
               T* y) {
  if (p == 1) detail::distances<Norm::sum>(a, n, b, m, depth, y);
  else if (p == 2) detail::distances<Norm::root>(a, n, b, m, depth, y);
  else detail::distances<Norm::largest>(a, n, b, m, depth, y);
}

/// difference_sums - z_ik = the sum over j of w_ij (a_ik - b_jk), for p = 1 of the signs of the differences; w and z
/// dense.
template <class T>
void difference_sums(double p, T const* w, PointList<T> a, std::int64_t n, PointList<T> b, std::int64_t m,
                     std::int64_t depth, T* z) {
  if (p == 1) detail::difference_sums<Norm::sum>(w, a, n, b, m, depth, z);
  else detail::difference_sums<Norm::root>(w, a, n, b, m, depth, z);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
