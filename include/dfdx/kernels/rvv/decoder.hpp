// SPDX-License-Identifier: BSL-1.0
// What a decoder does with rows of numbers between the products (models/decoder_kernels.hpp), on vectors of any length.
#pragma once

#include <cmath>

#include <dfdx/kernels/rvv/attention.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// by_vectors - f(i, count) for vectors of n numbers; `count` of the last may be less.
template <class F>
DFDX_INLINE void by_vectors(index_t n, F const& f) {
  index_t const w = lanes();
  for (index_t i = 0; i < n; i += w) f(i, part_of(n, i, w));
}

/// normalize_row - y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
template <int = 0>
void normalize_row(float const* x, float const* weight, index_t n, double eps, float* y) {
  Floats squares = splat(0.0f);
  by_vectors(n, [&](index_t i, std::size_t c) {
    Floats const v = load_part(x + i, 1, c);
    squares = __riscv_vfmacc_tu(squares, v, v, c);
  });
  float const mean = sum_of<float>(squares) / static_cast<float>(n);
  float const by = 1.0f / std::sqrt(mean + static_cast<float>(eps));
  by_vectors(n, [&](index_t i, std::size_t c) {
    store_part(y + i, 1,
               __riscv_vfmul(__riscv_vfmul(load_part(x + i, 1, c), by, c), load_part(weight + i, 1, c), c),
               c);
  });
}

/// turn_row - elements i and i + n / 2 turned together by the angles of these cosines and sines.
template <int = 0>
void turn_row(float* x, float const* cos, float const* sin, index_t n) {
  float* const y = x + n / 2;
  by_vectors(n / 2, [&](index_t i, std::size_t c) {
    Floats const a = load_part(x + i, 1, c), b = load_part(y + i, 1, c);
    Floats const k = load_part(cos + i, 1, c), s = load_part(sin + i, 1, c);
    store_part(x + i, 1, __riscv_vfnmsac(__riscv_vfmul(a, k, c), b, s, c), c);
    store_part(y + i, 1, __riscv_vfmacc(__riscv_vfmul(b, k, c), a, s, c), c);
  });
}

struct Silu {
  static constexpr auto eval(auto const& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    return x / (X(1.0f) + lane_exp(-x));
  }
};

/// silu_times_row - x[i] = silu(x[i]) y[i].
template <int = 0>
void silu_times_row(float* x, float const* y, index_t n) {
  by_vectors(n, [&](index_t i, std::size_t c) {
    Floats const v = evaluate<Silu, float>(load_part(x + i, 1, c));
    store_part(x + i, 1, __riscv_vfmul(v, load_part(y + i, 1, c), c), c);
  });
}

/// add_row - x[i] += y[i].
template <int = 0>
void add_row(float* x, float const* y, index_t n) {
  by_vectors(n, [&](index_t i, std::size_t c) {
    store_part(x + i, 1, __riscv_vfadd(load_part(x + i, 1, c), load_part(y + i, 1, c), c), c);
  });
}

/// soften_row - x = softmax(scale x), of n > 0 numbers.
template <int = 0>
void soften_row(float* x, index_t n, float scale) {
  float const top = scale_to_largest(x, n, scale), share = 1.0f / exp_row(x, n, top);
  by_vectors(n, [&](index_t i, std::size_t c) {
    store_part(x + i, 1, __riscv_vfmul(load_part(x + i, 1, c), share, c), c);
  });
}

namespace detail {

// Keys and values are floats, or half numbers.
template <class E>
DFDX_INLINE Floats load_floats(E const* p, std::size_t n) {
  if constexpr (std::is_same_v<E, float>) return load_part(p, 1, n);
  else return load_half(p, 1, n);
}

// scores[h * n + i] = q[h] times key i, for so many heads, which read the keys once.
template <int Heads, class E>
void score_rows(float const* q, E const* keys, index_t n, index_t size, float* scores) {
  for (index_t i = 0; i < n; ++i, keys += size)
    with_vectors<float, Heads>([&](auto&... sums) DFDX_INLINE_LAMBDA {
      by_vectors(size, [&](index_t j, std::size_t c) DFDX_INLINE_LAMBDA {
        Floats const key = load_floats(keys + j, c);
        each_constant<Heads>([&]<int H>() DFDX_INLINE_LAMBDA {
          auto& sum = nth<H>(sums...);
          sum = __riscv_vfmacc_tu(sum, key, load_part(q + H * size + j, 1, c), c);
        });
      });
      each_constant<Heads>([&]<int H>()
                               DFDX_INLINE_LAMBDA { scores[H * n + i] = sum_of<float>(nth<H>(sums...)); });
    });
}

// y[h] = the sum of the values times p[h * n + i], for so many heads.
template <int Heads, class E>
void mix_rows(float const* p, E const* values, index_t n, index_t size, float* y) {
  by_vectors(size, [&](index_t j, std::size_t c) {
    with_vectors<float, Heads>([&](auto&... sums) DFDX_INLINE_LAMBDA {
      for (index_t i = 0; i < n; ++i) {
        Floats const value = load_floats(values + i * size + j, c);
        each_constant<Heads>([&]<int H>() DFDX_INLINE_LAMBDA {
          auto& sum = nth<H>(sums...);
          sum = __riscv_vfmacc(sum, p[H * n + i], value, c);
        });
      }
      each_constant<Heads>([&]<int H>()
                               DFDX_INLINE_LAMBDA { store_part(y + H * size + j, 1, nth<H>(sums...), c); });
    });
  });
}

}  // namespace detail

/// attend_rows - attention of one position for heads that share keys and values: q [heads, size] and keys and values of
/// n positions to y [heads, size]; scores has room for heads * n.
template <class E>
void attend_rows(float const* q, E const* keys, E const* values, index_t heads, index_t n, index_t size,
                 float scale, float* scores, float* y) {
  auto const some = [&]<int Heads>() {
    detail::score_rows<Heads>(q, keys, n, size, scores);
    for (int h = 0; h < Heads; ++h) soften_row(scores + h * n, n, scale);
    detail::mix_rows<Heads>(scores, values, n, size, y);
    q += Heads * size, y += Heads * size, scores += Heads * n, heads -= Heads;
  };
  while (heads >= 4) some.template operator()<4>();
  while (heads > 0) some.template operator()<1>();
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
