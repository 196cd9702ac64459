// SPDX-License-Identifier: BSL-1.0
// One row of floats multiplied with matrices of numbers, which is a matter of reading these as fast as memory gives
// them: each warp has the next numbers on their way before it multiplies those it has, from one row of a matrix to the
// next. Norms before and activations behind are part of it, for a kernel of their own takes longer to start than to
// run.
#pragma once

#include <algorithm>

#include <dfdx/kernels/cuda/decode.hpp>
#include <dfdx/kernels/cuda/early.hpp>
#include <dfdx/kernels/cuda/row_products.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// OneRowArguments - a product with one row; of its norm, x norm / sqrt(mean(x^2) + eps), if there is one. With
/// `function` what two matrices give is not stored, but f(first) times second; of one matrix f(first).
struct OneRowArguments {
  RowProduct of;
  float const* norm = nullptr;
  float eps = 0;
  int function = -1;
};

/// OneRow - with matrices of numbers E, whose rows are whole words of 16 bytes.
template <class E>
struct OneRow {
  static constexpr int threads = 256, warps = threads / warp_size, least_blocks = 3;
  static constexpr index_t most_columns = 8192;
  static constexpr int chunk = 16 / static_cast<int>(sizeof(E)), at_once = 4,
                       step = at_once * warp_size * chunk;

  static bool takes(RowProduct const& x) {
    return x.rows == 1 && x.columns % chunk == 0 && x.columns <= most_columns;
  }
  /// Blocks for a device of so many multiprocessors: all of them at once.
  static index_t blocks_for(OneRowArguments const& x, index_t multiprocessors) {
    index_t const all = (lines(x) / lines_of_result(x) + warps - 1) / warps;
    return std::min(all, multiprocessors * least_blocks);
  }

  static DFDX_INLINE void run(OneRowArguments const& x) {
    let_next_begin();
    int const lane = thread() % warp_size, n = static_cast<int>(x.of.columns), each = lines_of_result(x);
    index_t const all = lines(x), by = blocks() * warps * each;
    Place now{(block() * warps + thread() / warp_size) * each, 0, 0};
    uint4 numbers[at_once];
    read(x, now, all, lane, numbers);  // on their way while the row is brought
    wait_for_before();
    float* const row = shared<Row, float, most_columns>();
    float const factor = bring(x, row);
    float sum = 0, first = 0;
    while (now.line < all) {
      Place next = now;
      next.column += step;
      if (next.column >= n) {
        next.column = 0;
        if (++next.within == each) next.within = 0, next.line += by;
      }
      uint4 following[at_once];
      read(x, next, all, lane, following);
      DFDX_UNROLL for (int i = 0; i < at_once; ++i) {
        int const c = now.column + (i * warp_size + lane) * chunk;
        if (c < n) sum += dot(numbers[i], row, c);
      }
      if (next.column == 0) {
        for (int m = warp_size / 2; m > 0; m /= 2) sum += exchanged(sum, m);
        if (lane == 0) finish(x, now, each, sum * factor, first);
        sum = 0;
      }
      DFDX_UNROLL for (int i = 0; i < at_once; ++i) numbers[i] = following[i];
      now = next;
    }
  }

 private:
  struct Row;
  // Where a warp is: the first row of matrices of a result, which of these, and its column.
  struct Place {
    index_t line;
    int within, column;
  };
  static DFDX_INLINE int lines_of_result(OneRowArguments const& x) {
    return x.function >= 0 ? x.of.matrices : 1;
  }
  static DFDX_INLINE index_t lines(OneRowArguments const& x) { return x.of.pieces(1); }
  // Which matrix, and its row.
  static DFDX_INLINE RowProduct::Matrix find(OneRowArguments const& x, Place const& p, index_t& j) {
    j = p.line;
    if (x.function < 0) return x.of.find(j, 1);
    if (x.of.matrices == 2) j /= 2;
    return x.of.of[p.within];
  }
  static DFDX_INLINE void read(OneRowArguments const& x, Place const& p, index_t all, int lane,
                               uint4 (&to)[at_once]) {
    index_t j = 0;
    bool const is_there = p.line < all;
    RowProduct::Matrix const w = find(x, is_there ? p : Place{}, j);
    E const* const from = reinterpret_cast<E const*>(w.numbers) + j * x.of.columns;
    DFDX_UNROLL for (int i = 0; i < at_once; ++i) {
      int const c = p.column + (i * warp_size + lane) * chunk;
      to[i] = is_there && c < x.of.columns ? *reinterpret_cast<uint4 const*>(from + c) : uint4{0, 0, 0, 0};
    }
  }
  // Where four numbers of the row begin: threads beside each other read every other four, so these lie in a half.
  static DFDX_INLINE int place(int c) {
    if constexpr (chunk == 4) return c;
    else return c / 4 % 2 * static_cast<int>(most_columns / 2) + c / 8 * 4;
  }
  struct Four {
    float v[4];
  };
  static DFDX_INLINE Four four(float const* at) {
    return std::bit_cast<Four>(*reinterpret_cast<float4 const*>(at));
  }
  static DFDX_INLINE float dot(uint4 const& numbers, float const* row, int c) {
    struct Chunk {
      E v[chunk];
    };
    auto const w = std::bit_cast<Chunk>(numbers);
    float sum = 0;
    DFDX_UNROLL for (int k = 0; k < chunk; k += 4) {
      Four const x = four(row + place(c + k));
      DFDX_UNROLL for (int l = 0; l < 4; ++l) sum += static_cast<float>(w.v[k + l]) * x.v[l];
    }
    return sum;
  }
  // The row, times the norm's weights, into the block's memory; what sums are to be multiplied with.
  static DFDX_INLINE float bring(OneRowArguments const& x, float* row) {
    float squares = 0;
    for (int c = thread() * 4; c < x.of.columns; c += threads * 4) {
      Four v = four(static_cast<float const*>(x.of.x) + c);
      if (x.norm != nullptr) {
        Four const by = four(x.norm + c);
        DFDX_UNROLL for (int i = 0; i < 4; ++i) squares += v.v[i] * v.v[i], v.v[i] *= by.v[i];
      }
      *reinterpret_cast<float4*>(row + place(c)) = std::bit_cast<float4>(v);
    }
    if (x.norm == nullptr) {
      barrier();
      return 1;
    }
    squares = block_reduce<loop_code::reduce_sum, threads>(squares);
    return 1.0f / std::sqrt(squares / static_cast<float>(x.of.columns) + x.eps);
  }
  static DFDX_INLINE void finish(OneRowArguments const& x, Place const& p, int each, float sum,
                                 float& first) {
    index_t j = 0;
    RowProduct::Matrix const w = find(x, p, j);
    if (x.function < 0) return x.of.put(w, 0, j, sum);
    float const v = w.bias != nullptr ? sum + w.bias[j] : sum;
    if (p.within == 0) first = Activate::f(v, x.function);
    if (p.within == each - 1) x.of.of[0].y[j] = each == 1 ? first : first * v;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
