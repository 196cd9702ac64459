// SPDX-License-Identifier: BSL-1.0
// Random numbers on devices: those of core/random.hpp, which are functions of a key and of the place of each element.
#pragma once

#include <bit>
#include <cmath>

#include <dfdx/core/random.hpp>
#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/kernels/cuda/packs.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// fraction - the upper 53 of 64 bits, given in two words, as a number in [0, 1), less `behind`. Both halves are put
/// behind a leading one, which the sum takes away: exact, and cheaper than to convert 64 bits.
DFDX_INLINE double fraction(std::uint32_t high, std::uint32_t low, double behind = 0) {
  std::uint64_t const x = (std::uint64_t{high} << 32 | low) >> 11;
  auto const upper = std::bit_cast<double>(0x41e0000000000000u | x >> 32),  // 2^31 + those of 2^-21 and more
      lower = std::bit_cast<double>(0x3fe0000000000000u | (x & 0xffffffffu));
  return (upper - (0x1p31 + 0.5 + behind)) + lower;
}

// c_0 + c_1 x + ...
template <int N>
DFDX_INLINE double polynomial(double x, double const (&c)[N]) {
  double r = c[N - 1];
  DFDX_UNROLL for (int i = N - 2; i >= 0; --i) r = std::fma(r, x, c[i]);
  return r;
}

/// FastPair - what NormalPair computes with the words of a counter, each number within `bound` of it (or NaN, once in
/// 2^53), in a tenth of the time: by polynomials that agree with the functions at Chebyshev's nodes, and without
/// branches, so that several pairs are computed side by side.
struct FastPair {
  double even, odd, bound;

  DFDX_INLINE explicit FastPair(Bits const& b) {
    // The leading digits 2^-54 of numbers near 1 are rounded as NormalPair does.
    double const u = fraction(b.word[1], b.word[0]) + 0x1p-54;
    double const radius = square_root(minus_two_log(u));
    double const v = fraction(b.word[3], b.word[2], 0.5), t = std::fabs(v) - 0.25;
    even = radius * sine_of_turns(t);
    odd = radius * -std::copysign(sine_of_turns(0.25 - std::fabs(t)), v);
    bound = radius * 1e-14;
  }
  /// Whether a number so near is rounded to the same float.
  DFDX_INLINE bool is_safe(double x) const {
    return static_cast<float>(x - bound) == static_cast<float>(x + bound);
  }

 private:
  // What the device gives fast is corrected by the first terms of the series of its error, to an ulp or two.
  static DFDX_INLINE double reciprocal(double x) {
    double const r = fast_reciprocal(x), rest = std::fma(-x, r, 1.0);
    return std::fma(r, std::fma(rest, rest, rest), r);
  }
  static DFDX_INLINE double square_root(double x) {
    double const r = fast_inverse_root(x), rest = std::fma(-x, r * r, 1.0);
    return x * std::fma(r * rest, std::fma(0.375, rest, 0.5), r);
  }
  // -2 ln u for 0 < u <= 1: with u = m 2^e and m between sqrt(1/2) and sqrt(2), ln m is 2 artanh((m - 1) / (m + 1)).
  // The polynomial is within 7.1e-16 of 4 artanh(s) / s.
  static DFDX_INLINE double minus_two_log(double u) {
    auto const bits = std::bit_cast<std::int64_t>(u);
    std::int64_t const exponent = (bits - 0x3fe6a09e00000000) & -(std::int64_t{1} << 52);
    auto const m = std::bit_cast<double>(bits - exponent), s = (m - 1) * reciprocal(m + 1),
               e = static_cast<double>(static_cast<int>(exponent >> 52));
    constexpr double c[] = {4.000000000000001,   1.3333333333310584,  0.800000001234833, 0.5714283204220508,
                            0.44446869095783514, 0.36243868837577164, 0.3367532024855568};
    return std::fma(-2 * 0.69314718055994531, e, -(s * polynomial(s * s, c)));
  }
  // sin(2 pi t) for |t| <= 1/4; the polynomial is within 7.2e-16 of sin(2 pi t) / t.
  static DFDX_INLINE double sine_of_turns(double t) {
    constexpr double c[] = {6.283185307179585, -41.341702240398284, 81.60524927557982, -76.70585968962867,
                            42.05868995395094, -15.09450614073429,  3.817365633469135, -0.6925067010720717};
    return t * polynomial(t * t, c);
  }
};

/// DrawKernel - a thread for as many numbers as 16 bytes hold. Normal ones in f32 are computed fast; where it matters
/// for the last digit how near that is, which is seldom, as core/random.hpp does (kernels/random.hpp has more of it).
template <class Code, class T, bool Normal>
struct DrawKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<2>;
  static constexpr int at_once = 16 / static_cast<int>(sizeof(T));
  static constexpr index_t work(index_t const* s) {
    return (W::template count<2>(s) + at_once - 1) / at_once;
  }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    Key const key(static_cast<std::uint64_t>(*static_cast<std::int64_t const*>(x.base[1])));
    auto const stream = static_cast<std::uint64_t>(x.attrs.i[1]);
    auto* const to = static_cast<T*>(x.base[2]);
    index_t const n = W::template count<2>(s), all = work(s);
    bool const is_dense = W::template is_dense<2>(s), in_words = is_dense && detail::is_aligned<uint4>(to);
    for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
      index_t const first = t * at_once;
      Pack<T, at_once> y;
      draw(y, key, static_cast<std::uint64_t>(first), stream);
      if (in_words && first + at_once <= n) {
        *reinterpret_cast<uint4*>(to + first) = std::bit_cast<uint4>(y);
        continue;
      }
      DFDX_UNROLL for (int i = 0; i < at_once; ++i) {
        if (first + i < n) to[is_dense ? first + i : W::template offset<2, 0, rank>(first + i, s)] = y.x[i];
      }
    }
  }

 private:
  static DFDX_INLINE void draw(Pack<T, at_once>& y, Key key, std::uint64_t first, std::uint64_t stream) {
    if constexpr (!Normal) {
      constexpr double most = sizeof(T) == 4 ? 1 - 0x1p-24 : 1;  // the last that does not round to 1
      DFDX_UNROLL for (int i = 0; i < at_once; ++i) {
        Bits const b = philox(key, first + static_cast<std::uint64_t>(i), stream);
        double const u = fraction(b.word[1], b.word[0]);
        y.x[i] = static_cast<T>(u < most ? u : most);
      }
    } else if constexpr (sizeof(T) == 8) {
      NormalPair const two(key, first / 2, stream);
      y.x[0] = static_cast<T>(two.even()), y.x[1] = static_cast<T>(two.odd());
    } else {
      bool are_safe = true;
      DFDX_UNROLL for (int i = 0; i < at_once; i += 2) {
        FastPair const two(philox(key, (first + static_cast<std::uint64_t>(i)) / 2, stream));
        y.x[i] = static_cast<T>(two.even), y.x[i + 1] = static_cast<T>(two.odd);
        are_safe = are_safe && two.is_safe(two.even) && two.is_safe(two.odd);
      }
      for (int i = are_safe ? at_once : 0; i < at_once; i += 2) {
        NormalPair const two(key, (first + static_cast<std::uint64_t>(i)) / 2, stream);
        DFDX_UNROLL for (int k = 0; k < at_once; k += 2) {
          if (k == i) y.x[k] = static_cast<T>(two.even()), y.x[k + 1] = static_cast<T>(two.odd());
        }
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
