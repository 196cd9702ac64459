// SPDX-License-Identifier: BSL-1.0
//
// gemv - products of one row, or a few, with a matrix that is used once and comes from memory.
//
// gemm_dot: rows of the matrix are multiplied with those of the other factor, one after the other or several side by
// side, all sums in registers; they may be numbers of 16 bits, which are widened in registers. gemm_row: rows of the
// matrix are added up.
#pragma once

#include <dfdx/kernels/half.hpp>
#include <dfdx/kernels/simd/gemm_micro.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>
#include <dfdx/kernels/simd/processor.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// M rows of A by Group rows of B: lanes of sums, those of row m and column i to(m, i), each still to be summed up.
/// Rows of B that do not exist are copies of the last.
template <int M, int Group, class T, class B, class To>
DFDX_INLINE void dot_tile(Index k, T const* a, Index a_row, B const* b, Index b_col, int count, To const to) {
  using V = lane<T>;
  constexpr int W = lane_size<T>;
  Index const whole = k - k % W;
  int const rest = static_cast<int>(k - whole);
  B const* y[Group];
  V sum[M][Group];
  DFDX_UNROLL for (int i = 0; i < Group; ++i) {
    y[i] = b + (i < count ? i : count - 1) * b_col;
    DFDX_UNROLL for (int m = 0; m < M; ++m) sum[m][i] = V(T(0));
  }
  for (Index p = 0; p < whole; p += W) {
    V x[M];
    DFDX_UNROLL for (int m = 0; m < M; ++m) x[m] = V::load_unaligned(a + m * a_row + p);
    DFDX_UNROLL for (int i = 0; i < Group; ++i) {
      V const row = load_wide<T>(y[i] + p);
      DFDX_UNROLL for (int m = 0; m < M; ++m) sum[m][i] = xsimd::fma(x[m], row, sum[m][i]);
    }
  }
  if (rest > 0) {
    V x[M];
    DFDX_UNROLL for (int m = 0; m < M; ++m) x[m] = load_n(a + m * a_row + whole, rest);
    DFDX_UNROLL for (int i = 0; i < Group; ++i) {
      V const row = load_wide_n<T>(y[i] + whole, rest);
      DFDX_UNROLL for (int m = 0; m < M; ++m) sum[m][i] = xsimd::fma(x[m], row, sum[m][i]);
    }
  }
  DFDX_UNROLL for (int m = 0; m < M; ++m) {
    DFDX_UNROLL for (int i = 0; i < Group; ++i) to(m, i) = sum[m][i];
  }
}

// How many bytes ahead dot_row asks for what it will read. On Zen 5 asking loses where matrices are in caches, whose
// lines come sooner unasked (53 us for 4 MB, then 41), and gains where they are not if it is done earlier (2.1 ms for
// 64 MB, then 1.6).
inline constexpr Index rows_ahead = on_zen5 ? 8192 : 4096;
DFDX_INLINE bool asks_for_rows(Index bytes) { return !on_zen5 || bytes > 16 * 1024 * 1024; }

/// A row of A by a row of B, in a lane of sums. Rows of B follow each other in memory, and are read in that order: of
/// short rows from memory eight side by side took 1.4 to 2.3 times as long. If Ask, lines ahead are asked for: where a
/// row ends the next one goes on, which the processor does not know.
template <int Chains, bool Ask, class T, class B>
DFDX_INLINE lane<T> dot_row(Index k, T const* a, B const* b) {
  using V = lane<T>;
  constexpr int W = lane_size<T>;
  V sum[Chains];
  DFDX_UNROLL for (int i = 0; i < Chains; ++i) sum[i] = V(T(0));
  Index p = 0;
  for (; p + Chains * W <= k; p += Chains * W) DFDX_UNROLL for (int i = 0; i < Chains; ++i) {
      if constexpr (Ask) ask_to_read(b + p + i * W, rows_ahead);
      sum[i] = xsimd::fma(V::load_unaligned(a + p + i * W), load_wide<T>(b + p + i * W), sum[i]);
    }
  for (; p + W <= k; p += W) {
    if constexpr (Ask) ask_to_read(b + p, rows_ahead);
    sum[0] = xsimd::fma(V::load_unaligned(a + p), load_wide<T>(b + p), sum[0]);
  }
  if (p < k) {
    int const rest = static_cast<int>(k - p);
    sum[1] = xsimd::fma(load_n(a + p, rest), load_wide_n<T>(b + p, rest), sum[1]);
  }
  DFDX_UNROLL for (int step = Chains / 2; step > 0; step /= 2) {
    DFDX_UNROLL for (int i = 0; i < step; ++i) sum[i] = sum[i] + sum[i + step];
  }
  return sum[0];
}

/// A lane of which number i is the sum of lane i.
template <class T>
DFDX_INLINE lane<T> sum_each(lane<T> (&v)[lane<T>::size]) {
#if defined(__AVX512F__)
  // Halves are added and put side by side, then quarters, then what is in a quarter: half the work of a transpose.
  // (xsimd 13.2 sums floats of 512 bits in the wrong order.)
  if constexpr (std::is_same_v<T, float> && register_bytes<T> == 64) {
    __m512 quarter[4];
    DFDX_UNROLL for (int j = 0; j < 4; ++j) {
      auto const halves = [](__m512 x, __m512 y) {
        return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee));
      };
      __m512 const x = halves(v[j], v[4 + j]), y = halves(v[8 + j], v[12 + j]);
      quarter[j] = _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
    }
    auto const pairs = [](__m512 x, __m512 y) {
      return _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y)));
    };
    __m512d const x = pairs(quarter[0], quarter[1]), y = pairs(quarter[2], quarter[3]);
    return lane<T>(_mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(x, y))));
  }
#endif
  transpose_tile(v);
  DFDX_UNROLL for (int step = lane_size<T> / 2; step > 0; step /= 2) {
    DFDX_UNROLL for (int j = 0; j < step; ++j) v[j] = v[j] + v[j + step];
  }
  return v[0];
}

#if defined(__AVX512VL__) && defined(__FMA__)
/// The same for sixteen sums of half a register each: there is a step less to add up.
DFDX_INLINE lane<float> sum_each_half(half_lane<float> const (&v)[16]) {
  auto const halves = [](__m256 x, __m256 y) {
    return _mm256_add_ps(_mm256_blend_ps(x, y, 0xf0), _mm256_permute2f128_ps(x, y, 0x21));
  };
  auto const pairs = [](__m256 x, __m256 y) {
    return _mm256_castps_pd(_mm256_add_ps(_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y)));
  };
  __m256d eight[2];
  DFDX_UNROLL for (int h = 0; h < 2; ++h) {
    __m256 row[4];
    DFDX_UNROLL for (int j = 0; j < 4; ++j) row[j] = halves(v[8 * h + j], v[8 * h + 4 + j]);
    __m256d const x = pairs(row[0], row[1]), y = pairs(row[2], row[3]);
    eight[h] = _mm256_castps_pd(_mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),
                                              _mm256_castpd_ps(_mm256_unpackhi_pd(x, y))));
  }
  return lane<float>(_mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512(eight[0]), eight[1], 1)));
}
#endif

// Rows of at most so many numbers are summed in halves of registers. Where a register of 512 bits is worked on in two
// steps, as by Zen 4, that costs nothing; elsewhere what it saves is soon lost.
inline constexpr Index halves_up_to = on_zen4 ? 256 : 32;

// A matrix of so many bytes stays in a cache from one use to the next.
inline constexpr Index in_first_caches = 128 * 1024;

/// The first Count of W rows of a matrix with a vector: lanes of sums, then their sum. Rows are Col apart, and K long.
/// If Ahead, the rows after the next W are asked for on the way, in the order in which they lie in memory: W streams of
/// short rows are more than processors follow by themselves.
template <int Count, Index K, Index Col, bool Ahead, class T>
DFDX_INLINE lane<T> dot_rows(T const* x, T const* b) {
  constexpr bool in_halves = std::is_same_v<T, float> && half_size<T> == 8 && K <= halves_up_to;
  using V = std::conditional_t<in_halves, half_lane<T>, lane<T>>;
  constexpr int W = lane_size<T>, wide = static_cast<int>(V::size), rest = static_cast<int>(K % wide);
  V sum[W];
  DFDX_UNROLL for (int i = 0; i < W; ++i) sum[i] = V(T(0));
  for (Index p = 0; p + wide <= K; p += wide) {
    V const factor = V::load_unaligned(x + p);
    DFDX_UNROLL for (int i = 0; i < Count; ++i) {
      if (Ahead && i % (64 / sizeof(V)) == 0) ask_to_read(b + p * Count + i * wide, 2 * W * Col * sizeof(T));
      sum[i] = xsimd::fma(factor, V::load_unaligned(b + i * Col + p), sum[i]);
    }
  }
  if constexpr (rest > 0) {
    auto const last = [](T const* p) {
      if constexpr (in_halves) return load_half<rest>(p);
      else return load_n(p, rest);
    };
    V const factor = last(x + (K - rest));
    DFDX_UNROLL for (int i = 0; i < Count; ++i) sum[i] =
        xsimd::fma(factor, last(b + i * Col + (K - rest)), sum[i]);
  }
  if constexpr (in_halves) return sum_each_half(sum);
  else return sum_each<T>(sum);
}

/// A vector times the rows of a matrix that is small enough for the first caches: put_dots(lane, n, count) as for
/// gemm_dot, all extents known. W rows side by side hide how long an addition takes.
template <Index N, Index K, Index Col, class T, class Put>
DFDX_INLINE void gemv_static(T const* x, T const* b, Put const& put_dots) {
  constexpr int W = lane_size<T>, rest = static_cast<int>(N % W);
  constexpr Index bytes = N * K * static_cast<Index>(sizeof(T));
  constexpr bool ahead = bytes > in_first_caches && bytes <= 2 * in_first_caches;
  for (Index n = 0; n + W <= N; n += W) {
    if constexpr (on_zen5 && bytes > 48 * 1024) {  // what the first cache does not hold is best read in order
      lane<T> sum[W];
      DFDX_UNROLL for (int i = 0; i < W; ++i) sum[i] = dot_row<2, false>(K, x, b + (n + i) * Col);
      put_dots(sum_each<T>(sum), n, W);
    } else {
      put_dots(dot_rows<W, K, Col, ahead>(x, b + n * Col), n, W);
    }
  }
  if constexpr (rest > 0) put_dots(dot_rows<rest, K, Col, false>(x, b + (N - rest) * Col), N - rest, rest);
}

/// Four factors of a product, Step apart in memory: `at<I>` has the one at I in all lanes.
template <class T, Index Step>
struct FourFactors {
  T const* x;
  explicit FourFactors(T const* from) : x(from) {}
  template <int I>
  DFDX_INLINE lane<T> at() const {
    return lane<T>(x[I * Step]);
  }
};

// Zen's units for loads are busy with the matrix, and it has two that move numbers between lanes and do not multiply:
// there four are read at a time. Elsewhere the one unit that moves numbers is one of the two that multiply.
#if defined(__AVX__) && \
    (defined(__znver2__) || defined(__znver3__) || defined(__znver4__) || defined(__znver5__))
template <>
struct FourFactors<float, 1> {
#if defined(__AVX512F__)
  __m512 quarters;
  explicit FourFactors(float const* from) : quarters(_mm512_broadcast_f32x4(_mm_loadu_ps(from))) {}
  template <int I>
  DFDX_INLINE lane<float> at() const {
    return lane<float>(_mm512_permute_ps(quarters, I * 0x55));
  }
#else
  __m256 halves;
  explicit FourFactors(float const* from)
      : halves(_mm256_broadcast_ps(reinterpret_cast<__m128 const*>(from))) {}
  template <int I>
  DFDX_INLINE lane<float> at() const {
    return lane<float>(_mm256_permute_ps(halves, I * 0x55));
  }
#endif
};
#endif

/// A vector, its numbers XStep apart, times a matrix whose rows, Row apart, are contiguous and few enough for the
/// caches: put_sums(lane, n, count) as for gemm_row, all extents known. Each lane of sums has several chains, as many
/// as it takes to hide how long an addition takes.
template <Index N, Index K, Index XStep, Index Row, class T, class Put>
DFDX_INLINE void gemv_columns(T const* x, T const* b, Put const& put_sums) {
  using V = lane<T>;
  constexpr int W = lane_size<T>, most = tile_sums * 2 / 3;
  constexpr Index lanes = (N + W - 1) / W, panels = (lanes + most - 1) / most;
  constexpr Index each = (lanes + panels - 1) / panels, before = (lanes - 1) / each * each;
  constexpr int last = static_cast<int>(N - (lanes - 1) * W);
  auto const panel = [&]<int Lanes, int Last>(Index n) {
    constexpr int chains = Lanes >= 6 || K < 4 ? 1 : Lanes >= 3 ? 2 : 4;
    V sum[chains][Lanes];
    DFDX_UNROLL for (int c = 0; c < chains; ++c) {
      DFDX_UNROLL for (int j = 0; j < Lanes; ++j) sum[c][j] = V(T(0));
    }
    auto const add = [&](Index p, int c, V const factor) {
      T const* const row = b + p * Row + n;
      DFDX_UNROLL for (int j = 0; j < Lanes; ++j) {
        V const part =
            j < Lanes - 1 || Last == W ? V::load_unaligned(row + j * W) : load_n(row + j * W, Last);
        sum[c][j] = xsimd::fma(factor, part, sum[c][j]);
      }
    };
    for (Index p = 0; p + chains <= K; p += chains) {
      if constexpr (chains == 4) {
        FourFactors<T, XStep> const four(x + p * XStep);
        add(p, 0, four.template at<0>());
        add(p + 1, 1, four.template at<1>());
        add(p + 2, 2, four.template at<2>());
        add(p + 3, 3, four.template at<3>());
      } else {
        DFDX_UNROLL for (int c = 0; c < chains; ++c) add(p + c, c, V(x[(p + c) * XStep]));
      }
    }
    DFDX_UNROLL for (int c = 0; c < static_cast<int>(K % chains); ++c)
        add(K - K % chains + c, c, V(x[(K - K % chains + c) * XStep]));
    DFDX_UNROLL for (int step = chains / 2; step > 0; step /= 2) {
      DFDX_UNROLL for (int c = 0; c < step; ++c) DFDX_UNROLL for (int j = 0; j < Lanes; ++j) sum[c][j] =
          sum[c][j] + sum[c + step][j];
    }
    DFDX_UNROLL for (int j = 0; j < Lanes; ++j) put_sums(sum[0][j], n + j * W, j < Lanes - 1 ? W : Last);
  };
  for (Index j = 0; j < before; j += each) panel.template operator()<static_cast<int>(each), W>(j * W);
  panel.template operator()<static_cast<int>(lanes - before), last>(before * W);
}

/// Lanes over k: put_dots(lane of sums, m, n, count) for C[m, n .. n+count), rows of A and columns of B contiguous.
///
/// For few rows of A, where transposing B would cost more than the product; each row of B comes from memory once. B is
/// of type T, or of 16 bits. Columns of C do not depend on each other: any range of rows of B gives the same sums.
template <class T, class B, class Put>
void gemm_dot(Index m_count, Index n_count, Index k, T const* a, Index a_row, B const* b, Index b_col,
              Put const& put_dots) {
  using V = lane<T>;
  constexpr int W = lane_size<T>, together = tile_sums >= 24 ? 4 : 2, few = W < 4 ? W : 4;
  // What a tile of several rows saves in loads, short rows spend on its sums, which do not stay in registers.
  bool const by_tiles = m_count >= together && (k >= 512 || m_count > 4);
  bool const ask = asks_for_rows(n_count * b_col * static_cast<Index>(sizeof(B)));
  for (Index n = 0; n < n_count; n += W) {
    int const count = n_count - n < W ? static_cast<int>(n_count - n) : W;
    B const* const from = b + n * b_col;
    auto const left = [&](int g) { return g < count ? count - g : 1; };
    auto const first = [&](int g) { return from + (g < count ? g : count - 1) * b_col; };
    Index m = 0;
    for (; by_tiles && m + together <= m_count; m += together) {
      V sums[together][W];
      for (int g = 0; g < W; g += few)
        dot_tile<together, few>(k, a + m * a_row, a_row, first(g), b_col, left(g),
                                [&](int r, int i) -> V& { return sums[r][g + i]; });
      for (int r = 0; r < together; ++r) put_dots(sum_each<T>(sums[r]), m + r, n, count);
    }
    for (T const* row = a + m * a_row; m < m_count; ++m, row += a_row) {
      V sum[W];
      for (int i = 0; i < W; ++i)
        sum[i] = ask ? dot_row<4, true>(k, row, first(i)) : dot_row<4, false>(k, row, first(i));
      put_dots(sum_each<T>(sum), m, n, count);
    }
  }
}

/// Lanes over the output of a vector times a matrix: put_sums(lane, j, count) for sum_p x[p * x_step] b[p *
/// b_row + j].
///
/// Rows of b, of type T or of 16 bits, are contiguous. Eight at a time stream through once, in runs long enough for the
/// prefetchers.
template <class T, class B, class Put>
void gemm_row(Index n, Index k, T const* x, Index x_step, B const* b, Index b_row, Put const& put_sums) {
  using V = lane<T>;
  constexpr int W = lane_size<T>, group = 8;
  constexpr Index run = 64 * W;
  alignas(64) T sums[run];
  auto add = [&]<int Rows>(Index p, Index j0, Index columns) {
    V factor[Rows];
    DFDX_UNROLL for (int i = 0; i < Rows; ++i) factor[i] = V(x[(p + i) * x_step]);
    B const* const from = b + p * b_row + j0;
    auto lanes = [&](Index j, int count) {
      V sum = V::load_aligned(sums + j);
      DFDX_UNROLL for (int i = 0; i < Rows; ++i) {
        V const row =
            count == W ? load_wide<T>(from + i * b_row + j) : load_wide_n<T>(from + i * b_row + j, count);
        sum = xsimd::fma(factor[i], row, sum);
      }
      sum.store_aligned(sums + j);
    };
    Index j = 0;
    for (; j + W <= columns; j += W) lanes(j, W);
    if (j < columns) lanes(j, static_cast<int>(columns - j));
  };
  for (Index j0 = 0; j0 < n; j0 += run) {
    Index const columns = n - j0 < run ? n - j0 : run;
    for (Index j = 0; j < columns; j += W) V(T(0)).store_aligned(sums + j);
    Index p = 0;
    for (; p + group <= k; p += group) add.template operator()<group>(p, j0, columns);
    for (; p < k; ++p) add.template operator()<1>(p, j0, columns);
    for (Index j = 0; j < columns; j += W)
      put_sums(V::load_aligned(sums + j), j0 + j, columns - j < W ? static_cast<int>(columns - j) : W);
  }
}

/// A functor for gemm_dot and gemm_row: lanes that lie along the one column of C, one scalar at a time.
template <class T, class Epilogue>
struct down_column {
  T* c;
  Index c_row;
  Epilogue const& epilogue;
  void operator()(lane<T> sums, Index m, int count) const {
    alignas(64) T part[lane<T>::size];
    sums.store_aligned(part);
    for (int i = 0; i < count; ++i) c[(m + i) * c_row] = epilogue(part[i], m + i, Index(0));
  }
  void operator()(lane<T> sums, Index, Index m, int count) const { (*this)(sums, m, count); }
};

/// The same for lanes that lie along rows of C.
template <class T, class Epilogue>
struct along_row {
  T* c;
  Index c_row;
  Epilogue const& epilogue;
  void operator()(lane<T> sums, Index m, Index n, int count) const {
    finish_and_put(epilogue, sums, c + m * c_row + n, m, n, count);
  }
  void operator()(lane<T> sums, Index n, int count) const { (*this)(sums, Index(0), n, count); }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
