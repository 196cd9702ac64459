// SPDX-License-Identifier: BSL-1.0
// Attention of 16-bit floats on devices, by tensor cores (Dao 2023, "FlashAttention-2"): a warp has 16 rows of a tile
// of scores in the registers in which it sums them, which are those it has them in as a factor of the next product; so
// neither scores nor weights are ever in memory, not even in that of the block.
//
// Numerics: sums, scores, largest scores and sums of weights are f32. Weights are rounded to the dtype of the operands
// before they are multiplied with values, relative to the largest score so far, so that none is above 1.
#pragma once

#include <dfdx/kernels/cuda/attention_facts.hpp>
#include <dfdx/kernels/cuda/packs.hpp>
#include <dfdx/kernels/cuda/tensor_rows.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// TensorAttention - what is known of attention of 16-bit floats T when it is compiled. Rows are as long as a multiple
/// of 16 for tensor cores: behind their elements they have zeros.
template <class Code, class T>
struct TensorAttention {
  using F = AttentionFacts<Code, T, 2>;
  static constexpr int threads = 128, rows = 64;
  static constexpr int whole(index_t n) { return static_cast<int>((n + 15) / 16 * 16); }
  static constexpr int size = whole(F::size_room), width = whole(F::width_room);
  using OfSize = TensorRows<T, size>;
  using OfWidth = TensorRows<T, width>;
  static constexpr index_t most_elements = F::most_bytes / 2;
  static constexpr bool is_narrow = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
  static constexpr float log2_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;
  static constexpr float least = -std::numeric_limits<float>::infinity();

  /// Rows of a matrix of N columns into shared memory where they are `To::pitch` apart: as many as there are of Rows,
  /// and zeros. Those that are aligned are there when their copies are made. Threads keep to their columns: how far it
  /// is from one row of theirs to the next is known, and needs no registers.
  template <class To, int Rows, index_t N, index_t ByRow, index_t ByColumn>
  static DFDX_INLINE void bring(T* to, T const* from, index_t left) {
    constexpr int lanes = To::lanes_of_row, by = threads / lanes;
    constexpr bool may_be_wide = ByColumn == 1 && ByRow % 8 == 0 && N % 8 == 0;
    int const c = thread() % lanes * 8, first = thread() / lanes;
    int const rest = (left < Rows ? static_cast<int>(left) : Rows) - first, all = Rows - first;
    if (To::blocks < lanes && c >= To::blocks * 8) return;
    to += first * To::pitch + c;
    from += first * ByRow + c * ByColumn;
    if (may_be_wide && detail::is_aligned<uint4>(from)) {
      DFDX_UNROLL for (int r = 0; r < Rows; r += by) {
        if (r < rest && c < N) copy_later<16>(to + r * To::pitch, from + r * ByRow);
        else if (Rows % by == 0 || r < all) *reinterpret_cast<uint4*>(to + r * To::pitch) = uint4{0, 0, 0, 0};
      }
      return;
    }
    for (int r = 0; r < all; r += by) {
      Pack<T, 8> x{};
      DFDX_UNROLL for (int j = 0; j < 8; ++j) {
        if (r < rest && c + j < N) x.x[j] = from[r * ByRow + j * ByColumn];
      }
      *reinterpret_cast<uint4*>(to + r * To::pitch) = std::bit_cast<uint4>(x);
    }
  }
  /// Rows `first` and on of matrix `index` of operand K.
  template <int K, int Rows>
  static DFDX_INLINE void bring(T* to, OwnArguments const& x, index_t index, index_t first) {
    using W = typename F::W;
    constexpr index_t columns = F::template room<K>(), by_row = W::template stride<K, F::rank - 2>(nullptr),
                      by_column = W::template stride<K, F::rank - 1>(nullptr);
    index_t const n = W::template extent<K, F::rank - 2>(x.symbols);
    T const* const from = F::template matrix<K>(x, index) + first * by_row;
    bring<std::conditional_t<K >= 2, OfWidth, OfSize>, Rows, columns, by_row, by_column>(to, from, n - first);
  }
  /// Columns of a tile of scores, whose first is `key`, that a query sees: of `most`.
  static DFDX_INLINE int seen(op::AttentionOptions const& o, index_t query, index_t key, int most,
                              index_t const* s) {
    index_t n = F::keys(s) - key;
    if (o.causal && query + o.offset + 1 - key < n) n = query + o.offset + 1 - key;
    return n < most ? static_cast<int>(n) : most;
  }

  /// What `scale` times a score is less, so that 2 to the power of the rest is its weight: of the logarithm of a sum.
  static DFDX_INLINE float shift_of(float log_sum) { return F::lowered(log_sum) * log2_e; }
  /// That power, by which no weight is above 1.
  static DFDX_INLINE float power_of(float score, float scale, float shift) {
    return smaller(score * scale - shift, 0.f);
  }
  /// Scores of a tile whose first key is k0, of the 16 rows from `upper` on that this warp has, become weights relative
  /// to the largest in their row so far; `factor` is what those before are to be multiplied with. Each thread adds up
  /// its own part of the rows.
  template <int Blocks>
  static DFDX_INLINE void weigh(float (&s)[Blocks][4], op::AttentionOptions const& o, float scale,
                                index_t upper, index_t k0, index_t const* symbols, float (&largest)[2],
                                float (&total)[2], float (&factor)[2]) {
    constexpr int tile = Blocks * 8;
    float const by = F::factor_of_largest(scale);
    if (by != scale) DFDX_UNROLL for (int j = 0; j < Blocks; ++j) {
        DFDX_UNROLL for (int i = 0; i < 4; ++i) s[j][i] *= scale;
      }
    if (seen(o, upper, k0, tile, symbols) < tile) {
      index_t const row = upper + OfSize::lane() / 4;
      int const n[2] = {seen(o, row, k0, tile, symbols), seen(o, row + 8, k0, tile, symbols)};
      DFDX_UNROLL for (int j = 0; j < Blocks; ++j) {
        DFDX_UNROLL for (int i = 0; i < 4; ++i) {
          if (OfSize::column(j, i) >= n[i / 2]) s[j][i] = least;
        }
      }
    }
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      float most = largest[r];
      DFDX_UNROLL for (int j = 0; j < Blocks; ++j) {
        DFDX_UNROLL for (int i = 2 * r; i < 2 * r + 2; ++i) most = larger(most, s[j][i]);
      }
      DFDX_UNROLL for (int m = 1; m < 4; m *= 2) most = larger(most, exchanged(most, m));
      // A row that has seen nothing yet stays as it is.
      float const shift = most == least ? 0.f : most;
      factor[r] = fast_exp2((largest[r] - shift) * by);
      largest[r] = most;
      float part = 0;
      DFDX_UNROLL for (int j = 0; j < Blocks; ++j) {
        DFDX_UNROLL for (int i = 2 * r; i < 2 * r + 2; ++i) {
          s[j][i] = fast_exp2((s[j][i] - shift) * by);
          part += s[j][i];
        }
      }
      total[r] = total[r] * factor[r] + part;
    }
  }
  /// Rows `upper` and `upper` + 8 and on, of `count`, that a thread has sums of, each times its number, to rows of n.
  template <int Blocks>
  static DFDX_INLINE void store_rows(T* to, index_t upper, index_t count, index_t n, float const (&by)[2],
                                     float const (&sums)[Blocks][4]) {
    bool const in_pairs = n % 2 == 0 && detail::is_aligned<std::uint32_t>(to);
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      index_t const row = upper + OfSize::lane() / 4 + r * 8;
      if (row >= count) continue;
      DFDX_UNROLL for (int j = 0; j < Blocks; ++j) {
        int const c = OfSize::column(j, 2 * r);
        float const first = sums[j][2 * r] * by[r], second = sums[j][2 * r + 1] * by[r];
        if (in_pairs) {
          if (c < n) *reinterpret_cast<std::uint32_t*>(to + row * n + c) = pair_of<T>(first, second);
        } else {
          if (c < n) to[row * n + c] = static_cast<T>(first);
          if (c + 1 < n) to[row * n + c + 1] = static_cast<T>(second);
        }
      }
    }
  }
  /// Results of those rows, and the logarithms of their sums of weights.
  template <int Blocks>
  static DFDX_INLINE void store(OwnArguments const& x, index_t head, index_t upper, float scale,
                                float const (&y)[Blocks][4], float const (&largest)[2],
                                float const (&total)[2]) {
    index_t const* const s = x.symbols;
    index_t const width = F::width(s), queries = F::queries(s), first = head * queries;
    float sum[2], by[2];
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      sum[r] = total[r];
      DFDX_UNROLL for (int m = 1; m < 4; m *= 2) sum[r] += exchanged(sum[r], m);
      by[r] = 1 / sum[r];
    }
    if (auto* const to = static_cast<T*>(x.base[3]); to != nullptr)
      store_rows(to + first * width, upper, queries, width, by, y);
    auto* const sums = static_cast<float*>(x.base[4]);
    if (sums == nullptr || OfWidth::lane() % 4 != 0) return;
    DFDX_UNROLL for (int r = 0; r < 2; ++r) {
      index_t const query = upper + OfWidth::lane() / 4 + r * 8;
      if (query >= queries) continue;
      sums[first + query] = (largest[r] * F::factor_of_largest(scale) + math::log2(sum[r])) * ln_2;
    }
  }
};

/// TensorAttendKernel - AttendKernel for 16-bit floats: a block for 64 queries of a head, 16 for each warp.
template <class Code, class T>
struct TensorAttendKernel {
  using A = TensorAttention<Code, T>;
  using F = typename A::F;
  using OfSize = typename A::OfSize;
  using OfWidth = typename A::OfWidth;
  static constexpr int rows = A::rows;
  static constexpr int room(int keys) {
    int const both = keys * (OfSize::pitch + OfWidth::pitch), queries = rows * OfSize::pitch;
    return both > queries ? both : queries;
  }
  /// Keys of a tile, as many as registers and shared memory hold; 0 if rows are too long for any.
  static constexpr int tile = !A::is_narrow || A::size > 256 || A::width > 256 ? 0
                              : A::size + A::width <= 256                      ? 64
                              : A::size + A::width <= 384                      ? 32
                                                                               : 16;
  static_assert(room(tile) <= A::most_elements || tile == 0);
  static constexpr int threads = A::threads;
  static DFDX_INLINE constexpr index_t tiles(index_t const* s) { return (F::queries(s) + rows - 1) / rows; }
  static constexpr index_t work(index_t const* s) { return F::heads(s) * tiles(s) * threads; }
  struct OfTiles;

  static DFDX_INLINE void run(OwnArguments const& x) {
    // Blocks of the last queries, which see the most keys, begin first.
    index_t const each = tiles(x.symbols), all = F::heads(x.symbols) * each;
    for (index_t t = block(); t < all; t += blocks()) some(x, t / each, (each - 1 - t % each) * rows);
  }

 private:
  static constexpr int scored = tile == 0 ? 1 : tile / 8;  // what is not chosen is read too
  static DFDX_INLINE void some(OwnArguments const& x, index_t head, index_t first) {
    auto const o = op::AttentionOptions::of(x.attrs);
    T* const keys = reinterpret_cast<T*>(shared<OfTiles, uint4, room(tile) / 8>());
    T* const values = keys + tile * OfSize::pitch;
    index_t const* const symbols = x.symbols;
    index_t const keyed = head / F::sharing(symbols), last_seen = first + rows + o.offset,
                  all = F::keys(symbols), end = o.causal && last_seen < all ? last_seen : all;
    index_t const upper = first + OfSize::warp() * 16;
    auto const scale = static_cast<float>(o.scale) * A::log2_e;
    std::uint32_t q[OfSize::steps][4];
    barrier();  // until all have used what lies there
    A::template bring<0, rows>(keys, x, head, first);
    copies_made();
    barrier();
    OfSize::left(q, keys);
    barrier();
    A::template bring<1, tile>(keys, x, keyed, 0);
    float largest[2] = {A::least, A::least}, total[2] = {};
    float y[OfWidth::blocks][4] = {};
    for (index_t k0 = 0; k0 < end; k0 += tile) {
      // Values are on their way while scores are computed, and the next keys while values are added.
      copies_made();
      barrier();
      A::template bring<2, tile>(values, x, keyed, k0);
      float s[scored][4] = {};
      OfSize::multiply(s, q, keys);
      copies_made();
      barrier();
      if (k0 + tile < end) A::template bring<1, tile>(keys, x, keyed, k0 + tile);
      float factor[2];
      A::weigh(s, o, scale, upper, k0, symbols, largest, total, factor);
      DFDX_UNROLL for (int j = 0; j < OfWidth::blocks; ++j) {
        DFDX_UNROLL for (int i = 0; i < 4; ++i) y[j][i] *= factor[i / 2];
      }
      OfWidth::add(y, s, values);
    }
    A::store(x, head, upper, scale, y, largest, total);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
