// SPDX-License-Identifier: BSL-1.0
// What positions see of a cache, on a device. Several queries that share keys and values go through them together, 128
// positions at a time; long texts are divided among blocks, whose parts are put together after them. Sums are kept
// relative to the largest score so far (Milakov and Gimelshein 2018; Dao et al. 2023, Flash-Decoding).
#pragma once

#include <dfdx/kernels/cuda/decode.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// most_parts - among how many blocks at most the positions of a text are divided.
inline constexpr int most_parts = 264;

/// SeePositions - rows of qkv: [rows, heads + 2 key_heads, size] and caches, to y: [rows, heads, size]. Rows of one
/// text (`together`) lie beside each other, and their queries share keys. With `parts` above 1, what each part has seen
/// goes to `seen`: [rows, heads, parts, size + 2], sums, the largest score and the sum of weights.
struct SeePositionsArguments {
  float const* qkv = nullptr;
  int rows = 0, heads = 0, key_heads = 0, size = 0;
  CacheRows const* caches = nullptr;
  std::int32_t const* positions = nullptr;
  int window = 0;  // positions that are seen, 0 for all
  float scale = 1;
  bool together = false;
  int parts = 1;
  float *y = nullptr, *seen = nullptr;

  DFDX_INLINE int group() const { return heads / key_heads; }
  /// Queries that share keys and values, and how many times there are so many.
  DFDX_INLINE int sharing() const { return together ? rows * group() : group(); }
  DFDX_INLINE int units() const { return together ? 1 : rows; }
};

/// See - of up to Q queries at a time, of a cache of numbers E or blocks.
template <class E, int Q>
struct See {
  static constexpr int threads = 128, least_blocks = Q > 4 ? 3 : 4;
  static constexpr int at_once = threads, most_size = 256;
  static constexpr int columns = most_size / threads;

  static constexpr int batches(SeePositionsArguments const& x) { return (x.sharing() + Q - 1) / Q; }
  static constexpr int work(SeePositionsArguments const& x) {
    return x.units() * x.key_heads * batches(x) * x.parts;
  }
  static DFDX_INLINE void run(SeePositionsArguments const& x) {
    int const all = work(x), of_unit = x.key_heads * batches(x) * x.parts;
    for (int t = static_cast<int>(block()); t < all; t += static_cast<int>(blocks()))
      some(x, t / of_unit, t % of_unit / (batches(x) * x.parts), t / x.parts % batches(x) * Q, t % x.parts);
  }

 private:
  struct Queries;
  struct Scores;
  struct State;
  struct Seen;

  // Numbers c to c + 7 of a row; zeros behind its end.
  static DFDX_INLINE void read(std::byte const* row, int c, int size, float (&to)[8]) {
    if constexpr (std::is_same_v<E, Q8Row>) {
      std::byte const* const block = row + c / 32 * static_cast<int>(block_bytes(Quant::q8_0));
      float const scale = detail::half_at(block);
      DFDX_UNROLL for (int i = 0; i < 8; ++i) to[i] =
          scale * static_cast<float>(static_cast<std::int8_t>(block[2 + c % 32 + i]));
    } else {
      E const* const from = reinterpret_cast<E const*>(row) + c;
      if (size % 8 == 0) {
        struct Eight {
          E v[8];
        };
        struct Words {
          uint4 v[sizeof(E) / 2];
        };
        Words words;
        DFDX_UNROLL for (int i = 0; i < static_cast<int>(sizeof(E) / 2); ++i) words.v[i] =
            reinterpret_cast<uint4 const*>(from)[i];
        auto const eight = std::bit_cast<Eight>(words);
        DFDX_UNROLL for (int i = 0; i < 8; ++i) to[i] = static_cast<float>(eight.v[i]);
      } else {
        DFDX_UNROLL for (int i = 0; i < 8; ++i) to[i] = c + i < size ? static_cast<float>(from[i]) : 0.0f;
      }
    }
  }
  static DFDX_INLINE float number(std::byte const* row, int c) {
    if constexpr (std::is_same_v<E, Q8Row>) {
      std::byte const* const block = row + c / 32 * static_cast<int>(block_bytes(Quant::q8_0));
      return detail::half_at(block) * static_cast<float>(static_cast<std::int8_t>(block[2 + c % 32]));
    } else {
      return static_cast<float>(reinterpret_cast<E const*>(row)[c]);
    }
  }

  static DFDX_INLINE void some(SeePositionsArguments const& x, int unit, int g, int first, int part) {
    constexpr float least = -std::numeric_limits<float>::infinity();
    constexpr int warps = threads / warp_size;
    float* const queries = shared<Queries, float, Q * most_size>();
    float* const scores = shared<Scores, float, Q * threads>();
    float* const state = shared<State, float, 3 * Q>();
    float *const largest = state, *const total = state + Q, *const rescale = state + 2 * Q;
    int const n = x.size, group = x.group(), padded = (n + 7) / 8 * 8;
    int const row0 = x.together ? 0 : unit, all_heads = x.heads + 2 * x.key_heads;
    int const count = x.sharing() - first < Q ? x.sharing() - first : Q;
    auto const row_of = [&](int q) { return row0 + (first + q) / group; };
    auto const head_of = [&](int q) { return g * group + (first + q) % group; };
    auto const begin_of = [&](int row) {
      int const seen = x.positions[row] + 1;
      return x.window > 0 && seen > x.window ? seen - x.window : 0;
    };
    barrier();  // until all have used what lies there
    for (int i = thread(); i < Q * padded; i += threads) {
      int const q = i / padded, c = i % padded;
      queries[q * most_size + c] =
          q < count && c < n ? x.qkv[(row_of(q) * all_heads + head_of(q)) * n + c] * x.scale : 0.0f;
    }
    // The positions that each query sees; threads ask often.
    int* const begins = shared<Seen, int, 2 * Q>();
    int* const ends = begins + Q;
    if (thread() < Q) {
      largest[thread()] = least, total[thread()] = 0;
      int const row = row_of(thread() < count ? thread() : 0);
      begins[thread()] = begin_of(row);
      ends[thread()] = thread() < count ? x.positions[row] + 1 : 0;
    }
    // From the first position that the first row sees to the last of the last row.
    int const last = x.positions[row_of(count - 1)] + 1;
    CacheRows const cache = x.caches[row0];
    index_t const row_bytes = cache_row_bytes<E>(n), head_at = g * cache.capacity * row_bytes;
    float sums[Q][columns] = {};
    for (int p0 = begin_of(row_of(0)) / at_once * at_once + part * at_once; p0 < last;
         p0 += x.parts * at_once) {
      barrier();
      int const p = p0 + thread();
      float dots[Q] = {};
      if (p < last) {
        std::byte const* const key = cache.keys + head_at + p * row_bytes;
        for (int c = 0; c < n; c += 8) {
          float k[8];
          read(key, c, n, k);
          DFDX_UNROLL for (int q = 0; q < Q; ++q) {
            DFDX_UNROLL for (int i = 0; i < 8; ++i) dots[q] += k[i] * queries[q * most_size + c + i];
          }
        }
      }
      DFDX_UNROLL for (int q = 0; q < Q; ++q) {
        scores[q * threads + thread()] = p >= begins[q] && p < ends[q] ? dots[q] : least;
      }
      barrier();
      for (int q = thread() / warp_size; q < Q; q += warps) {
        float* const of_q = scores + q * threads;
        int const lane = thread() % warp_size;
        float const before = largest[q];
        float most = before, sum = 0;
        DFDX_UNROLL for (int i = 0; i < threads; i += warp_size) most = std::fmax(most, of_q[lane + i]);
        for (int m = warp_size / 2; m > 0; m /= 2) most = std::fmax(most, exchanged(most, m));
        DFDX_UNROLL for (int i = 0; i < threads; i += warp_size) {
          float const e = most == least ? 0.0f : std::exp(of_q[lane + i] - most);
          of_q[lane + i] = e;
          sum += e;
        }
        for (int m = warp_size / 2; m > 0; m /= 2) sum += exchanged(sum, m);
        if (lane == 0) {
          float const by = before == least ? 0.0f : std::exp(before - most);
          rescale[q] = by;
          largest[q] = most;
          total[q] = total[q] * by + sum;
        }
      }
      barrier();
      int const end = last - p0 < at_once ? last - p0 : at_once;
      DFDX_UNROLL for (int k = 0; k < columns; ++k) {
        int const c = thread() + k * threads;
        if (c >= n) continue;
        DFDX_UNROLL for (int q = 0; q < Q; ++q) sums[q][k] *= rescale[q];
        for (int i = 0; i < end; ++i) {
          float const v = number(cache.values + head_at + (p0 + i) * row_bytes, c);
          DFDX_UNROLL for (int q = 0; q < Q; ++q) sums[q][k] += scores[q * threads + i] * v;
        }
      }
    }
    barrier();
    // Divided here once, and not by all threads.
    if (thread() < Q && x.parts == 1) rescale[thread()] = 1.0f / total[thread()];
    barrier();
    DFDX_UNROLL for (int q = 0; q < Q; ++q) {
      if (q >= count) continue;
      int const at = row_of(q) * x.heads + head_of(q);
      float* const to = x.parts == 1 ? x.y + at * n : x.seen + index_t{at * x.parts + part} * (n + 2);
      DFDX_UNROLL for (int k = 0; k < columns; ++k) {
        int const c = thread() + k * threads;
        if (c < n) to[c] = x.parts == 1 ? sums[q][k] * rescale[q] : sums[q][k];
      }
      if (x.parts != 1 && thread() == 0) to[n] = largest[q], to[n + 1] = total[q];
    }
  }
};

/// JoinParts - what parts have seen, put together. A block for each head of a row.
struct JoinParts {
  static constexpr int threads = 128;
  static DFDX_INLINE void run(SeePositionsArguments const& x) {
    int const n = x.size;
    float* const weights = shared<JoinParts, float, most_parts>();
    for (index_t t = block(); t < index_t{x.rows} * x.heads; t += blocks()) {
      float const* const parts = x.seen + t * x.parts * (n + 2);
      float most = -std::numeric_limits<float>::infinity(), total = 0;
      for (int p = thread(); p < x.parts; p += threads) most = std::fmax(most, parts[p * (n + 2) + n]);
      most = block_reduce<loop_code::reduce_max, threads>(most);  // all have used the weights before
      for (int p = thread(); p < x.parts; p += threads) {
        weights[p] = std::exp(parts[p * (n + 2) + n] - most);
        total += weights[p] * parts[p * (n + 2) + n + 1];
      }
      total = block_reduce<loop_code::reduce_sum, threads>(total);
      for (int c = thread(); c < n; c += threads) {
        float sum = 0;
        for (int p = 0; p < x.parts; ++p) sum += weights[p] * parts[p * (n + 2) + c];
        x.y[t * n + c] = sum / total;
      }
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
