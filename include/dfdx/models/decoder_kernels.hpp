// SPDX-License-Identifier: BSL-1.0
// What a decoder does with rows of numbers between the products: norms, turns, activations, attention of one position.
#pragma once

#include <algorithm>

#include <dfdx/kernels/rvv/decoder.hpp>
#include <dfdx/kernels/simd/functions.hpp>
#include <dfdx/kernels/simd/gemv.hpp>
#include <dfdx/models/parts.hpp>

namespace dfdx::models::detail {

using Lane = kernels::lane<float>;

// Calls f(i, count) for lanes of n numbers; `count` of the last may be less.
template <class F>
DFDX_INLINE void by_lanes(index_t n, F const& f) {
  constexpr index_t W = kernels::lane_size<float>;
  index_t i = 0;
  for (; i + W <= n; i += W) f(i, static_cast<int>(W));
  if (i < n) f(i, static_cast<int>(n - i));
}

/// y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
inline void normalize(float const* x, float const* weight, index_t n, double eps, float* y) {
#if defined(DFDX_RVV)
  kernels::rvv::normalize_row(x, weight, n, eps, y);
#else
  Lane squares(0.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane const v = kernels::load_n(x + i, c);
    squares = xsimd::fma(v, v, squares);
  });
  float const mean = xsimd::reduce_add(squares) / static_cast<float>(n);
  Lane const by(1.0f / std::sqrt(mean + static_cast<float>(eps)));
  by_lanes(n, [&](index_t i, int c) {
    kernels::store_n(y + i, kernels::load_n(x + i, c) * by * kernels::load_n(weight + i, c), c);
  });
#endif
}

/// y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias; y may be x.
inline void normalize_around(float const* x, float const* weight, float const* bias, index_t n, double eps,
                             float* y) {
  Lane sum(0.0f);
  by_lanes(n, [&](index_t i, int c) { sum = sum + kernels::load_n(x + i, c); });
  float const mean = xsimd::reduce_add(sum) / static_cast<float>(n);
  by_lanes(n, [&](index_t i, int c) { kernels::store_n(y + i, kernels::load_n(x + i, c) - Lane(mean), c); });
  Lane squares(0.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane const v = kernels::load_n(y + i, c);
    squares = xsimd::fma(v, v, squares);
  });
  float const variance = xsimd::reduce_add(squares) / static_cast<float>(n);
  Lane const by(1.0f / std::sqrt(variance + static_cast<float>(eps)));
  by_lanes(n, [&](index_t i, int c) {
    Lane const v = kernels::load_n(y + i, c) * by * kernels::load_n(weight + i, c);
    kernels::store_n(y + i, v + kernels::load_n(bias + i, c), c);
  });
}

/// Elements i and i + n / 2 turned together, as `rotate` does.
inline void turn(float* x, float const* cos, float const* sin, index_t n) {
#if defined(DFDX_RVV)
  kernels::rvv::turn_row(x, cos, sin, n);
#else
  float* const y = x + n / 2;
  by_lanes(n / 2, [&](index_t i, int c) {
    Lane const a = kernels::load_n(x + i, c), b = kernels::load_n(y + i, c);
    Lane const k = kernels::load_n(cos + i, c), s = kernels::load_n(sin + i, c);
    kernels::store_n(x + i, a * k - b * s, c);
    kernels::store_n(y + i, b * k + a * s, c);
  });
#endif
}

/// x[i] = silu(x[i]) y[i]
inline void silu_times(float* x, float const* y, index_t n) {
#if defined(DFDX_RVV)
  kernels::rvv::silu_times_row(x, y, n);
#else
  Lane const one(1.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane const v = kernels::load_n(x + i, c);
    kernels::store_n(x + i, v / (one + kernels::lane_exp(-v)) * kernels::load_n(y + i, c), c);
  });
#endif
}

/// x[i] = f(x[i])
inline void activate_all(Activation f, float* x, index_t n) {
  Lane const one(1.0f);
  // All but two are x times the logistic function of something, gelu's approximation too.
  auto const times_logistic_of = [&](auto const& u) {
    by_lanes(n, [&](index_t i, int c) {
      Lane const v = kernels::load_n(x + i, c);
      kernels::store_n(x + i, v / (one + kernels::lane_exp(-u(v))), c);
    });
  };
  switch (f) {
    case Activation::gelu_tanh:
      return times_logistic_of([](Lane const& v) {
        Lane const cubed = v * v * v * Lane(0.044715f);
        return (v + cubed) * Lane(1.5957691216057308f);  // 2 sqrt(2 / pi)
      });
    case Activation::quick_gelu: return times_logistic_of([](Lane const& v) { return v * Lane(1.702f); });
    case Activation::silu: return times_logistic_of([](Lane const& v) { return v; });
    case Activation::relu:
      for (index_t i = 0; i < n; ++i) x[i] = std::max(x[i], 0.0f);
      return;
    default:
      for (index_t i = 0; i < n; ++i) x[i] *= 0.5f * (1 + std::erf(x[i] * 0.70710678f));
  }
}

/// x[i] += scale y[i]
inline void add_to(float* x, float const* y, index_t n, float scale = 1) {
#if defined(DFDX_RVV)
  if (scale == 1) return kernels::rvv::add_row(x, y, n);
#endif
  Lane const by(scale);
  by_lanes(n, [&](index_t i, int c) {
    kernels::store_n(x + i, xsimd::fma(kernels::load_n(y + i, c), by, kernels::load_n(x + i, c)), c);
  });
}

/// log(sum(exp(x))), of n > 0 numbers.
inline double log_sum_exp(float const* x, index_t n) {
  float const top = *std::max_element(x, x + n);
  double sum = 0;
  for (index_t first = 0; first < n; first += 512) {
    Lane part(0.0f);
    float last[static_cast<std::size_t>(kernels::lane_size<float>)] = {};
    by_lanes(std::min<index_t>(512, n - first), [&](index_t i, int c) {
      Lane const e = kernels::lane_exp(kernels::load_n(x + first + i, c) - Lane(top));
      if (c == kernels::lane_size<float>) part = part + e;
      else kernels::store_n(last, e, c);
    });
    sum += static_cast<double>(xsimd::reduce_add(part));
    for (float e : last) sum += static_cast<double>(e);
  }
  return static_cast<double>(top) + std::log(sum);
}

/// x = softmax(scale x), of n > 0 numbers.
inline void soften(float* x, index_t n, float scale) {
#if defined(DFDX_RVV)
  kernels::rvv::soften_row(x, n, scale);
#else
  constexpr float least = std::numeric_limits<float>::lowest();
  float top = least;
  for (index_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  Lane const by(scale), from(top * scale);
  Lane sum(0.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane e = kernels::lane_exp(xsimd::fms(kernels::load_n(x + i, c), by, from));
    kernels::store_n(x + i, e, c);
    sum = sum + (c == kernels::lane_size<float> ? e : kernels::load_n(x + i, c));
  });
  Lane const share(1.0f / xsimd::reduce_add(sum));
  by_lanes(n, [&](index_t i, int c) { kernels::store_n(x + i, kernels::load_n(x + i, c) * share, c); });
#endif
}

/// One position's attention for the heads that share keys and values: q [heads, size] and keys and values of n
/// positions to y [heads, size]; scores has room for heads * n.
template <class E>
void attend_one(float const* q, E const* keys, E const* values, index_t heads, index_t n, index_t size,
                float scale, float* scores, float* y) {
#if defined(DFDX_RVV)
  kernels::rvv::attend_rows(q, keys, values, heads, n, size, scale, scores, y);
#else
  kernels::store_sum const as_is;
  using Put = kernels::detail::along_row<float, kernels::store_sum>;
  kernels::detail::gemm_dot(heads, n, size, q, size, keys, size, Put{scores, n, as_is});
  for (index_t h = 0; h < heads; ++h) {
    soften(scores + h * n, n, scale);
    kernels::detail::gemm_row(size, n, scores + h * n, index_t{1}, values, size,
                              Put{y + h * size, size, as_is});
  }
#endif
}

}  // namespace dfdx::models::detail
