// SPDX-License-Identifier: BSL-1.0
// What kernels of attention know of their operands, and tiles of products by multiplications of single numbers.
#pragma once

#include <bit>
#include <limits>

#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/kernels/cuda/packs.hpp>
#include <dfdx/value/attention_options.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// AttentionFacts - what is known of attend and attend_sums (operands q, k, v of T, the results of both, of which one
/// may be missing) and of attend_back (q, k, v, the cotangents, what ops/attention.hpp calls `sums`, the result). Code
/// says all extents or, where they come with each call, the most columns of a matrix, for which there is room. Sums
/// are numbers C.
///
/// A tile has some rows of queries and `tile` keys (or the other way round), of which 8 by 8 threads have several rows
/// and columns each: what a thread reads 16 bytes at a time from memory of the block it multiplies several times.
template <class Code, class T, int Tiles>
struct AttentionFacts {
  using W = Walks<Code>;
  using C = compute_t<T>;
  static constexpr int rank = W::template rank<0>;
  static DFDX_INLINE constexpr index_t queries(index_t const* s) {
    return W::template extent<0, rank - 2>(s);
  }
  static DFDX_INLINE constexpr index_t keys(index_t const* s) { return W::template extent<1, rank - 2>(s); }
  template <int K>
  static DFDX_INLINE constexpr index_t columns(index_t const* s) {
    return W::template extent<K, rank - 1>(s);
  }
  static DFDX_INLINE constexpr index_t size(index_t const* s) { return columns<0>(s); }
  static DFDX_INLINE constexpr index_t width(index_t const* s) { return columns<2>(s); }
  static DFDX_INLINE constexpr index_t heads(index_t const* s) {
    return W::template count<0, 0, rank - 2>(s);
  }
  static DFDX_INLINE constexpr index_t key_heads(index_t const* s) {
    return W::template count<1, 0, rank - 2>(s);
  }
  static DFDX_INLINE constexpr index_t sharing(index_t const* s) { return heads(s) / key_heads(s); }
  static DFDX_INLINE constexpr index_t rows(index_t const* s) { return heads(s) * queries(s); }
  /// How many columns of operand K there is room for, zeros behind its own.
  template <int K>
  static constexpr index_t room() {
    if constexpr (requires { Code::most_columns; }) return Code::most_columns;
    else return columns<K>(nullptr);
  }
  static constexpr index_t size_room = room<0>(), width_room = room<2>();

  static constexpr int lanes = 8, groups = 8, threads = lanes * groups;
  /// As many as have memory: the compiler is then free to use all registers.
  static constexpr int least_blocks = 4;
  static constexpr int pack = 16 / static_cast<int>(sizeof(C));
  using Packed = Pack<C, pack>;
  static constexpr int whole(index_t n) { return static_cast<int>((n + pack - 1) / pack * pack); }
  // An odd number of 16 bytes from one row to the next: those of eight rows lie in different banks.
  static constexpr int widest = whole(size_room > width_room ? size_room : width_room),
                       pitch = widest / pack % 2 == 1 ? widest : widest + pack;
  static constexpr index_t bytes(int of_rows, int of_columns) {
    int const numbers = Tiles / 2 * (of_rows + of_columns) * pitch + of_rows * (of_columns + lanes);
    return numbers * static_cast<index_t>(sizeof(C));
  }
  static constexpr index_t most_bytes = index_t{47} << 10;  // of 48 KiB: arrays are aligned
  /// Columns of a tile; 0 if rows are too long for any.
  static constexpr int tile = bytes(32, 32) <= most_bytes   ? 32
                              : bytes(16, 16) <= most_bytes ? 16
                              : bytes(8, 8) <= most_bytes   ? 8
                                                            : 0;
  /// Its rows: of two tiles for gradients as many as columns, since they change places.
  static constexpr int tile_rows = Tiles == 2 && bytes(2 * tile, tile) <= most_bytes ? 2 * tile : tile;
  static constexpr int own_rows = tile == 0 ? 1 : tile_rows / groups,
                       own_columns = tile == 0 ? 1 : tile / lanes;
  static constexpr index_t tiles_of(index_t n, int of) { return of == 0 ? 0 : (n + of - 1) / of; }

  /// Row i and column j of those of a tile that this thread has.
  static DFDX_INLINE int row(int i) { return thread() / lanes + i * groups; }
  static DFDX_INLINE int column(int j) { return thread() % lanes + j * lanes; }
  static DFDX_INLINE C row_sum(C x) {
    for (int m = lanes / 2; m > 0; m /= 2) x = x + exchanged(x, m);
    return x;
  }
  static DFDX_INLINE C row_max(C x) {
    for (int m = lanes / 2; m > 0; m /= 2) {
      C const y = exchanged(x, m);
      x = y > x ? y : x;
    }
    return x;
  }

  /// Matrix `index` of operand K.
  template <int K>
  static DFDX_INLINE T const* matrix(OwnArguments const& x, index_t index) {
    return static_cast<T const*>(x.base[K]) + W::template offset<K, 0, rank - 2>(index, x.symbols);
  }
  /// Scores less the largest in their row are multiplied with this: of the largest 0 is left, however far products are
  /// rounded. A factor that turns the order of scores multiplies them before.
  static DFDX_INLINE C factor_of_largest(C scale) { return scale > C(0) ? scale : C(1); }
  /// lowered - the logarithm of a sum of weights, or, where it is so large that its rounding could be seen, a little
  /// less: then the largest score, which it is about, is not below it, though its product is rounded otherwise here.
  static DFDX_INLINE C lowered(C log_sum) {
    C const less = (log_sum < C(0) ? -log_sum : log_sum) * (3 * std::numeric_limits<C>::epsilon());
    return less > C(0.0625) ? log_sum - less : log_sum;
  }
  /// Of attend_back, element i of `sums`.
  static DFDX_INLINE C const& sums(OwnArguments const& x, index_t i) {
    return static_cast<C const*>(x.base[4])[i * W::template stride<4, 0>(x.symbols)];
  }
  /// Memory of the block for N numbers.
  template <class Use, int N>
  static DFDX_INLINE C* memory() {
    return reinterpret_cast<C*>(shared<Use, uint4, N / pack>());
  }
  static DFDX_INLINE Packed packed(C const* p) {
    return std::bit_cast<Packed>(*reinterpret_cast<uint4 const*>(p));
  }
  /// Rows `first` and on of a matrix of operand K into memory of the block, zeros behind the last and behind their
  /// ends.
  template <int K, int Rows>
  static DFDX_INLINE void bring(C* to, T const* from, index_t first, index_t const* s) {
    constexpr int packs = whole(room<K>()) / pack;
    index_t const left = W::template extent<K, rank - 2>(s) - first, count = columns<K>(s),
                  by_row = W::template stride<K, rank - 2>(s), by_column = W::template stride<K, rank - 1>(s);
    from += first * by_row;
    for (int i = thread(); i < Rows * packs; i += threads) {
      int const r = i / packs, c = i % packs * pack;
      T const* const at = from + r * by_row + c * by_column;
      auto* const there = reinterpret_cast<uint4*>(to + r * pitch + c);
      if constexpr (std::is_same_v<T, C>)
        if (by_column == 1 && r < left && c + pack <= count && detail::is_aligned<uint4>(at)) {
          *there = *reinterpret_cast<uint4 const*>(at);
          continue;
        }
      Packed x{};
      DFDX_UNROLL for (int j = 0; j < pack; ++j) {
        if (r < left && c + j < count) x.x[j] = static_cast<C>(at[j * by_column]);
      }
      *there = std::bit_cast<uint4>(x);
    }
  }

  /// s = a b^T of a tile, of rows of N numbers: this thread's rows of a with its columns, rows of b.
  template <index_t N, int Rows, int Columns>
  static DFDX_INLINE void multiply(C (&s)[Rows][Columns], C const* a, C const* b) {
    DFDX_UNROLL for (int i = 0; i < Rows; ++i) {
      DFDX_UNROLL for (int j = 0; j < Columns; ++j) s[i][j] = C(0);
    }
    a += row(0) * pitch, b += column(0) * pitch;
    DFDX_UNROLL_FEW for (int c = 0; c < whole(N); c += pack) {
      Packed left[Rows], right[Columns];
      DFDX_UNROLL for (int i = 0; i < Rows; ++i) left[i] = packed(a + i * groups * pitch + c);
      DFDX_UNROLL for (int j = 0; j < Columns; ++j) right[j] = packed(b + j * lanes * pitch + c);
      DFDX_UNROLL for (int e = 0; e < pack; ++e) {
        DFDX_UNROLL for (int i = 0; i < Rows; ++i) {
          DFDX_UNROLL for (int j = 0; j < Columns; ++j) s[i][j] = s[i][j] + left[i].x[e] * right[j].x[e];
        }
      }
    }
  }
  /// Weights of a tile in memory of the block: element (row, column) of a row's, which are so far apart.
  static constexpr int weights_pitch = tile + lanes;
  static DFDX_INLINE C& weight(C* weights, int i, int j) {
    return weights[row(i) * weights_pitch + column(j)];
  }
  /// Of rows of N numbers a thread has `packs` times 16 bytes, each so many numbers behind the last.
  template <index_t N>
  static constexpr int packs = (whole(N) + lanes * pack - 1) / (lanes * pack);
  static DFDX_INLINE int first_of(int u) { return (u * lanes + thread() % lanes) * pack; }
  /// y += weights b for this thread's rows, of the `tile` rows of b, which have N numbers.
  template <index_t N, int Rows>
  static DFDX_INLINE void add(Packed (&y)[Rows][packs<N>], C const* weights, C const* b) {
    weights += row(0) * weights_pitch;
    DFDX_UNROLL_FEW for (int k = 0; k < tile; k += pack) {
      Packed w[Rows];
      DFDX_UNROLL for (int i = 0; i < Rows; ++i) w[i] = packed(weights + i * groups * weights_pitch + k);
      DFDX_UNROLL for (int e = 0; e < pack; ++e) {
        DFDX_UNROLL for (int u = 0; u < packs<N>; ++u) {
          if (first_of(u) >= whole(N)) continue;
          Packed const v = packed(b + (k + e) * pitch + first_of(u));
          DFDX_UNROLL for (int i = 0; i < Rows; ++i) {
            DFDX_UNROLL for (int d = 0; d < pack; ++d) y[i][u].x[d] = y[i][u].x[d] + w[i].x[e] * v.x[d];
          }
        }
      }
    }
  }
  /// This thread's numbers of a row, divided by `by`, to the `count` there are.
  template <int Packs>
  static DFDX_INLINE void write(T* to, index_t count, Packed const (&y)[Packs], C by) {
    DFDX_UNROLL for (int u = 0; u < Packs; ++u) {
      int const c = first_of(u);
      Packed x = y[u];
      DFDX_UNROLL for (int d = 0; d < pack; ++d) x.x[d] = x.x[d] / by;
      if constexpr (std::is_same_v<T, C>)
        if (c + pack <= count && detail::is_aligned<uint4>(to + c)) {
          *reinterpret_cast<uint4*>(to + c) = std::bit_cast<uint4>(x);
          continue;
        }
      DFDX_UNROLL for (int d = 0; d < pack; ++d) {
        if (c + d < count) to[c + d] = static_cast<T>(x.x[d]);
      }
    }
  }
  static DFDX_INLINE bool sees(op::AttentionOptions const& o, index_t query, index_t key, index_t const* s) {
    return query < queries(s) && key < keys(s) && (!o.causal || key <= query + o.offset);
  }
  /// Where the keys end that the queries before `query` see.
  static DFDX_INLINE index_t end_of_keys(op::AttentionOptions const& o, index_t query, index_t const* s) {
    index_t const seen = query + o.offset, all = keys(s);
    return o.causal && seen < all ? seen : all;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
