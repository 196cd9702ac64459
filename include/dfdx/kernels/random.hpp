// SPDX-License-Identifier: BSL-1.0
// Many numbers of a key's streams at once (core/random.hpp): the same numbers, each lane of 64 bits computing one
// counter. Philox multiplies words of 32 bits, and a lane is as wide as their product.
#pragma once

#include <algorithm>
#include <cstring>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/random.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/kernels/box_muller.hpp>
#include <dfdx/kernels/rvv/random.hpp>
#include <dfdx/kernels/simd/functions.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// How many numbers are made at a time: whole lanes of every target.
inline constexpr index_t drawn_at_once = 64;

#if !defined(__CUDACC__)

using Words = xsimd::batch<std::uint64_t>;

/// word_product - the products of the low halves of lanes.
template <class X>
DFDX_INLINE X word_product(X const& x, X const& y) {
  [[maybe_unused]] constexpr std::size_t bytes = register_bytes<std::uint64_t>;
#if defined(__AVX512F__)
  if constexpr (bytes == 64) return X(_mm512_mul_epu32(x, y));
#endif
#if defined(__AVX2__)
  if constexpr (bytes == 32) return X(_mm256_mul_epu32(x, y));
#endif
#if defined(__SSE2__)
  if constexpr (bytes == 16) return X(_mm_mul_epu32(x, y));
#endif
  X const low(0xffffffffu);
  return (x & low) * (y & low);
}

/// PhiloxLanes - philox of as many counters as a lane has places. Only the low halves of the words count: what is left
/// in the upper ones never reaches them.
struct PhiloxLanes {
  std::uint64_t keys[2][10];  // of each round
  std::uint64_t stream;

  PhiloxLanes(Key key, std::uint64_t stream_number) : stream(stream_number) {
    auto k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
      keys[0][round] = k0, keys[1][round] = k1;
  }

  // W is Words. (Templates, here and below: what they need of xsimd is compiled by programs that draw.)
  template <class W>
  DFDX_INLINE void draw(W const& counter, W (&c)[4]) const {
    W const first(0xD2511F53u), second(0xCD9E8D57u);
    c[0] = counter, c[1] = counter >> 32, c[2] = W(stream), c[3] = W(stream >> 32);
    DFDX_UNROLL for (int round = 0; round < 10; ++round) {
      W const a = word_product(c[0], first), b = word_product(c[2], second);
      c[0] = (b >> 32) ^ c[1] ^ W(keys[0][round]);
      c[2] = (a >> 32) ^ c[3] ^ W(keys[1][round]);
      c[1] = b;
      c[3] = a;
    }
  }
};

/// upper_bits - the upper 53 of 64 bits, given in two words, as a whole number.
template <class W>
DFDX_INLINE lane<double> upper_bits(W const& high, W const& low) {
  using X = xsimd::batch<double, typename W::arch_type>;
  W const word(0xffffffffu), exponent(0x4330000000000000u);  // 2^52, whose last place is 1
  auto const whole = [&](W const& w) { return xsimd::bitwise_cast<double>(w | exponent) - X(0x1p52); };
  return whole(high & word) * X(0x1p21) + whole((low & word) >> 11);
}

/// f(i, words) for the words at counters first + i ... of a stream, `count` in all, lane by lane.
template <class F>
DFDX_INLINE void draw_block(PhiloxLanes const& philox, std::uint64_t first, index_t count, F const& f) {
  constexpr int W = lane_size<double>;
  alignas(64) std::uint64_t counters[W];
  for (int i = 0; i < W; ++i) counters[i] = first + static_cast<std::uint64_t>(i);
  Words counter = Words::load_aligned(counters);
  for (index_t i = 0; i < count; i += W, counter = counter + Words(static_cast<std::uint64_t>(W))) {
    Words words[4];
    philox.draw(counter, words);
    f(i, words);
  }
}

template <int = 0>
void uniform_block(PhiloxLanes const& philox, std::uint64_t first, double* y) {
#if defined(DFDX_RVV)
  rvv::uniform_numbers(philox, first, y, drawn_at_once);
#else
  draw_block(philox, first, drawn_at_once, [&](index_t i, Words const(&w)[4]) {
    (upper_bits(w[1], w[0]) * lane<double>(0x1p-53)).store_aligned(y + i);
  });
#endif
}

/// Within normal_bound of normal_at, from number `first` on, which is even: the series end below 1e-13, and no number
/// is beyond 9.
inline constexpr double normal_bound = 2e-12;
template <int = 0>
void normal_block(PhiloxLanes const& philox, std::uint64_t first, double* y) {
#if defined(DFDX_RVV)
  rvv::normal_numbers(philox, first / 2, y, drawn_at_once / 2);
#else
  using X = lane<double>;
  constexpr index_t pairs = drawn_at_once / 2;
  alignas(64) double even[pairs], odd[pairs];
  draw_block(philox, first / 2, pairs, [&](index_t i, Words const(&w)[4]) {
    X const u = (upper_bits(w[1], w[0]) + X(0.5)) * X(0x1p-53), v = upper_bits(w[3], w[2]) * X(0x1p-53);
    X const radius = xsimd::sqrt(minus_two_log(u));
    (radius * turn_cosine(v)).store_aligned(even + i);
    (radius * turn_sine(v)).store_aligned(odd + i);
  });
  for (index_t i = 0; i < pairs; ++i) y[2 * i] = even[i], y[2 * i + 1] = odd[i];
#endif
}

#endif

}  // namespace detail

namespace detail {

// Numbers `first`, a multiple of drawn_at_once, up to `end` of a stream.
template <class T>
void uniform_part(Key key, std::uint64_t stream, T* y, index_t first, index_t end, double most) {
  index_t i = first;
#if !defined(__CUDACC__)
  PhiloxLanes const philox(key, stream);
  alignas(64) double block[drawn_at_once];
  for (; i < end; i += drawn_at_once) {
    uniform_block(philox, static_cast<std::uint64_t>(i), block);
    for (double& u : block) u = u < most ? u : most;
    std::copy_n(block, end - i < drawn_at_once ? end - i : drawn_at_once, y + i);
  }
#endif
  for (; i < end; ++i) {
    double const u = uniform_at(key, static_cast<std::uint64_t>(i), stream);
    y[i] = static_cast<T>(u < most ? u : most);
  }
}

// The same of normal numbers.
template <int = 0>
void normal_part(Key key, std::uint64_t stream, float* y, index_t first, index_t end) {
  index_t i = first;
#if !defined(__CUDACC__)
  constexpr index_t size = drawn_at_once;
  PhiloxLanes const philox(key, stream);
  alignas(64) double block[size];
  alignas(64) float below[size], above[size];
  for (; i < end; i += size) {
    normal_block(philox, static_cast<std::uint64_t>(i), block);
    for (index_t k = 0; k < size; ++k) below[k] = static_cast<float>(block[k] - normal_bound);
    for (index_t k = 0; k < size; ++k) above[k] = static_cast<float>(block[k] + normal_bound);
    if (std::memcmp(below, above, sizeof below) != 0)
      for (index_t k = 0; k < size; ++k)
        if (below[k] != above[k])
          below[k] = static_cast<float>(normal_at(key, static_cast<std::uint64_t>(i + k), stream));
    std::memcpy(y + i, below, static_cast<std::size_t>(end - i < size ? end - i : size) * sizeof(float));
  }
#endif
  for (; i < end; ++i) y[i] = static_cast<float>(normal_at(key, static_cast<std::uint64_t>(i), stream));
}
template <int = 0>
void normal_part(Key key, std::uint64_t stream, double* y, index_t first, index_t end) {
  for (index_t i = first; i < end; ++i) y[i] = normal_at(key, static_cast<std::uint64_t>(i), stream);
}

// The two halves of 64 bits at counters `first` and on, drawn_at_once in all.
class WordBlocks {
 public:
  std::uint64_t high[drawn_at_once], low[drawn_at_once];

#if defined(__CUDACC__) || defined(DFDX_RVV)
  explicit WordBlocks(Key key) : key_(key) {}
  void draw(std::uint64_t first) {
    for (index_t i = 0; i < drawn_at_once; ++i) {
      Bits const b = philox(key_, first + static_cast<std::uint64_t>(i));
      high[i] = b.word[1], low[i] = b.word[0];
    }
  }

 private:
  Key key_;
#else
  explicit WordBlocks(Key key) : philox_(key, 0) {}
  template <int = 0>
  void draw(std::uint64_t first) {
    Words const word(0xffffffffu);
    draw_block(philox_, first, drawn_at_once, [&](index_t i, Words const(&w)[4]) {
      (w[1] & word).store_unaligned(high + i);
      (w[0] & word).store_unaligned(low + i);
    });
  }

 private:
  PhiloxLanes philox_;
#endif
};

// f(first, end) for parts of n numbers, on several threads where that pays: a number costs some 20 additions.
template <class F>
void draw_parts(index_t n, F const& f) {
  int const parts = parts_of(20 * n, (n + drawn_at_once - 1) / drawn_at_once);
  in_parallel(parts, [&](int i) {
    Part const p = part_of(n, i, parts, drawn_at_once);
    f(p.begin, p.end);
  });
}

}  // namespace detail

/// draw_uniform - y[i] = uniform_at(key, i, stream) for i < n, none above `most`, rounded to T.
template <class T>
void draw_uniform(Key key, std::uint64_t stream, T* y, index_t n, double most = 1) {
  detail::draw_parts(
      n, [&](index_t first, index_t end) { detail::uniform_part(key, stream, y, first, end, most); });
}

/// draw_integers - y[i] = low + integer_at(key, i, range) for i < n; range is at most 2^32.
template <int = 0>
void draw_integers(Key key, std::int64_t low, std::int64_t range, std::int64_t* y, index_t n) {
  auto const values = static_cast<std::uint64_t>(range);
  detail::draw_parts(n, [&](index_t first, index_t end) {
    detail::WordBlocks words(key);
    for (index_t i = first; i < end; i += detail::drawn_at_once) {
      words.draw(static_cast<std::uint64_t>(i));
      index_t const count = end - i < detail::drawn_at_once ? end - i : detail::drawn_at_once;
      for (index_t k = 0; k < count; ++k)
        y[i + k] =
            low + static_cast<std::int64_t>(dfdx::detail::scaled_draw(words.high[k], words.low[k], values));
    }
  });
}

/// permute_in_place - Fisher's and Yates's shuffle: number i changes places with number integer_at(key, i, i + 1), from
/// the last one on.
template <class T>
void permute_in_place(T* x, index_t n, Key key) {
  constexpr index_t size = detail::drawn_at_once;
  detail::WordBlocks words(key);
  index_t with[size];
  for (index_t begin = (n - 1) / size * size; begin >= 0 && n > 1; begin -= size) {
    words.draw(static_cast<std::uint64_t>(begin));
    index_t const end = n - begin < size ? n : begin + size;
    // Where they go is known before any of them does.
    for (index_t i = begin; i < end; ++i) {
      index_t const k = i - begin;
      with[k] = static_cast<index_t>(
          dfdx::detail::scaled_draw(words.high[k], words.low[k], static_cast<std::uint64_t>(i) + 1));
#if !defined(__CUDACC__)
      detail::ask_to_write(x + with[k]);
#endif
    }
    for (index_t i = end - 1; i >= begin && i > 0; --i) std::swap(x[i], x[with[i - begin]]);
  }
}

/// draw_normal - y[i] = normal_at(key, i, stream) for i < n, rounded to T. Of f32, what is computed fast is as near to
/// normal_at as its own bound, so that where both ends of that bound are rounded to one number, this is it; the few
/// others are computed as normal_at does (Ziv, ACM TOMS 17, 1991). So no platform's arithmetic shows in the numbers.
template <class T>
void draw_normal(Key key, std::uint64_t stream, T* y, index_t n) {
  detail::draw_parts(n, [&](index_t first, index_t end) { detail::normal_part(key, stream, y, first, end); });
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
