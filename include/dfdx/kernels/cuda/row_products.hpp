// SPDX-License-Identifier: BSL-1.0
// Rows of floats multiplied with matrices as models have them: of f32, of 16 bits, or of blocks of small integers. Few
// rows are a matter of reading the matrix once, of which a warp reads a row; of many rows blocks compute tiles.
#pragma once

#include <dfdx/kernels/cuda/row_forms.hpp>
#include <dfdx/kernels/cuda/tensor_tiles.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// RowProduct - y[m, j] = factor sum_c x[m, c] w[j, c] + bias[j], or that added to y; for up to three matrices with the
/// same x at once, each with y of its own.
///
/// Rows of x are floats; where there are many and the matrix is of 16 bits, SplitRows; of blocks, ByteRows. (Large
/// products of many rows are cuBLASLt's, models/decoder_factor.hpp.)
struct RowProduct {
  struct Matrix {
    std::byte const* numbers = nullptr;
    index_t rows = 0;
    float const* bias = nullptr;
    float* y = nullptr;
  };
  static constexpr int most = 3;
  Matrix of[most];
  int matrices = 0;
  index_t rows = 0, columns = 0, y_row = 0;
  float factor = 1;
  bool adds = false;
  void const* x = nullptr;
  float const* row_scales = nullptr;
  ByteRows bytes{};

  DFDX_INLINE void put(Matrix const& w, index_t m, index_t j, float sum) const {
    float const v = w.bias != nullptr ? factor * sum + w.bias[j] : factor * sum;
    float* const at = w.y + m * y_row + j;
    *at = adds ? *at + v : v;
  }
  /// The work of all matrices, in pieces of `size` of their rows; which matrix piece i is of, and i within it.
  DFDX_INLINE index_t pieces(int size) const {
    index_t n = 0;
    DFDX_UNROLL for (int k = 0; k < most; ++k) n += k < matrices ? (of[k].rows + size - 1) / size : 0;
    return n;
  }
  DFDX_INLINE Matrix find(index_t& i, int size) const {
    Matrix r = of[0];
    DFDX_UNROLL for (int k = 1; k < most; ++k) {
      index_t const before = (r.rows + size - 1) / size;
      if (k >= matrices || i < before) break;
      i -= before;
      r = of[k];
    }
    return r;
  }
};

/// NumberRows, BlockRows - how a lane adds its share of row j of a matrix times M rows of x from m0 on.
template <class E>
struct NumberRows {
  using element = E;
  template <int M>
  static DFDX_INLINE void add(RowProduct const& x, RowProduct::Matrix const& w, index_t j, index_t m0,
                              int lane, float (&sums)[M]) {
    constexpr int chunk = 16 / static_cast<int>(sizeof(E));
    index_t const n = x.columns;
    E const* const row = reinterpret_cast<E const*>(w.numbers) + j * n;
    float const* of[M];
    DFDX_UNROLL for (int i = 0; i < M; ++i) {
      of[i] = static_cast<float const*>(x.x) + (m0 + i < x.rows ? m0 + i : m0) * n;
    }
    if (n % chunk == 0) {
      for (index_t c = lane * chunk; c < n; c += warp_size * chunk) {
        struct Chunk {
          E v[chunk];
        };
        auto const numbers = std::bit_cast<Chunk>(*reinterpret_cast<uint4 const*>(row + c));
        DFDX_UNROLL for (int i = 0; i < M; ++i) {
          DFDX_UNROLL for (int k = 0; k < chunk; k += 4) {
            struct Four {
              float v[4];
            };
            auto const four = std::bit_cast<Four>(*reinterpret_cast<uint4 const*>(of[i] + c + k));
            DFDX_UNROLL for (int l = 0; l < 4; ++l) {
              sums[i] += static_cast<float>(numbers.v[k + l]) * four.v[l];
            }
          }
        }
      }
    } else {
      for (index_t c = lane; c < n; c += warp_size) {
        auto const number = static_cast<float>(row[c]);
        DFDX_UNROLL for (int i = 0; i < M; ++i) sums[i] += number * of[i][c];
      }
    }
  }
};

namespace detail {

DFDX_INLINE void eight_words(std::uint32_t const* from, std::uint32_t (&to)[8]) {
  auto const a = *reinterpret_cast<uint4 const*>(from), b = *reinterpret_cast<uint4 const*>(from + 4);
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}

template <Quant F>
DFDX_INLINE BlockPlanes<F> planes_of(RowProduct const& x, RowProduct::Matrix const& w) {
  return {w.numbers, w.rows * (x.columns / block_length(F))};
}

}  // namespace detail

template <Quant F>
struct BlockRows {
  static constexpr Quant format = F;
  template <int M>
  static DFDX_INLINE void add(RowProduct const& x, RowProduct::Matrix const& w, index_t j, index_t m0,
                              int lane, float (&sums)[M]) {
    index_t const groups = x.columns / 32;
    BlockPlanes<F> const planes = detail::planes_of<F>(x, w);
    // Of rows behind the last the last is taken.
    int const rows = static_cast<int>(x.rows - m0 < M ? x.rows - m0 : M);
    for (index_t g = lane; g < groups; g += warp_size) {
      Group const numbers = planes.group(j * groups + g);
      DFDX_UNROLL for (int i = 0; i < M; ++i) {
        index_t const at = (m0 + (i < rows ? i : rows - 1)) * groups + g;
        std::uint32_t other[8];
        detail::eight_words(x.bytes.q + at * 8, other);
        sums[i] += dot<F>(numbers, other, x.bytes.scales[at], x.bytes.sums[at]);
      }
    }
  }
};

/// FewRows - of M rows of x at a time, a warp for each row of the matrices.
template <class Rows, int M>
struct FewRows {
  static constexpr int threads = 128, warps = threads / warp_size, least_blocks = 4;
  static DFDX_INLINE void run(RowProduct const& x) {
    int const lane = thread() % warp_size;
    index_t const all = x.pieces(1);
    for (index_t t = block() * warps + thread() / warp_size; t < all; t += blocks() * warps) {
      index_t j = t;
      RowProduct::Matrix const w = x.find(j, 1);
      for (index_t m0 = 0; m0 < x.rows; m0 += M) {
        float sums[M] = {};
        Rows::add(x, w, j, m0, lane, sums);
        DFDX_UNROLL for (int i = 0; i < M; ++i) {
          for (int m = warp_size / 2; m > 0; m /= 2) sums[i] += exchanged(sums[i], m);
        }
        DFDX_UNROLL for (int i = 0; i < M; ++i) {
          if (lane == i && m0 + i < x.rows) x.put(w, m0 + i, j, sums[i]);
        }
      }
    }
  }
};

namespace detail {

// Tiles of all matrices, one after another: f(matrix, first row of x, first row of the matrix).
template <int Size, class F>
DFDX_INLINE void each_tile(RowProduct const& x, F const& f) {
  index_t const down = (x.rows + Size - 1) / Size, all = x.pieces(Size) * down;
  for (index_t t = block(); t < all; t += blocks()) {
    index_t piece = t / down;
    RowProduct::Matrix const w = x.find(piece, Size);
    f(w, t % down * Size, piece * Size);
  }
}

}  // namespace detail

/// ManyRows - tiles of 64 x 64.
template <class Rows>
struct ManyRows;

template <class E>
struct ManyRows<NumberRows<E>> {
  static constexpr bool is_split = sizeof(E) == 2;
  using Sums = ProductTile<ManyRows, E, float>;
  static constexpr int threads = Sums::threads, size = Sums::size;

  // Numbers k of a row, and those of its other half from `columns` on; of a matrix the same numbers again.
  struct Factor {
    E const* first;
    index_t columns, half;
    static constexpr bool along_k = true;
    DFDX_INLINE E const* at(index_t row) const { return first + row * columns; }
    DFDX_INLINE E const* place(E const* row, index_t k) const {
      return row + (k < columns ? k : k - columns + half);
    }
    DFDX_INLINE E value(E const* row, index_t k) const { return *place(row, k); }
    DFDX_INLINE bool has_chunk(E const*, index_t) const { return columns % 8 == 0; }
    DFDX_INLINE uint4 chunk(E const* row, index_t k) const {
      return *reinterpret_cast<uint4 const*>(place(row, k));
    }
  };
  static DFDX_INLINE void run(RowProduct const& x) {
    detail::each_tile<size>(x, [&](RowProduct::Matrix const& w, index_t m0, index_t j0) {
      Factor const a{static_cast<E const*>(x.x), x.columns, x.rows * x.columns};
      Factor const b{reinterpret_cast<E const*>(w.numbers), x.columns, 0};
      Sums::run(
          a, b, m0, j0, x.rows, w.rows, 0, is_split ? 2 * x.columns : x.columns,
          [&](index_t m, index_t j, float sum) { x.put(w, m, j, is_split ? sum * x.row_scales[m] : sum); });
    });
  }
};

template <Quant F>
struct ManyRows<BlockRows<F>> {
  // Each of 16 x 16 threads has 4 x 4 sums, 16 apart. Two groups of 32 numbers are in shared memory at a time.
  static constexpr int side = 16, each = 4, size = side * each, threads = side * side, at_once = 2;

  static DFDX_INLINE void run(RowProduct const& x) {
    detail::each_tile<size>(x,
                            [&](RowProduct::Matrix const& w, index_t m0, index_t j0) { tile(x, w, m0, j0); });
  }

 private:
  // Words of a row and room for four, so that what threads read at once lies in different banks.
  static constexpr int pitch = 12;
  struct OfX;
  struct OfW;
  struct Scales;
  struct Sums;

  static DFDX_INLINE void tile(RowProduct const& x, RowProduct::Matrix const& w, index_t m0, index_t j0) {
    auto* const of_x = reinterpret_cast<std::uint32_t*>(shared<OfX, uint4, at_once * size * pitch / 4>());
    auto* const of_w = reinterpret_cast<std::uint32_t*>(shared<OfW, uint4, at_once * size * pitch / 4>());
    // Of x; of w by halves; low numbers of w.
    float* const scales = shared<Scales, float, 4 * at_once * size>();
    std::int32_t* const x_sums = shared<Sums, std::int32_t, at_once * size>();
    index_t const groups = x.columns / 32;
    BlockPlanes<F> const planes = detail::planes_of<F>(x, w);
    int const t = thread(), line = t % size, g = t / size % at_once, row = t / side, column = t % side;
    float sums[each][each] = {};
    for (index_t first = 0; first < groups; first += at_once) {
      barrier();  // until all have used what lies there
      int const at = g * size + line;
      bool const is_there = first + g < groups;
      if (t < at_once * size) {
        Group const v =
            is_there && j0 + line < w.rows ? planes.group((j0 + line) * groups + first + g) : Group{};
        write(of_w + at * pitch, v.q);
        scales[at_once * size + at] = v.scale[0];
        scales[2 * at_once * size + at] = v.scale[1];
        scales[3 * at_once * size + at] = v.low;
      } else {
        std::uint32_t v[8] = {};
        bool const holds = is_there && m0 + line < x.rows;
        index_t const from = holds ? (m0 + line) * groups + first + g : 0;
        if (holds) detail::eight_words(x.bytes.q + from * 8, v);
        write(of_x + at * pitch, v);
        scales[at] = holds ? x.bytes.scales[from] : 0.0f;
        x_sums[at] = holds ? x.bytes.sums[from] : 0;
      }
      barrier();
      DFDX_UNROLL for (int k = 0; k < at_once; ++k) {
        std::int32_t products[each][each] = {};
        DFDX_UNROLL for (int half = 0; half < 2; ++half) {
          uint4 left[each], right[each];
          DFDX_UNROLL for (int i = 0; i < each; ++i) {
            left[i] = *reinterpret_cast<uint4 const*>(of_x + (k * size + row + i * side) * pitch + 4 * half);
            right[i] =
                *reinterpret_cast<uint4 const*>(of_w + (k * size + column + i * side) * pitch + 4 * half);
          }
          DFDX_UNROLL for (int i = 0; i < each; ++i) {
            DFDX_UNROLL for (int j = 0; j < each; ++j) {
              std::int32_t& p = products[i][j];
              if constexpr (F == Quant::q6_k) p = 0;
              p = dot4(right[j].x, left[i].x, p), p = dot4(right[j].y, left[i].y, p);
              p = dot4(right[j].z, left[i].z, p), p = dot4(right[j].w, left[i].w, p);
              if (F == Quant::q6_k || half == 1) {
                int const of_i = k * size + row + i * side, of_j = k * size + column + j * side;
                float v = scales[(1 + (F == Quant::q6_k ? half : 0)) * at_once * size + of_j] *
                          static_cast<float>(p);
                if constexpr (F == Quant::q4_1 || F == Quant::q5_1 || F == Quant::q4_k || F == Quant::q5_k)
                  v += scales[3 * at_once * size + of_j] * static_cast<float>(x_sums[of_i]);
                sums[i][j] += scales[of_i] * v;
              }
            }
          }
        }
      }
    }
    DFDX_UNROLL for (int i = 0; i < each; ++i) {
      DFDX_UNROLL for (int j = 0; j < each; ++j) {
        index_t const m = m0 + row + i * side, n = j0 + column + j * side;
        if (m < x.rows && n < w.rows) x.put(w, m, n, sums[i][j]);
      }
    }
  }
  static DFDX_INLINE void write(std::uint32_t* to, std::uint32_t const (&v)[8]) {
    *reinterpret_cast<uint4*>(to) = {v[0], v[1], v[2], v[3]};
    *reinterpret_cast<uint4*>(to + 4) = {v[4], v[5], v[6], v[7]};
  }
};

/// many_rows_from - from how many rows of x on tiles are computed.
inline constexpr index_t many_rows_from = 17;

/// start_product - starts one; returns what the runtime says.
template <class Rows>
cudaError_t start_product(RowProduct const& x, cudaStream_t stream) {
  if (x.rows == 0 || x.pieces(1) == 0) return cudaSuccess;
  auto const few = [&]<int M>(std::integral_constant<int, M>) {
    using K = FewRows<Rows, M>;
    index_t const blocks = (x.pieces(1) + K::warps - 1) / K::warps;
    return start<K>(x, blocks < (1 << 20) ? blocks : 1 << 20, stream);
  };
  if (x.rows == 1) return few(std::integral_constant<int, 1>{});
  if (x.rows < many_rows_from) return few(std::integral_constant<int, 4>{});
  using K = ManyRows<Rows>;
  index_t const tiles = x.pieces(K::size) * ((x.rows + K::size - 1) / K::size);
  return start<K>(x, tiles < (1 << 20) ? tiles : 1 << 20, stream);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
