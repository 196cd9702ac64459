// SPDX-License-Identifier: BSL-1.0
// Sums of products of 16-bit floats for a tile of a result, by tensor cores: as kernels/cuda/tiles.hpp, with 128
// threads.
#pragma once

#include <bit>

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/cuda/tiles.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// TensorTile - c[m, n] = sum_k a[m, k] b[k, n] for 64 x 64 of the (m, n) of a product of numbers T, f16 or bf16, with
/// sums in f32. Factors are as those of Tile; one with `chunk(place, k)` gives the 8 elements from k on at once, where
/// `has_chunk(place, k)`.
///
/// Each of 4 warps has 32 x 32 of the result: 2 x 4 of the products of 16 x 16 by 16 x 8 that a warp makes at once.
template <class Use, class T>
struct TensorTile {
  static constexpr int size = 64, depth = 32, threads = 128;

  /// run - store(m, n, sum) for each of them; k from `begin` to `end`.
  template <class A, class B, class Store>
  static DFDX_INLINE void run(A const& a, B const& b, index_t row0, index_t column0, index_t rows,
                              index_t columns, index_t begin, index_t end, Store const& store) {
    T* const of_a = reinterpret_cast<T*>(shared<OfA, uint4, size * pitch / chunk>());
    T* const of_b = reinterpret_cast<T*>(shared<OfB, uint4, size * pitch / chunk>());
    Loads<A> from_a(a, row0, rows);
    Loads<B> from_b(b, column0, columns);
    int const lane = thread() % warp_size, warp = thread() / warp_size;
    int const row = warp / 2 * 32, column = warp % 2 * 32, group = lane / 4, in_group = lane % 4;
    float sums[2][4][4] = {};
    Chunk next_a[each], next_b[each];
    from_a.read(next_a, begin, end);
    from_b.read(next_b, begin, end);
    for (index_t k = begin; k < end; k += depth) {
      barrier();  // until all have used what lies there
      from_a.write(next_a, of_a);
      from_b.write(next_b, of_b);
      barrier();
      from_a.read(next_a, k + depth, end);
      from_b.read(next_b, k + depth, end);
      DFDX_UNROLL for (int p = 0; p < depth; p += 16) {
        std::uint32_t left[2][4], right[4][2];
        DFDX_UNROLL for (int i = 0; i < 2; ++i) {
          T const* const from = of_a + (row + i * 16 + group) * pitch + p + 2 * in_group;
          left[i][0] = pair(from), left[i][1] = pair(from + 8 * pitch);
          left[i][2] = pair(from + 8), left[i][3] = pair(from + 8 * pitch + 8);
        }
        DFDX_UNROLL for (int j = 0; j < 4; ++j) {
          T const* const from = of_b + (column + j * 8 + group) * pitch + p + 2 * in_group;
          right[j][0] = pair(from), right[j][1] = pair(from + 8);
        }
        DFDX_UNROLL for (int i = 0; i < 2; ++i) {
          DFDX_UNROLL for (int j = 0; j < 4; ++j) multiply_add<T>(sums[i][j], left[i], right[j]);
        }
      }
    }
    DFDX_UNROLL for (int i = 0; i < 2; ++i) {
      DFDX_UNROLL for (int j = 0; j < 4; ++j) {
        DFDX_UNROLL for (int c = 0; c < 4; ++c) {
          index_t const m = row0 + row + i * 16 + group + c / 2 * 8,
                        n = column0 + column + j * 8 + 2 * in_group + c % 2;
          if (m < rows && n < columns) store(m, n, sums[i][j][c]);
        }
      }
    }
  }

 private:
  struct OfA;
  struct OfB;
  static constexpr int chunk = 8, each = size * depth / chunk / threads;
  // Rows a chunk longer than they need to be: what a warp reads or writes at once lies in different banks.
  static constexpr int pitch = depth + chunk;
  struct Chunk {
    T x[chunk];
  };
  static DFDX_INLINE std::uint32_t pair(T const* from) {
    return *reinterpret_cast<std::uint32_t const*>(from);
  }

  // The two chunks of a factor that a thread brings, each time.
  template <class Factor>
  struct Loads : FactorLines<Factor, threads, size, depth, chunk> {
    using FactorLines<Factor, threads, size, depth, chunk>::FactorLines, Loads::FactorLines::factor,
        Loads::FactorLines::places, Loads::FactorLines::holds, Loads::FactorLines::line,
        Loads::FactorLines::step;
    DFDX_INLINE void read(Chunk (&to)[each], index_t k0, index_t end) const {
      DFDX_UNROLL for (int i = 0; i < each; ++i) {
        index_t const k = k0 + step(i);
        if constexpr (requires { factor.has_chunk(places[i], k); }) {
          if (holds[i] && k + chunk <= end && factor.has_chunk(places[i], k)) {
            to[i] = std::bit_cast<Chunk>(factor.chunk(places[i], k));
            continue;
          }
        }
        DFDX_UNROLL for (int j = 0; j < chunk; ++j) {
          to[i].x[j] = holds[i] && k + j < end ? static_cast<T>(factor.value(places[i], k + j)) : T{};
        }
      }
    }
    DFDX_INLINE void write(Chunk const (&from)[each], T* to) const {
      DFDX_UNROLL for (int i = 0; i < each; ++i) {
        *reinterpret_cast<uint4*>(to + line(i) * pitch + step(i)) = std::bit_cast<uint4>(from[i]);
      }
    }
  };
};

/// ProductTile - how tiles of products of numbers T with sums of type Sum are computed.
template <class Use, class T, class Sum>
using ProductTile = std::conditional_t<(std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) &&
                                           std::is_same_v<Sum, float>,
                                       TensorTile<Use, T>, Tile<Use, Sum>>;

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
