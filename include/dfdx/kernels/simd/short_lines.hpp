// SPDX-License-Identifier: BSL-1.0
//
// short_lines - windows of three lines of three over planes whose lines are no longer than a lane of numbers: each line
// of the input is read once, and what is beside each number is brought there within the register.
#pragma once

#include <dfdx/core/window.hpp>
#include <dfdx/kernels/simd/partial.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// Shift - `count` numbers of a line of n, from number `by` on (or so many before it), with zeros for what is not of
/// the line, and behind them.
#if defined(__AVX512F__)
template <class E>
inline constexpr bool has_shifts = sizeof(E) == 4 || sizeof(E) == 8;
template <class E>
class Shift {
  __m512i from_;
  unsigned there_ = 0;

 public:
  Shift(int by, int n, int count) {
    constexpr int W = lane_size<E>;
    using Whole = std::conditional_t<sizeof(E) == 4, std::int32_t, std::int64_t>;
    alignas(64) Whole from[W];
    for (int i = 0; i < W; ++i) {
      from[i] = (i + by) & (W - 1);
      if (i < count && i + by >= 0 && i + by < n) there_ |= 1u << i;
    }
    from_ = _mm512_load_si512(from);
  }
  DFDX_INLINE lane<E> operator()(lane<E> v) const {
    if constexpr (sizeof(E) == 4)
      return _mm512_maskz_permutexvar_ps(static_cast<__mmask16>(there_), from_, v);
    else return _mm512_maskz_permutexvar_pd(static_cast<__mmask8>(there_), from_, v);
  }
};
#elif defined(__AVX2__)
template <class E>
inline constexpr bool has_shifts = sizeof(E) == 4;
template <class E>
class Shift {
  __m256i from_;
  __m256 there_;

 public:
  Shift(int by, int n, int count) {
    alignas(32) std::int32_t from[8], there[8];
    for (int i = 0; i < 8; ++i) {
      from[i] = (i + by) & 7;
      there[i] = i < count && i + by >= 0 && i + by < n ? -1 : 0;
    }
    from_ = _mm256_load_si256(reinterpret_cast<__m256i const*>(from));
    there_ = _mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<__m256i const*>(there)));
  }
  DFDX_INLINE lane<E> operator()(lane<E> v) const {
    if constexpr (!has_shifts<E>) return v;
    else return _mm256_and_ps(_mm256_permutevar8x32_ps(v, from_), there_);
  }
};
#else
template <class E>
inline constexpr bool has_shifts = false;
#endif

/// ShortLines - one plane at a time: x[0] lines of x[1] numbers become y[0] lines of y[1], with `before` lines, and
/// numbers of a line, of zeros before the first.
template <class E>
class ShortLines {
 public:
  /// Whether planes of a geometry are such.
  static bool fits(ConvGeometry const& g) {
    bool r = has_shifts<E> && g.in == 1 && g.out == 1 && g.x[0] == 1 && g.y[0] == 1 && g.w[0].size == 1 &&
             g.w[0].before == 0 && g.x[2] <= W && g.y[2] <= W && g.x[2] >= W / 2;
    for (int i = 1; i < 3; ++i) r = r && g.w[i].size == 3 && g.w[i].stride == 1 && g.w[i].dilation == 1;
    return r && g.w[2].before <= 2;
  }

#if defined(__AVX2__)
  explicit ShortLines(ConvGeometry const& g)
      : lines_{g.x[1], g.y[1]},
        length_{static_cast<int>(g.x[2]), static_cast<int>(g.y[2])},
        before_(g.w[1].before),
        shift_{shift_of(g, 0), shift_of(g, 1), shift_of(g, 2)} {}

  /// y = the sums over windows of x times w.
  void forward(E const* x, E const* w, E* y) const {
    V factor[9];
    DFDX_UNROLL for (int k = 0; k < 9; ++k) factor[k] = V(w[k]);
    V first(E(0)),
        second(E(0));  // sums of the line that sees no line yet but this one, and of the one before
    index_t const out = length_[1], size = lines_[1] * out;
    for (index_t t = 0; t < lines_[1] + 2; ++t) {
      index_t const i = t - before_;
      V last = second;
      second = first;
      first = V(E(0));
      if (i >= 0 && i < lines_[0]) {
        V v[3];
        read(x + i * length_[0], v);
        // Sums of a line first: those of three lines are added up besides.
        V part[3];
        DFDX_UNROLL for (int k = 0; k < 3; ++k) part[k] =
            xsimd::fma(factor[3 * k], v[0], xsimd::fma(factor[3 * k + 1], v[1], factor[3 * k + 2] * v[2]));
        first = part[0];
        second = second + part[1];
        last = last + part[2];
      }
      if (t < 2) continue;
      E* const to = y + (t - 2) * out;
      // What is beyond a line is written over by those after it.
      if ((t - 2) * out + W <= size) last.store_unaligned(to);
      else store_n(to, last, length_[1]);
    }
  }

  /// sums[k] += lanes of y times what element k of its windows is.
  void weight(E const* x, E const* y, E* sums) const {
    V sum[9];
    DFDX_UNROLL for (int k = 0; k < 9; ++k) sum[k] = V::load_aligned(sums + k * W);
    V before(E(0)), earlier(E(0));
    for (index_t t = 0; t < lines_[1] + 2; ++t) {
      index_t const i = t - before_;
      V const here = t < lines_[1] ? load_n(y + t * length_[1], length_[1]) : V(E(0));
      if (t < lines_[1]) ask_to_read(y + t * length_[1], 4 * 1024);
      if (i >= 0 && i < lines_[0]) {
        V v[3];
        read(x + i * length_[0], v);
        // Lines of y that are not there have no products, of which x might make NaN.
        auto const add = [&](int first, V const& line) DFDX_INLINE_LAMBDA {
          DFDX_UNROLL for (int k = 0; k < 3; ++k) sum[first + k] = xsimd::fma(v[k], line, sum[first + k]);
        };
        if (t < lines_[1]) add(0, here);
        if (t >= 1 && t <= lines_[1]) add(3, before);
        if (t >= 2) add(6, earlier);
      }
      earlier = before;
      before = here;
    }
    DFDX_UNROLL for (int k = 0; k < 9; ++k) sum[k].store_aligned(sums + k * W);
  }

 private:
  using V = lane<E>;

  static Shift<E> shift_of(ConvGeometry const& g, int k) {
    return Shift<E>(k - static_cast<int>(g.w[2].before), static_cast<int>(g.x[2]), static_cast<int>(g.y[2]));
  }
  DFDX_INLINE void read(E const* line, V (&v)[3]) const {
    ask_to_read(line, 4 * 1024);  // planes follow each other
    V const all = load_n(line, length_[0]);
    DFDX_UNROLL for (int k = 0; k < 3; ++k) v[k] = shift_[k](all);
  }

  index_t lines_[2];
  int length_[2];
  index_t before_;
  Shift<E> shift_[3];
#else
  explicit ShortLines(ConvGeometry const&) {}
  void forward(E const*, E const*, E*) const {}
  void weight(E const*, E const*, E*) const {}
#endif

 private:
  static constexpr int W = lane_size<E>;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
