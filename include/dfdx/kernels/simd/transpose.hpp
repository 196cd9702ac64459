// SPDX-License-Identifier: BSL-1.0
//
// transpose - copies a strided matrix to its transpose, a square of lanes at a time, transposed in registers.
//
// Used to bring the operand of a matrix product that runs the wrong way into the order the product needs, and
// by copies of transposed views. It is not an in-place transpose, and it changes nothing but the order: no
// conversion. Types other than float and double take the plain loop.
#pragma once

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/partial.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

#if defined(__AVX512F__)
/// The last two steps of a 512-bit transpose: 4 x 4 blocks of 128 bits, whose rows are G registers apart.
template <class V, int G, class Shuffle88, class Shuffledd>
DFDX_INLINE void transpose_quarters(V* v, V const* u, Shuffle88 even, Shuffledd odd) {
  DFDX_UNROLL for (int j = 0; j < G; ++j) {
    V const a = even(u[j], u[G + j]), b = even(u[2 * G + j], u[3 * G + j]);
    V const c = odd(u[j], u[G + j]), d = odd(u[2 * G + j], u[3 * G + j]);
    v[j] = even(a, b);
    v[G + j] = even(c, d);
    v[2 * G + j] = odd(a, b);
    v[3 * G + j] = odd(c, d);
  }
}
#endif

// Every version below works in two stages. Inside each 128-bit quarter, unpack gathers the same column of 4
// floats (2 doubles) that lie in neighbouring rows; then whole quarters are moved to the register of their
// column.

template <class A>
DFDX_INLINE void transpose_tile(xsimd::batch<float, A>* v) {
  using V = xsimd::batch<float, A>;
  constexpr int W = static_cast<int>(V::size);
#if defined(__AVX512F__)
  if constexpr (sizeof(typename V::register_type) == 64) {
    V t[16], u[16];
    DFDX_UNROLL for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    DFDX_UNROLL for (int i = 0; i < 16; i += 4) {
      DFDX_UNROLL for (int j = 0; j < 2; ++j) {
        __m512d const lo = _mm512_castps_pd(t[i + j]), hi = _mm512_castps_pd(t[i + j + 2]);
        u[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi));
        u[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
      }
    }
    transpose_quarters<V, 4>(
        v, u, [](V a, V b) { return V(_mm512_shuffle_f32x4(a, b, 0x88)); },
        [](V a, V b) { return V(_mm512_shuffle_f32x4(a, b, 0xdd)); });
    return;
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof(typename V::register_type) == 32) {
    V t[8], u[8];
    DFDX_UNROLL for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    DFDX_UNROLL for (int i = 0; i < 8; i += 4) {
      DFDX_UNROLL for (int j = 0; j < 2; ++j) {
        __m256d const lo = _mm256_castps_pd(t[i + j]), hi = _mm256_castps_pd(t[i + j + 2]);
        u[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(lo, hi));
        u[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(lo, hi));
      }
    }
    DFDX_UNROLL for (int j = 0; j < 4; ++j) {
      v[j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x20);
      v[4 + j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x31);
    }
    return;
  }
#endif
  if constexpr (W == 4) {  // interleaving row i with row i + W/2, log2(W) times, transposes
    V const a = xsimd::zip_lo(v[0], v[2]), b = xsimd::zip_hi(v[0], v[2]);
    V const c = xsimd::zip_lo(v[1], v[3]), d = xsimd::zip_hi(v[1], v[3]);
    v[0] = xsimd::zip_lo(a, c);
    v[1] = xsimd::zip_hi(a, c);
    v[2] = xsimd::zip_lo(b, d);
    v[3] = xsimd::zip_hi(b, d);
  } else if constexpr (sizeof(typename V::register_type) < 32) {
    xsimd::transpose(v, v + W);
  }
}

template <class A>
DFDX_INLINE void transpose_tile(xsimd::batch<double, A>* v) {
  using V = xsimd::batch<double, A>;
  constexpr int W = static_cast<int>(V::size);
#if defined(__AVX512F__)
  if constexpr (sizeof(typename V::register_type) == 64) {
    V t[8];
    DFDX_UNROLL for (int i = 0; i < 8; i += 2) {
      t[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);
      t[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);
    }
    transpose_quarters<V, 2>(
        v, t, [](V a, V b) { return V(_mm512_shuffle_f64x2(a, b, 0x88)); },
        [](V a, V b) { return V(_mm512_shuffle_f64x2(a, b, 0xdd)); });
    return;
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof(typename V::register_type) == 32) {
    V t[4];
    DFDX_UNROLL for (int i = 0; i < 4; i += 2) {
      t[i] = _mm256_unpacklo_pd(v[i], v[i + 1]);
      t[i + 1] = _mm256_unpackhi_pd(v[i], v[i + 1]);
    }
    DFDX_UNROLL for (int j = 0; j < 2; ++j) {
      v[j] = _mm256_permute2f128_pd(t[j], t[2 + j], 0x20);
      v[2 + j] = _mm256_permute2f128_pd(t[j], t[2 + j], 0x31);
    }
    return;
  }
#endif
  if constexpr (W == 2) {
    V const a = v[0];
    v[0] = xsimd::zip_lo(a, v[1]);
    v[1] = xsimd::zip_hi(a, v[1]);
  } else if constexpr (sizeof(typename V::register_type) < 32) {
    xsimd::transpose(v, v + W);
  }
}

template <class A>
DFDX_INLINE void transpose_tile(xsimd::batch<std::int32_t, A>* v) {
  constexpr int W = static_cast<int>(xsimd::batch<std::int32_t, A>::size);
  xsimd::batch<float, A> square[W];
  DFDX_UNROLL for (int i = 0; i < W; ++i) square[i] = xsimd::bitwise_cast<float>(v[i]);
  transpose_tile(square);
  DFDX_UNROLL for (int i = 0; i < W; ++i) v[i] = xsimd::bitwise_cast<std::int32_t>(square[i]);
}

/// One whole square: dst[c * dst_row + r] = src[r * src_row + c] for r, c in [0, W). If Streams it is stored past the
/// caches, in whole registers.
template <bool Streams = false, class T>
DFDX_INLINE void transpose_square(T const* src, std::int64_t src_row, T* dst, std::int64_t dst_row) {
  constexpr int W = lane_size<T>;
  lane<T> v[W];
  DFDX_UNROLL for (int r = 0; r < W; ++r) v[r] = lane<T>::load_unaligned(src + r * src_row);
  transpose_tile(v);
  DFDX_UNROLL for (int c = 0; c < W; ++c) {
    if constexpr (Streams) stream(dst + c * dst_row, v[c]);
    else v[c].store_unaligned(dst + c * dst_row);
  }
}

/// A square of which only rows x columns exist. Rows that do not exist are read as copies of the last one
/// that does, so that no load needs a branch; they end in lanes that are not stored, or are padding.
template <class T>
void transpose_part(T const* src, std::int64_t src_row, int rows, int columns, T* dst, std::int64_t dst_row,
                    int store) {
  constexpr int W = lane_size<T>;
  lane<T> v[W];
  DFDX_UNROLL for (int r = 0; r < W; ++r) v[r] = load_n(src + (r < rows ? r : rows - 1) * src_row, columns);
  transpose_tile(v);
  DFDX_UNROLL for (int c = 0; c < W; ++c) if (c < columns) store_n(dst + c * dst_row, v[c], store);
}

}  // namespace detail

/// transpose - dst[c * dst_row + r] = src[r * src_row + c] for r < rows, c < columns; the two do not overlap.
///
/// Padded: each row of dst has room for a multiple of lane_size<T> elements, and the excess may be written
/// (with copies of valid elements). Otherwise nothing outside the two matrices is touched.
template <bool Padded = false, class T>
void transpose(T const* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns, T* dst,
               std::int64_t dst_row) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    constexpr int W = lane_size<T>;
    for (std::int64_t r = 0; r < rows; r += W) {
      int const height = rows - r < W ? static_cast<int>(rows - r) : W;
      for (std::int64_t c = 0; c < columns; c += W) {
        int const width = columns - c < W ? static_cast<int>(columns - c) : W;
        T const* const from = src + r * src_row + c;
        T* const to = dst + c * dst_row + r;
        if (height == W && width == W) detail::transpose_square(from, src_row, to, dst_row);
        else detail::transpose_part(from, src_row, height, width, to, dst_row, Padded ? W : height);
      }
    }
  } else {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) dst[c * dst_row + r] = src[r * src_row + c];
  }
}

/// transpose_past - the same for a destination so large that it is stored past the caches; where that cannot be, as
/// transpose does. The source is read in order, line by line.
template <class T>
void transpose_past(T const* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns, T* dst,
                    std::int64_t dst_row) {
  constexpr std::int64_t W = lane_size<T>, line = 64 / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t beside = W < line ? line / W : 1;  // squares that make a line of the destination
  bool const aligned = reinterpret_cast<std::uintptr_t>(dst) % 64 == 0 && dst_row % line == 0;
  std::int64_t const whole_rows = aligned && detail::has_streams ? rows / line * line : 0,
                     whole_columns = columns / W * W;
  for (std::int64_t r = 0; r < whole_rows; r += line)
    for (std::int64_t c = 0; c < whole_columns; c += W)
      for (std::int64_t h = 0; h < beside; ++h)
        detail::transpose_square<true>(src + (r + h * W) * src_row + c, src_row,
                                       dst + c * dst_row + r + h * W, dst_row);
  if (whole_rows > 0) detail::end_streams();
  transpose(src + whole_columns, src_row, whole_rows, columns - whole_columns, dst + whole_columns * dst_row,
            dst_row);
  transpose(src + whole_rows * src_row, src_row, rows - whole_rows, columns, dst + whole_rows, dst_row);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
