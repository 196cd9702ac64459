// SPDX-License-Identifier: BSL-1.0
// Rows of floats as numbers of 16 bits, to be multiplied with matrices of such: rounded, as cuBLASLt takes them, or
// split into two. (kernels/cuda/quantized.hpp has them as integers.)
#pragma once

#include <dfdx/core/loop_code.hpp>
#include <dfdx/kernels/cuda/packs.hpp>
#include <dfdx/kernels/cuda/quantized.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// SplitRows - splits rows of floats for products with numbers E of 16 bits: number c of row m is row_scales[m] (to[m,
/// c] + to[rows + m, c]), which is as good as a float of 17 bits at least. f16 has little range: there the largest of a
/// row becomes 2^14. A block for each row.
struct SplitArguments {
  float const* x = nullptr;
  void* to = nullptr;
  float* row_scales = nullptr;
  index_t rows = 0, columns = 0;
};
template <class E>
struct SplitRows {
  static constexpr int threads = 256;
  static DFDX_INLINE void run(SplitArguments const& x) {
    for (index_t m = block(); m < x.rows; m += blocks()) {
      float const* const row = x.x + m * x.columns;
      float scale = 1, inverse = 1;
      if constexpr (std::is_same_v<E, float16>) {
        float most = 0;
        for (index_t c = thread(); c < x.columns; c += threads) most = std::fmax(most, std::fabs(row[c]));
        most = block_reduce<loop_code::reduce_max, threads>(most);
        float const turned = 16384.0f / most;
        if (turned <= std::numeric_limits<float>::max() && turned > 0)
          inverse = turned, scale = most / 16384.0f;
      }
      E *const high = static_cast<E*>(x.to) + m * x.columns, *const low = high + x.rows * x.columns;
      for (index_t c = thread(); c < x.columns; c += threads) {
        float const v = row[c] * inverse;
        auto const h = static_cast<E>(v);
        float const rest = v - static_cast<float>(h);
        high[c] = h;
        low[c] = rest == rest ? static_cast<E>(rest) : E(0.0f);  // of infinity nothing is left
      }
      if (thread() == 0) x.row_scales[m] = scale;
    }
  }
};

/// LargestOfRows - the largest size of a number in each row. A block for each row.
struct LargestArguments {
  float const* x = nullptr;
  float* largest = nullptr;
  index_t rows = 0, columns = 0;
};
struct LargestOfRows {
  static constexpr int threads = 256;
  static DFDX_INLINE void run(LargestArguments const& x) {
    for (index_t m = block(); m < x.rows; m += blocks()) {
      float most = 0;
      for (index_t c = thread(); c < x.columns; c += threads)
        most = std::fmax(most, std::fabs(x.x[m * x.columns + c]));
      most = block_reduce<loop_code::reduce_max, threads>(most);
      if (thread() == 0) x.largest[m] = most;
    }
  }
};

/// RoundRows - rounds floats to numbers E of 16 bits; the products are to be multiplied with `scale`, if it is given.
/// It is 1 unless f16 is too small for the largest number of all rows; then the largest becomes 2^14 to 2^15. (A
/// scale for all, for it is what cuBLASLt multiplies with. Numbers 2^-28 of the largest still have all bits.)
struct RoundArguments {
  float const* x = nullptr;
  void* to = nullptr;
  index_t size = 0;
  float* scale = nullptr;  // and 0 and 1 behind it
  float const* largest = nullptr;
  index_t rows = 0;
};
template <class E>
struct RoundRows {
  static constexpr int threads = 256, at_once = 8;
  static DFDX_INLINE void run(RoundArguments const& x) {
    float inverse = 1;
    if (x.scale != nullptr) {
      float most = 0;
      for (index_t m = thread(); m < x.rows; m += threads) most = std::fmax(most, x.largest[m]);
      most = block_reduce<loop_code::reduce_max, threads>(most);
      float scale = 1;
      if (most > 32768.0f && most <= std::numeric_limits<float>::max())
        // Powers of 2, so that nothing is rounded but what becomes too small.
        for (; most * inverse > 32768.0f; scale *= 2) inverse /= 2;
      if (block() == 0 && thread() == 0) x.scale[0] = scale, x.scale[1] = 0, x.scale[2] = 1;
    }
    E* const to = static_cast<E*>(x.to);
    for (index_t i = (block() * threads + thread()) * at_once; i < x.size;
         i += blocks() * threads * at_once) {
      if (i + at_once <= x.size) {
        auto const a = *reinterpret_cast<float4 const*>(x.x + i),
                   b = *reinterpret_cast<float4 const*>(x.x + i + 4);
        *reinterpret_cast<uint4*>(to + i) = {
            pair_of<E>(a.x * inverse, a.y * inverse), pair_of<E>(a.z * inverse, a.w * inverse),
            pair_of<E>(b.x * inverse, b.y * inverse), pair_of<E>(b.z * inverse, b.w * inverse)};
      } else {
        for (index_t k = i; k < x.size; ++k) to[k] = static_cast<E>(x.x[k] * inverse);
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
