// SPDX-License-Identifier: BSL-1.0
// What many positions of one text see of a cache of 16-bit floats, on a device: by tensor cores, as attention of
// compiled programs (kernels/cuda/tensor_attention.hpp). Its rows are the queries of all heads that share keys: those
// of one position, then those of the next.
//
// Numerics: sums, scores and sums of weights are f32. Queries, times the factor of scores, and weights, relative to the
// largest so far, are rounded to the cache's type before they are multiplied.
#pragma once

#include <dfdx/kernels/cuda/decode_attention.hpp>
#include <dfdx/kernels/cuda/packs.hpp>
#include <dfdx/kernels/cuda/tensor_rows.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// SeeTogether - SeePositions of rows of one text and of a cache of numbers E, f16 or bf16, for heads of 64 numbers, or
/// up to N where that is more: a block for 64 queries, 16 for each warp, and 64 keys at a time, or fewer.
template <class E, int N>
struct SeeTogether {
  using Rows = TensorRows<E, N>;
  // Of long heads queries stay in shared memory, for registers are too few.
  static constexpr bool keeps = N <= 128;
  static constexpr int threads = keeps ? 128 : 64, rows = threads / 2, tile = keeps ? 64 : 16;
  static constexpr int least_blocks = N <= 64 ? 3 : 2, part_size = 128;
  static constexpr float log2_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;
  static constexpr float least = -std::numeric_limits<float>::infinity();

  static constexpr int work(SeePositionsArguments const& x) {
    return x.key_heads * ((x.sharing() + rows - 1) / rows) * x.parts;
  }
  static DFDX_INLINE void run(SeePositionsArguments const& x) {
    // Blocks of the last queries, which see the most keys, begin first.
    int const each = (x.sharing() + rows - 1) / rows, beside = x.key_heads * x.parts, all = each * beside;
    for (int t = static_cast<int>(block()); t < all; t += static_cast<int>(blocks()))
      some(x, t % beside / x.parts, (each - 1 - t / beside) * rows, t % x.parts);
  }

 private:
  struct OfTiles;
  static constexpr int room = keeps ? 2 * tile : 2 * tile + rows;
  static_assert(room >= rows);

  // Rows `first` and on of a head's keys or values, and zeros behind the last.
  static DFDX_INLINE void bring(E* to, E const* from, int first, int last, int size) {
    constexpr int lanes = Rows::lanes_of_row, by = threads / lanes;
    int const c = thread() % lanes * 8;
    DFDX_UNROLL for (int i = 0; i < tile; i += by) {
      int const r = i + thread() / lanes, p = first + r;
      E* const at = to + r * Rows::pitch + c;
      if (size % 8 == 0 && p < last && c < size) {
        copy_later<16>(at, from + index_t{p} * size + c);
      } else {
        Pack<E, 8> v{};
        if (p < last)
          for (int k = 0; k < 8 && c + k < size; ++k) v.x[k] = from[index_t{p} * size + c + k];
        *reinterpret_cast<uint4*>(at) = std::bit_cast<uint4>(v);
      }
    }
  }
  // Known, if it may be: that needs fewer registers.
  static DFDX_INLINE int size_of_head(SeePositionsArguments const& x) { return N == 64 ? N : x.size; }
  // The first of `seen` positions that a window shows.
  static DFDX_INLINE int begin_of(SeePositionsArguments const& x, int seen) {
    return x.window > 0 && seen > x.window ? seen - x.window : 0;
  }
  static DFDX_INLINE void some(SeePositionsArguments const& x, int g, int first, int part) {
    E* const queries = reinterpret_cast<E*>(shared<OfTiles, uint4, room * Rows::pitch / 8>());
    E* const keys = keeps ? queries : queries + rows * Rows::pitch;
    E* const values = keys + tile * Rows::pitch;
    int const n = size_of_head(x), group = x.group(), all_heads = x.heads + 2 * x.key_heads;
    int const count = x.sharing() - first < rows ? x.sharing() - first : rows;
    auto const row_of = [&](int q) { return (first + q) / group; };
    auto const head_of = [&](int q) { return g * group + (first + q) % group; };
    barrier();  // until all have used what lies there
    for (int i = thread(); i < rows * (N / 2); i += threads) {
      int const q = i / (N / 2), c = i % (N / 2) * 2;
      float const* const from = x.qkv + (index_t{row_of(q)} * all_heads + head_of(q)) * n + c;
      float const by = x.scale * log2_e;
      *reinterpret_cast<std::uint32_t*>(queries + q * Rows::pitch + c) =
          pair_of<E>(q < count && c < n ? from[0] * by : 0.0f, q < count && c + 1 < n ? from[1] * by : 0.0f);
    }
    // Behind what this thread's two rows see.
    int ends[2];
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      int const q = Rows::row(2 * r);
      ends[r] = q < count ? x.positions[row_of(q)] + 1 : 0;
    }
    // From the first position that the first row sees to the last of the last row.
    int const last = x.positions[row_of(count - 1)] + 1;
    int k0 = begin_of(x, x.positions[row_of(0)] + 1) / tile * tile + part * tile;
    CacheRows const cache = x.caches[0];
    index_t const head_at = g * cache.capacity * n;
    E const* const all_keys = reinterpret_cast<E const*>(cache.keys) + head_at;
    E const* const all_values = reinterpret_cast<E const*>(cache.values) + head_at;
    std::uint32_t q[Rows::steps][4];
    barrier();
    if constexpr (keeps) {
      Rows::left(q, queries);
      barrier();
    }
    bring(keys, all_keys, k0, last, n);
    float largest[2] = {least, least}, total[2] = {}, y[Rows::blocks][4] = {};
    for (; k0 < last; k0 += x.parts * tile) {
      // Values are on their way while scores are computed, and the next keys while values are added.
      copies_made();
      barrier();
      bring(values, all_values, k0, last, n);
      float s[tile / 8][4] = {};
      if constexpr (keeps) Rows::multiply(s, q, keys);
      else Rows::multiply(s, queries, keys);
      copies_made();
      barrier();
      if (int const next = k0 + x.parts * tile; next < last) bring(keys, all_keys, next, last, n);
      weigh(x, s, y, k0, ends, largest, total);
      Rows::add(y, s, values);
    }
    copies_made();
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      float sum = total[r];
      sum += exchanged(sum, 1);
      sum += exchanged(sum, 2);
      int const of = Rows::row(2 * r);
      if (of < count) store(x, index_t{row_of(of)} * x.heads + head_of(of), part, r, y, largest[r], sum);
    }
    if (x.parts != 1)
      join_parts<threads>(x, first / rows * x.key_heads + g, count,
                          [&](int r) { return row_of(r) * x.heads + head_of(r); });
  }
  // Scores of keys k0 and on become weights relative to the largest in their row so far, to which sums are brought.
  static DFDX_INLINE void weigh(SeePositionsArguments const& x, float (&s)[tile / 8][4],
                                float (&y)[Rows::blocks][4], int k0, int const (&ends)[2],
                                float (&largest)[2], float (&total)[2]) {
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      // Counted from this thread's first column, so that columns are constants.
      int const from = k0 + Rows::column(0, 0), end = ends[r] - from, begin = begin_of(x, ends[r]) - from;
      if (end < tile || begin > 0) {
        DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
          DFDX_UNROLL for (int i = 0; i < 2; ++i) {
            if (j * 8 + i >= end || j * 8 + i < begin) s[j][2 * r + i] = least;
          }
        }
      }
      float most = largest[r];
      DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
        most = larger(most, larger(s[j][2 * r], s[j][2 * r + 1]));
      }
      DFDX_UNROLL for (int m = 1; m < 4; m *= 2) most = larger(most, exchanged(most, m));
      // A row that has seen nothing yet stays as it is.
      float const shift = most == least ? 0.0f : most, factor = fast_exp2(largest[r] - shift);
      largest[r] = most;
      float part = 0;
      DFDX_UNROLL for (int j = 0; j < tile / 8; ++j) {
        DFDX_UNROLL for (int i = 2 * r; i < 2 * r + 2; ++i) {
          s[j][i] = fast_exp2(s[j][i] - shift);
          part += s[j][i];
        }
      }
      total[r] = total[r] * factor + part;
      DFDX_UNROLL for (int j = 0; j < Rows::blocks; ++j) y[j][2 * r] *= factor, y[j][2 * r + 1] *= factor;
    }
  }
  // Of row r of this thread.
  static DFDX_INLINE void store(SeePositionsArguments const& x, index_t at, int part, int r,
                                float const (&y)[Rows::blocks][4], float largest, float total) {
    int const n = size_of_head(x);
    bool const whole = x.parts == 1;
    float* const to = whole ? x.y + at * n : x.seen + (at * x.parts + part) * (n + 2);
    float const by = whole ? 1.0f / total : 1.0f;
    DFDX_UNROLL for (int j = 0; j < Rows::blocks; ++j) {
      int const c = Rows::column(j, 2 * r);
      float const a = y[j][2 * r] * by, b = y[j][2 * r + 1] * by;
      if (n % 2 == 0) {
        if (c < n) *reinterpret_cast<float2*>(to + c) = float2{a, b};
      } else {
        if (c < n) to[c] = a;
        if (c + 1 < n) to[c + 1] = b;
      }
    }
    if (!whole && Rows::lane() % 4 == 0) to[n] = largest * ln_2, to[n + 1] = total;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
