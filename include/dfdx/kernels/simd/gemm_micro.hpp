// SPDX-License-Identifier: BSL-1.0
//
// gemm_micro - the innermost part of every matrix product: one tile of C held in registers, and epilogues.
//
// A tile is R rows by C lanes; each step of k loads C lanes of B, broadcasts R elements of A, and does R * C
// fused multiply-adds. It reads its operands through compile-time strides and hands the finished lanes to a
// functor. It does not know which matrix it works for, what is packed, or where the result goes: gemm_small
// and gemm_blocked do.
#pragma once

#include <cstdint>

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/partial.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// store_sum - the epilogue that stores the product as it is.
struct store_sum {
  static constexpr bool reads_c = false;
  template <class V>
  V operator()(V sum, std::int64_t, std::int64_t) const {
    return sum;
  }
  template <class V>
  V operator()(V sum, std::int64_t, std::int64_t, int) const {
    return sum;
  }
};

#if !defined(__CUDACC__)  // the name above is needed in every compiler

/// add_scaled - the epilogue C += scale * A B, and, with old another matrix, C = old + scale * A B.
template <class T>
struct add_scaled {
  T scale;
  T const* old;
  std::int64_t old_row;

  lane<T> operator()(lane<T> sum, std::int64_t m, std::int64_t n) const {
    return xsimd::fma(lane<T>(scale), sum, lane<T>::load_unaligned(old + m * old_row + n));
  }
  lane<T> operator()(lane<T> sum, std::int64_t m, std::int64_t n, int count) const {
    return xsimd::fma(lane<T>(scale), sum, load_n(old + m * old_row + n, count));
  }
  T operator()(T sum, std::int64_t m, std::int64_t n) const { return old[m * old_row + n] + scale * sum; }
};

namespace detail {

using Index = std::int64_t;

/// Whether the epilogue takes part of a lane: (lane, m, n, count).
template <class T, class Epilogue>
inline constexpr bool takes_part = requires(Epilogue const& e, lane<T> v) { e(v, Index(0), Index(0), 1); };

/// Whether the epilogue says that it is too much code to be written out for every register of a tile.
template <class Epilogue>
constexpr bool is_heavy() {
  if constexpr (requires { Epilogue::heavy; }) return Epilogue::heavy;
  else return false;
}

// An epilogue runs in two steps, finished() for every lane of a tile and then put() for every lane: a lane of
// C that is read just after its neighbour was partly written would wait for that write to reach the cache.

/// What to store for one lane of sums, of which `count` exist; part of a lane may have to wait for put().
template <class T, class Epilogue>
DFDX_INLINE lane<T> finished(Epilogue const& epilogue, lane<T> sum, Index m, Index n, int count) {
  if (count == lane_size<T>) return epilogue(sum, m, n);
  if constexpr (takes_part<T, Epilogue>) return epilogue(sum, m, n, count);
  else return sum;
}

/// Stores what finished() gave.
template <class T, class Epilogue>
DFDX_INLINE void put(Epilogue const& epilogue, lane<T> value, T* c, Index m, Index n, int count) {
  if (count == lane_size<T>) {
    value.store_unaligned(c);
  } else if constexpr (takes_part<T, Epilogue>) {
    store_n(c, value, count);
  } else {
    alignas(64) T part[lane<T>::size];
    value.store_aligned(part);
    for (int i = 0; i < count; ++i) c[i] = epilogue(part[i], m, n + i);
  }
}

/// Both steps for a lane that stands alone.
template <class T, class Epilogue>
DFDX_INLINE void finish_and_put(Epilogue const& epilogue, lane<T> sum, T* c, Index m, Index n, int count) {
  put(epilogue, finished(epilogue, sum, m, n, count), c, m, n, count);
}

/// How much of the register file a tile may use. 32 registers: 24 sums leave room for 3 lanes of B and 1 of
/// A. 16 registers: 12 sums, or 8 where a multiply-add is two instructions and needs a place for the product.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int tile_sums = 24, tile_rows = 8;
#elif defined(__FMA__)
inline constexpr int tile_sums = 12, tile_rows = 4;
#else
inline constexpr int tile_sums = 8, tile_rows = 4;
#endif

/// Steps of a sum that are one turn of a loop of windows: what counts them takes the place of multiply-adds where both
/// go through the same ports (Intel: two steps took 7% less time). Few registers have no place for two.
inline constexpr int tile_turn = tile_sums > 8 ? 2 : 1;

// A tail of at most half a 512-bit lane is computed in 256 bits: processors that split a 512-bit operation in
// two (Zen 4) do two of them at once, and no processor does fewer.
#if defined(__AVX512VL__) && defined(__FMA__)
template <class T>
inline constexpr int half_size = lane_size<T> / 2;
template <class T>
using half_lane = xsimd::batch<T, xsimd::fma3<xsimd::avx2>>;

template <int N>
DFDX_INLINE half_lane<float> load_half(float const* p) {
  if constexpr (N == 8) return half_lane<float>::load_unaligned(p);
  else return half_lane<float>(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << N) - 1u), p));
}
template <int N>
DFDX_INLINE half_lane<double> load_half(double const* p) {
  if constexpr (N == 4) return half_lane<double>::load_unaligned(p);
  else return half_lane<double>(_mm256_maskz_loadu_pd(static_cast<__mmask8>((1u << N) - 1u), p));
}
DFDX_INLINE lane<float> widen(half_lane<float> v) { return lane<float>(_mm512_zextps256_ps512(v)); }
DFDX_INLINE lane<double> widen(half_lane<double> v) { return lane<double>(_mm512_zextpd256_pd512(v)); }
#else
template <class T>
inline constexpr int half_size = 0;
template <class T>
using half_lane = lane<T>;
template <int N, class T>
DFDX_INLINE lane<T> load_half(T const* p) {
  return load_n(p, N);
}
template <class V>
DFDX_INLINE V widen(V v) {
  return v;
}
#endif

/// A heavy epilogue over the sums of a tile, in memory. Not inlined: its constants would take registers from the
/// product, whose sums would go through memory in every step.
template <class T, int R, int C, class Out>
[[gnu::noinline]] void finish_sums(T* sums, Out const& out) {
  constexpr int W = lane_size<T>;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) {
      T* const at = sums + (r * C + c) * W;
      out.finish(lane<T>::load_aligned(at), r, c).store_aligned(at);
    }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) out.store(lane<T>::load_aligned(sums + (r * C + c) * W), r, c);
}

/// Nothing else is done while a tile is computed.
struct nothing_ahead {
  DFDX_INLINE void step() const {}
};

/// A pointer of which the compiler knows nothing: multiples of a stride that is added to it, each with what is added to
/// those, would fill the registers and more.
template <class P>
DFDX_INLINE void as_it_is([[maybe_unused]] P& pointer) {
#if defined(__GNUC__)
  asm("" : "+r"(pointer));
#endif
}

/// One tile: out.finish(sum, r, c) for each lane of A[r, :] B[:, c * W ...], then out.store(value, r, c).
///
/// A[r, p] lies at a[r * ARow + p * ACol] (a stride of -1 is given at run time), lane c of B's row p at
/// b[p * BRow + c * W]. Of the last lane only Last elements are read; the others give sums that mean nothing.
/// `out` travels by value and is inlined: through a reference it would be read again after every store.
/// Unroll steps of k are one turn of the loop (four took 6% less time of a product of 1024, see tile_turn). In each
/// ahead.step() is called: a prefetch there is free, where a row of them would fill the queue of misses and wait.
template <class T, int R, int C, int Last, Index ARow, Index ACol, Index BRow, int Unroll = 1, class Out,
          class Ahead = nothing_ahead>
DFDX_INLINE void gemm_tile(T const* DFDX_RESTRICT a, T const* DFDX_RESTRICT b, Index k, Out const out,
                           Index a_row_at_run_time = 0, Index a_col_at_run_time = 0,
                           Index b_row_at_run_time = 0, Ahead ahead = {}) {
  using V = lane<T>;
  constexpr int W = lane_size<T>;
  constexpr bool half = Last <= half_size<T>;
  constexpr int whole = C - half;  // lanes of full width
  Index const a_row = ARow >= 0 ? ARow : a_row_at_run_time, a_col = ACol >= 0 ? ACol : a_col_at_run_time;
  Index const b_row = BRow >= 0 ? BRow : b_row_at_run_time;
  V sum[R][whole > 0 ? whole : 1];
  [[maybe_unused]] half_lane<T> half_sum[R];
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int c = 0; c < whole; ++c) sum[r][c] = V(T(0));
    if constexpr (half) half_sum[r] = half_lane<T>(T(0));
  }
  // What the epilogue reads is far away, and arrives while the sums are computed.
  if constexpr (Out::heavy) out.prefetch(R);
  // In a long turn rows of A at run time have a pointer each.
  constexpr bool is_long = Unroll > 1, row_pointers = is_long && ARow < 0 && ACol >= 0;
  T const* a_rows[row_pointers ? R : 1];
  DFDX_UNROLL for (int r = 0; r < (row_pointers ? R : 1); ++r) a_rows[r] = a + r * a_row;
  auto const element = [&](int r, Index u) DFDX_INLINE_LAMBDA {
    if constexpr (row_pointers) return a_rows[r] + u;
    else return a_rows[0] + r * a_row + u;
  };
  auto const advance = [&](Index n) DFDX_INLINE_LAMBDA {
    DFDX_UNROLL for (int r = 0; r < (row_pointers ? R : 1); ++r) {
      a_rows[r] += n * a_col;
      if constexpr (is_long && (ARow < 0 || ACol < 0)) as_it_is(a_rows[r]);
    }
  };
  auto const step = [&](Index u) DFDX_INLINE_LAMBDA {
    V row[whole > 0 ? whole : 1];
    [[maybe_unused]] half_lane<T> half_row;
    DFDX_UNROLL for (int c = 0; c < whole; ++c) {
      if (c == C - 1) row[c] = load_n(b + c * W, Last);
      else row[c] = V::load_unaligned(b + c * W);
    }
    if constexpr (half) half_row = load_half<Last>(b + whole * W);
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      T const x = *element(r, u);
      if constexpr (whole > 0) {
        V const broadcast(x);
        DFDX_UNROLL for (int c = 0; c < whole; ++c) sum[r][c] = xsimd::fma(broadcast, row[c], sum[r][c]);
      }
      if constexpr (half) half_sum[r] = xsimd::fma(half_lane<T>(x), half_row, half_sum[r]);
    }
  };
  Index p = 0;
  for (; p + Unroll <= k; p += Unroll) {
    ahead.step();
    DFDX_UNROLL for (int u = 0; u < Unroll; ++u) {
      step(ACol >= 0 ? u * ACol : 0);
      b += b_row;
      if constexpr (is_long && BRow < 0) as_it_is(b);
      if constexpr (ACol < 0) advance(1);
    }
    if constexpr (ACol >= 0) advance(Unroll);
  }
  if constexpr (is_long)
    for (; p < k; ++p, advance(1), b += b_row) step(0);
  if constexpr (Out::heavy) {
    // From memory, in a loop: in registers the epilogue would be written out for each of them.
    alignas(64) T sums[R * C * W];
    DFDX_UNROLL for (int r = 0; r < R; ++r) {
      DFDX_UNROLL for (int c = 0; c < whole; ++c) sum[r][c].store_aligned(sums + (r * C + c) * W);
      if constexpr (half) widen(half_sum[r]).store_aligned(sums + (r * C + whole) * W);
    }
    return finish_sums<T, R, C>(sums, out);
  }
  V last[R];  // the last lane of each row when it was computed in half a register
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int c = 0; c < whole; ++c) sum[r][c] = out.finish(sum[r][c], r, c);
    if constexpr (half) last[r] = out.finish(widen(half_sum[r]), r, whole);
  }
  DFDX_UNROLL for (int r = 0; r < R; ++r) {
    DFDX_UNROLL for (int c = 0; c < whole; ++c) out.store(sum[r][c], r, c);
    if constexpr (half) out.store(last[r], r, whole);
  }
}

}  // namespace detail

#endif  // !__CUDACC__

}  // namespace dfdx::kernels::inline DFDX_TARGET
