// SPDX-License-Identifier: BSL-1.0
// What positions see of a cache, on a device. Several queries that share keys and values go through them together, 64
// or 128 positions at a time; long texts are divided among blocks, the last of which puts their parts together. Sums
// are kept relative to the largest score so far (Milakov and Gimelshein 2018; Dao et al. 2023, Flash-Decoding).
#pragma once

#include <dfdx/kernels/cuda/decode.hpp>
#include <dfdx/kernels/cuda/early.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// enough_blocks - among how many blocks at most work is divided that has fewer pieces: for a large device.
inline constexpr int enough_blocks = 264;

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
  int* done = nullptr;  // zeros, one for each piece of work that is divided; they are zeros again after it
  /// With `places` heads are normed and turned, and keys and values put into the caches, on the way: of rows of
  /// different texts, whose queries go through the cache once.
  bool places = false;
  PlaceHeadsArguments place{};

  DFDX_INLINE int group() const { return heads / key_heads; }
  /// Queries that share keys and values, and how many times there are so many.
  DFDX_INLINE int sharing() const { return together ? rows * group() : group(); }
  DFDX_INLINE int units() const { return together ? 1 : rows; }
};

/// join_parts - what parts have seen, put together by the last of the blocks that have them: heads `at(q)` of `count`,
/// a warp for each. `piece` is which piece of work the block has a part of.
template <int Threads, class At>
DFDX_INLINE void join_parts(SeePositionsArguments const& x, int piece, int count, At const& at) {
  struct IsLast;
  constexpr int most_size = 256, each = most_size / warp_size;
  int* const is_last = shared<IsLast, int, 1>();
  barrier();  // all of this part has been written
  if (thread() == 0) {
    *is_last = counted(x.done + piece) == x.parts - 1;
    if (*is_last) x.done[piece] = 0;
  }
  barrier();
  if (*is_last == 0) return;
  int const n = x.size, lane = thread() % warp_size;
  for (int q = thread() / warp_size; q < count; q += Threads / warp_size) {
    float const* const parts = x.seen + index_t{at(q)} * x.parts * (n + 2);
    float most = -std::numeric_limits<float>::infinity(), total = 0, sums[each] = {};
    for (int p = lane; p < x.parts; p += warp_size) most = std::fmax(most, parts[p * (n + 2) + n]);
    for (int m = warp_size / 2; m > 0; m /= 2) most = std::fmax(most, exchanged(most, m));
    for (int p = 0; p < x.parts; ++p) {
      float const* const part = parts + p * (n + 2);
      float const weight = std::exp(part[n] - most);
      total += weight * part[n + 1];
      DFDX_UNROLL for (int k = 0; k < each; ++k) {
        int const c = lane + k * warp_size;
        if (c < n) sums[k] += weight * part[c];
      }
    }
    float const by = 1.0f / total;
    DFDX_UNROLL for (int k = 0; k < each; ++k) {
      int const c = lane + k * warp_size;
      if (c < n) x.y[index_t{at(q)} * n + c] = sums[k] * by;
    }
  }
}

/// See - of up to Q queries at a time, of a cache of numbers E or blocks.
template <class E, int Q>
struct See {
  static constexpr int threads = 128, least_blocks = Q > 4 ? 2 : 4;
  // Of few queries there are few blocks: each has fewer positions, and more threads for one.
  static constexpr int at_once = Q > 4 ? threads : threads / 2, part_size = at_once, most_size = 256;
  static constexpr int lanes_of_key = threads / at_once, columns = most_size / threads;
  static constexpr bool is_wide = Q <= 4;  // values are read 8 at a time

  static constexpr int batches(SeePositionsArguments const& x) { return (x.sharing() + Q - 1) / Q; }
  static constexpr int work(SeePositionsArguments const& x) {
    return x.units() * x.key_heads * batches(x) * x.parts;
  }
  static DFDX_INLINE void run(SeePositionsArguments const& x) {
    let_next_begin();
    wait_for_before();
    int const all = work(x), of_unit = x.key_heads * batches(x) * x.parts;
    for (int t = static_cast<int>(block()); t < all; t += static_cast<int>(blocks()))
      some(x, t / x.parts, t / of_unit, t % of_unit / (batches(x) * x.parts), t / x.parts % batches(x) * Q,
           t % x.parts);
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

  static DFDX_INLINE void some(SeePositionsArguments const& x, int piece, int unit, int g, int first,
                               int part) {
    constexpr float least = -std::numeric_limits<float>::infinity();
    constexpr int warps = threads / warp_size;
    float* const queries = shared<Queries, float, Q * most_size>();
    float* const scores = shared<Scores, float, Q * at_once>();
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
    if (x.places) place(x, row0, g, count, part, queries);
    else
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
    float sums[Q][columns] = {}, wide[is_wide ? Q : 1][8] = {};
    int const lanes_of_value = n <= 64 ? 8 : n <= 128 ? 16 : 32;
    for (int p0 = begin_of(row_of(0)) / at_once * at_once + part * at_once; p0 < last;
         p0 += x.parts * at_once) {
      barrier();
      int const i_key = thread() / lanes_of_key, p = p0 + i_key;
      float dots[Q] = {};
      if (p < last) {
        std::byte const* const key = cache.keys + head_at + p * row_bytes;
        for (int c = thread() % lanes_of_key * 8; c < n; c += 8 * lanes_of_key) {
          float k[8];
          read(key, c, n, k);
          DFDX_UNROLL for (int q = 0; q < Q; ++q) {
            DFDX_UNROLL for (int i = 0; i < 8; ++i) dots[q] += k[i] * queries[q * most_size + c + i];
          }
        }
      }
      DFDX_UNROLL for (int q = 0; q < Q; ++q) {
        for (int m = lanes_of_key / 2; m > 0; m /= 2) dots[q] += exchanged(dots[q], m);
        if (thread() % lanes_of_key == 0)
          scores[q * at_once + i_key] = p >= begins[q] && p < ends[q] ? dots[q] : least;
      }
      barrier();
      for (int q = thread() / warp_size; q < Q; q += warps) {
        float* const of_q = scores + q * at_once;
        int const lane = thread() % warp_size;
        float const before = largest[q];
        float most = before, sum = 0;
        DFDX_UNROLL for (int i = 0; i < at_once; i += warp_size) most = std::fmax(most, of_q[lane + i]);
        for (int m = warp_size / 2; m > 0; m /= 2) most = std::fmax(most, exchanged(most, m));
        DFDX_UNROLL for (int i = 0; i < at_once; i += warp_size) {
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
      if constexpr (is_wide) {
        // Threads beside each other have 8 columns each, and the next ones the next position.
        int const c = thread() % lanes_of_value * 8;
        DFDX_UNROLL for (int q = 0; q < Q; ++q) {
          DFDX_UNROLL for (int k = 0; k < 8; ++k) wide[q][k] *= rescale[q];
        }
        if (c < n)
          for (int i = thread() / lanes_of_value; i < end; i += threads / lanes_of_value) {
            float v[8];
            read(cache.values + head_at + (p0 + i) * row_bytes, c, n, v);
            DFDX_UNROLL for (int q = 0; q < Q; ++q) {
              float const by = scores[q * at_once + i];
              DFDX_UNROLL for (int k = 0; k < 8; ++k) wide[q][k] += by * v[k];
            }
          }
      } else {
        DFDX_UNROLL for (int k = 0; k < columns; ++k) {
          int const c = thread() + k * threads;
          if (c >= n) continue;
          DFDX_UNROLL for (int q = 0; q < Q; ++q) sums[q][k] *= rescale[q];
          for (int i = 0; i < end; ++i) {
            float const v = number(cache.values + head_at + (p0 + i) * row_bytes, c);
            DFDX_UNROLL for (int q = 0; q < Q; ++q) sums[q][k] += scores[q * at_once + i] * v;
          }
        }
      }
    }
    if constexpr (is_wide) add_up(wide, lanes_of_value, queries, sums);
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
    if (x.parts != 1)
      join_parts<threads>(x, piece, count, [&](int q) { return row_of(q) * x.heads + head_of(q); });
  }

  // What threads have of the same columns, added up one warp after another; then each thread has its columns.
  static DFDX_INLINE void add_up(float (&wide)[Q][8], int lanes, float* memory, float (&sums)[Q][columns]) {
    int const lane = thread() % warp_size;
    for (int m = lanes; m < warp_size; m *= 2) {
      DFDX_UNROLL for (int q = 0; q < Q; ++q) {
        DFDX_UNROLL for (int k = 0; k < 8; ++k) wide[q][k] += exchanged(wide[q][k], m);
      }
    }
    for (int w = 0; w < threads / warp_size; ++w) {
      barrier();
      if (thread() / warp_size != w || lane >= lanes) continue;
      DFDX_UNROLL for (int q = 0; q < Q; ++q) {
        DFDX_UNROLL for (int k = 0; k < 8; ++k) {
          float& to = memory[q * most_size + lane * 8 + k];
          to = w == 0 ? wide[q][k] : to + wide[q][k];
        }
      }
    }
    barrier();
    DFDX_UNROLL for (int q = 0; q < Q; ++q) {
      DFDX_UNROLL for (int k = 0; k < columns; ++k) sums[q][k] =
          memory[q * most_size + thread() + k * threads];
    }
  }
  // The queries of a row, turned; and the block that sees the row's own position puts its key and value there.
  static DFDX_INLINE void place(SeePositionsArguments const& x, int row, int g, int count, int part,
                                float* queries) {
    using Place = PlaceHeads<E>;
    int const n = x.size, lane = thread() % warp_size, warp = thread() / warp_size, at = x.positions[row];
    int const begin = x.window > 0 && at >= x.window ? at + 1 - x.window : 0;
    bool const is_here = (at / at_once - begin / at_once) % x.parts == part;
    float* const v = shared<Place, float, threads / warp_size * most_size>() + warp * most_size;
    for (int q = warp; q < Q + 2; q += threads / warp_size) {
      if (q < count) Place::turn(x.place, row, g * x.group() + q, v);
      if (q < Q)
        for (int c = lane; c < (n + 7) / 8 * 8; c += warp_size)
          queries[q * most_size + c] = q < count && c < n ? v[c] * x.scale : 0.0f;
      if (q >= Q && is_here) {
        int const head = x.heads + (q - Q) * x.key_heads + g;
        Place::turn(x.place, row, head, v);
        Place::put(x.place, row, head, v);
      }
      warp_barrier();
    }
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
