// SPDX-License-Identifier: BSL-1.0
// Products of rows of 16-bit floats in shared memory by the tensor cores of a warp, as attention needs them.
#pragma once

#include <dfdx/kernels/cuda/threads.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// TensorRows - what a warp does with tiles of numbers T in shared memory whose rows of N are `pitch` apart: 16 bytes
/// more than they need, so that 8 rows below each other lie in different banks.
template <class T, int N>
struct TensorRows {
  static constexpr int pitch = N + 8, steps = N / 16, blocks = N / 8;
  /// A power of 2, and as many as bring a row at least, 16 bytes each.
  static constexpr int lanes_of_row = blocks <= 2    ? 2
                                      : blocks <= 4  ? 4
                                      : blocks <= 8  ? 8
                                      : blocks <= 16 ? 16
                                                     : 32;
  static DFDX_INLINE int lane() { return thread() % warp_size; }
  static DFDX_INLINE int warp() { return thread() / warp_size; }

  /// Columns [16 step, 16 step + 16) of this warp's 16 rows, as the left factor of a product.
  static DFDX_INLINE void left(std::uint32_t (&to)[4], T const* tile, int step) {
    load_matrices<false>(to, tile + (warp() * 16 + lane() % 16) * pitch + lane() / 16 * 8 + step * 16);
  }
  static DFDX_INLINE void left(std::uint32_t (&to)[steps][4], T const* tile) {
    DFDX_UNROLL for (int i = 0; i < steps; ++i) left(to[i], tile, i);
  }
  /// sums += a b^T for the rows b of a tile, 8 for each block of sums; a is this warp's 16 rows.
  template <int Blocks>
  static DFDX_INLINE void multiply(float (&sums)[Blocks][4], std::uint32_t const (&a)[4], T const* b,
                                   int step) {
    T const* const at = b + (lane() % 8 + lane() / 16 * 8) * pitch + lane() / 8 % 2 * 8 + step * 16;
    DFDX_UNROLL for (int j = 0; j < Blocks; j += 2) {
      std::uint32_t rows[4];
      load_matrices<false>(rows, at + j * 8 * pitch);
      multiply_add<T>(sums[j], a, {rows[0], rows[1]});
      multiply_add<T>(sums[j + 1], a, {rows[2], rows[3]});
    }
  }
  template <int Blocks>
  static DFDX_INLINE void multiply(float (&sums)[Blocks][4], std::uint32_t const (&a)[steps][4], T const* b) {
    DFDX_UNROLL for (int i = 0; i < steps; ++i) multiply(sums, a[i], b, i);
  }
  template <int Blocks>
  static DFDX_INLINE void multiply(float (&sums)[Blocks][4], T const* a, T const* b) {
    DFDX_UNROLL for (int i = 0; i < steps; ++i) {
      std::uint32_t rows[4];
      left(rows, a, i);
      multiply(sums, rows, b, i);
    }
  }
  /// sums += f b, where f was summed: 16 of its columns, which are two blocks, meet 16 rows of the tile b.
  template <int Blocks>
  static DFDX_INLINE void add(float (&sums)[blocks][4], float const (&f)[Blocks][4], T const* b) {
    T const* const at = b + lane() % 16 * pitch + lane() / 16 * 8;
    DFDX_UNROLL for (int i = 0; i < Blocks; i += 2) {
      std::uint32_t const factor[4] = {pair_of<T>(f[i][0], f[i][1]), pair_of<T>(f[i][2], f[i][3]),
                                       pair_of<T>(f[i + 1][0], f[i + 1][1]),
                                       pair_of<T>(f[i + 1][2], f[i + 1][3])};
      DFDX_UNROLL for (int j = 0; j < blocks; j += 2) {
        std::uint32_t columns[4];
        load_matrices<true>(columns, at + i * 8 * pitch + j * 8);
        multiply_add<T>(sums[j], factor, {columns[0], columns[1]});
        multiply_add<T>(sums[j + 1], factor, {columns[2], columns[3]});
      }
    }
  }
  /// Element i of block j of sums: its row among those of the tile, and its column.
  static DFDX_INLINE int row(int i) { return warp() * 16 + lane() / 4 + i / 2 * 8; }
  static DFDX_INLINE int column(int j, int i) { return j * 8 + lane() % 4 * 2 + i % 2; }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
