// SPDX-License-Identifier: BSL-1.0
// What a decoder does on a device with rows of floats between the products: embeddings, norms, turns of heads and the
// cache, activations. kernels/cuda/decode_attention.hpp has what positions see.
#pragma once

#include <dfdx/core/loop_code.hpp>
#include <dfdx/kernels/cuda/quantized.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// ReadRows - y[m] = row at[m] of a matrix as floats, or that added to y. Rows are numbers E, or blocks.
struct ReadRowsArguments {
  std::byte const* numbers = nullptr;
  index_t blocks = 0, columns = 0, rows = 0;
  std::int32_t const* at = nullptr;
  float* y = nullptr;
  bool adds = false;
};
template <class E>
struct ReadRows {
  static constexpr int threads = 256;
  static DFDX_INLINE void run(ReadRowsArguments const& x) {
    E const* const numbers = reinterpret_cast<E const*>(x.numbers);
    for (index_t i = block() * threads + thread(); i < x.rows * x.columns; i += blocks() * threads) {
      auto const v = static_cast<float>(numbers[x.at[i / x.columns] * x.columns + i % x.columns]);
      x.y[i] = x.adds ? x.y[i] + v : v;
    }
  }
};
template <Quant F>
struct ReadBlocks {
  static constexpr int threads = 64;
  static DFDX_INLINE void run(ReadRowsArguments const& x) {
    BlockPlanes<F> const planes{x.numbers, x.blocks};
    index_t const groups = x.columns / 32;
    for (index_t i = block() * threads + thread(); i < x.rows * groups; i += blocks() * threads) {
      Group const v = planes.group(x.at[i / groups] * groups + i % groups);
      DFDX_UNROLL for (int k = 0; k < 32; ++k) {
        auto const q = static_cast<float>(static_cast<std::int8_t>(v.q[k / 4] >> (k % 4 * 8)));
        float const number = v.scale[k / 16] * q + v.low;
        float* const to = x.y + i * 32 + k;
        *to = x.adds ? *to + number : number;
      }
    }
  }
};

/// NormRows - y = x / sqrt(mean(x^2) + eps) weight, or with a bias (x - mean(x)) / sqrt(var(x) + eps) weight + bias. A
/// block for each row. With `narrow` rounded to bf16, and nowhere else.
struct NormRowsArguments {
  float const* x = nullptr;
  float const *weight = nullptr, *bias = nullptr;
  float* y = nullptr;
  index_t rows = 0, columns = 0;
  float eps = 0;
  bfloat16* narrow = nullptr;
};
struct NormRows {
  static constexpr int threads = 256;
  static DFDX_INLINE void run(NormRowsArguments const& x) {
    auto const n = static_cast<float>(x.columns);
    for (index_t m = block(); m < x.rows; m += blocks()) {
      float const* const row = x.x + m * x.columns;
      float mean = 0, squares = 0;
      if (x.bias != nullptr) {
        for (index_t c = thread(); c < x.columns; c += threads) mean += row[c];
        mean = block_reduce<loop_code::reduce_sum, threads>(mean) / n;
      }
      for (index_t c = thread(); c < x.columns; c += threads) {
        float const v = row[c] - mean;
        squares += v * v;
      }
      squares = block_reduce<loop_code::reduce_sum, threads>(squares);
      float const by = 1.0f / std::sqrt(squares / n + x.eps);
      for (index_t c = thread(); c < x.columns; c += threads) {
        float v = (row[c] - mean) * by * x.weight[c];
        if (x.bias != nullptr) v += x.bias[c];
        if (x.narrow != nullptr) x.narrow[m * x.columns + c] = static_cast<bfloat16>(v);
        else x.y[m * x.columns + c] = v;
      }
    }
  }
};

/// CacheRows - where a layer's keys and values of a text begin: [heads, capacity, size].
struct CacheRows {
  std::byte *keys = nullptr, *values = nullptr;
  index_t capacity = 0;
};

/// Q8Row - a row of a cache of blocks of 8 bits, as files have them.
struct Q8Row {
  static constexpr index_t bytes(index_t size) {
    return size / 32 * static_cast<index_t>(block_bytes(Quant::q8_0));
  }
};
/// cache_row_bytes - of a row of `size` numbers in a cache of numbers E, or of blocks.
template <class E>
DFDX_INLINE constexpr index_t cache_row_bytes(index_t size) {
  if constexpr (std::is_same_v<E, Q8Row>) return Q8Row::bytes(size);
  else return size * static_cast<index_t>(sizeof(E));
}

/// PlaceHeads - norms and turns queries and keys, and puts keys and values into the caches. A warp for a head of a row
/// of qkv: [rows, heads + 2 key_heads, size].
struct PlaceHeadsArguments {
  float* qkv = nullptr;
  int rows = 0, heads = 0, key_heads = 0, size = 0;
  float const *q_norm = nullptr, *k_norm = nullptr;
  float eps = 0;
  float const *cos = nullptr, *sin = nullptr;  // [rows, size / 2], or null
  CacheRows const* caches = nullptr;           // one for each row
  std::int32_t const* positions = nullptr;
  std::int32_t* spoiled = nullptr;  // set where a number does not fit into blocks
};
template <class E>
struct PlaceHeads {
  static constexpr int threads = 256, warps = threads / warp_size;
  static constexpr int most_size = 256;
  static constexpr index_t blocks_for(PlaceHeadsArguments const& x) {
    return (index_t{x.rows} * (x.heads + 2 * x.key_heads) + warps - 1) / warps;
  }
  static DFDX_INLINE void run(PlaceHeadsArguments const& x) {
    int const all = x.heads + 2 * x.key_heads, lane = thread() % warp_size, warp = thread() / warp_size;
    float* const v = shared<PlaceHeads, float, warps * most_size>() + warp * most_size;
    for (int t = static_cast<int>(block()) * warps + warp; t < x.rows * all;
         t += static_cast<int>(blocks()) * warps) {
      turn(x, t / all, t % all, v);
      if (t % all >= x.heads) put(x, t / all, t % all, v);
      else
        for (int c = lane; c < x.size; c += warp_size) x.qkv[index_t{t} * x.size + c] = v[c];
      warp_barrier();  // until all have used what lies there
    }
  }

  /// A head of row m into v, by a warp: normed and turned, unless it is a value.
  static DFDX_INLINE void turn(PlaceHeadsArguments const& x, int m, int head, float* v) {
    int const n = x.size, lane = thread() % warp_size, half = n / 2;
    float const* const row = x.qkv + (index_t{m} * (x.heads + 2 * x.key_heads) + head) * n;
    bool const is_query = head < x.heads, is_value = head >= x.heads + x.key_heads;
    float const* const norm = is_value ? nullptr : is_query ? x.q_norm : x.k_norm;
    float by = 1;
    if (norm != nullptr) {
      float squares = 0;
      for (int c = lane; c < n; c += warp_size) squares += row[c] * row[c];
      for (int m2 = warp_size / 2; m2 > 0; m2 /= 2) squares += exchanged(squares, m2);
      by = 1.0f / std::sqrt(squares / static_cast<float>(n) + x.eps);
    }
    auto const number = [&](int c) { return norm != nullptr ? row[c] * by * norm[c] : row[c]; };
    if (x.cos != nullptr && !is_value) {
      for (int c = lane; c < half; c += warp_size) {
        float const a = number(c), b = number(c + half), k = x.cos[index_t{m} * half + c],
                    s = x.sin[index_t{m} * half + c];
        v[c] = a * k - b * s;
        v[c + half] = b * k + a * s;
      }
    } else {
      for (int c = lane; c < n; c += warp_size) v[c] = number(c);
    }
    warp_barrier();
  }
  /// A key or value that was turned into its cache, by a warp.
  static DFDX_INLINE void put(PlaceHeadsArguments const& x, int m, int head, float const* v) {
    int const g = (head - x.heads) % x.key_heads, lane = thread() % warp_size;
    CacheRows const& cache = x.caches[m];
    std::byte* const to = (head >= x.heads + x.key_heads ? cache.values : cache.keys) +
                          (g * cache.capacity + x.positions[m]) * cache_row_bytes<E>(x.size);
    if constexpr (std::is_same_v<E, Q8Row>) in_blocks(x, v, to);
    else
      for (int c = lane; c < x.size; c += warp_size) reinterpret_cast<E*>(to)[c] = static_cast<E>(v[c]);
  }

 private:
  // As quantize_row of Q8_0 (kernels/reference/quantize.hpp), block after block of 32.
  static DFDX_INLINE void in_blocks(PlaceHeadsArguments const& x, float const* v, std::byte* to) {
    int const lane = thread() % warp_size;
    for (index_t b = 0; b < x.size / 32; ++b) {
      float const number = v[b * 32 + lane];
      float most = std::fabs(number);
      bool const fits = most <= 65504.0f;
      for (int m = warp_size / 2; m > 0; m /= 2) most = std::fmax(most, exchanged(most, m));
      float const scale = most / 127.0f, turned = 1.0f / scale;
      float const inverse = turned <= std::numeric_limits<float>::max() ? turned : 0.0f;
      std::byte* const block = to + b * static_cast<index_t>(block_bytes(Quant::q8_0));
      if (lane == 0) *reinterpret_cast<float16*>(block) = float16(scale);
      if (!fits) *x.spoiled = 1;
      block[2 + lane] =
          static_cast<std::byte>(static_cast<std::int8_t>(fits ? std::round(number * inverse) : 0.0f));
    }
  }
};

/// Activate - x[m, c] = f(x[m, c]), times y[m, c] if it is gated. f by the number that models/parts.hpp gives it:
/// gelu, its approximation by tanh, x logistic(1.702 x), relu, silu. With `narrow` rounded to bf16 there instead.
struct ActivateArguments {
  float* x = nullptr;
  float const* y = nullptr;
  index_t size = 0;
  int function = 0;
  bfloat16* narrow = nullptr;
};
struct Activate {
  static constexpr int threads = 256, at_once = 4;
  static DFDX_INLINE float f(float v, int function) {
    auto const times_logistic = [&](float u) { return v / (1.0f + std::exp(-u)); };
    switch (function) {
      case 0: return v * 0.5f * (1.0f + std::erf(v * 0.70710678f));
      case 1: return times_logistic((v + v * v * v * 0.044715f) * 1.5957691216057308f);
      case 2: return times_logistic(v * 1.702f);
      case 3: return v > 0.0f ? v : 0.0f;
      default: return times_logistic(v);
    }
  }
  static DFDX_INLINE void run(ActivateArguments const& x) {
    bool const in_words = x.size % at_once == 0;
    for (index_t i = (block() * threads + thread()) * at_once; i < x.size;
         i += blocks() * threads * at_once) {
      struct Four {
        float v[at_once];
      };
      Four v{}, by{};
      if (in_words) {
        v = std::bit_cast<Four>(*reinterpret_cast<float4 const*>(x.x + i));
        if (x.y != nullptr) by = std::bit_cast<Four>(*reinterpret_cast<float4 const*>(x.y + i));
      }
      DFDX_UNROLL for (int k = 0; k < at_once; ++k) {
        if (!in_words && i + k < x.size) {
          v.v[k] = x.x[i + k];
          if (x.y != nullptr) by.v[k] = x.y[i + k];
        }
        v.v[k] = f(v.v[k], x.function);
        if (x.y != nullptr) v.v[k] *= by.v[k];
      }
      if (in_words && x.narrow == nullptr) {
        *reinterpret_cast<float4*>(x.x + i) = std::bit_cast<float4>(v);
      } else {
        DFDX_UNROLL for (int k = 0; k < at_once; ++k) {
          if (i + k >= x.size) continue;
          if (x.narrow != nullptr) x.narrow[i + k] = static_cast<bfloat16>(v.v[k]);
          else x.x[i + k] = v.v[k];
        }
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
