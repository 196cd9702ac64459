// SPDX-License-Identifier: BSL-1.0
// Matrix products of f16 and bf16 on Hopper GPUs: one warp has the copy engine bring pieces of both factors to memory
// of the block, also of the next tile, and two warpgroups multiply what has come.
#pragma once

#include <bit>

#include <dfdx/kernels/cuda/tensor_map.hpp>
#include <dfdx/kernels/cuda/warpgroups.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// WarpgroupArguments - those of the product's step, and what the copy engine and the tiles need besides.
template <class Arguments>
struct WarpgroupArguments {
  CUtensorMap a, b;
  Arguments step;
  void* c;
  index_t c_row, c_column, c_batch;
  int m, n, k, batch;
  bool a_in_batch, b_in_batch;
};

/// WarpgroupProduct - c[m, n] = sum_k a[m, k] b[k, n] of numbers T with sums in f32. Step says what is stored of a sum,
/// `stored(arguments, sum, m, n)`. Across: lines of a factor go along m, or n, not along k.
///
/// A tile has 128 rows, 64 for each warpgroup that multiplies, and Columns columns, 128 or 256.
template <class Step, class Arguments, class T, int Columns, bool AcrossA, bool AcrossB>
struct WarpgroupProduct : WarpgroupKernel {
  using Given = WarpgroupArguments<Arguments>;
  static constexpr int rows = 128, depth = cuda_runtime::bulk_line;
  // A stage holds what is multiplied at once: 64 numbers along k of all rows and columns.
  static constexpr int line = depth * static_cast<int>(sizeof(T)), of_a = rows * line, of_b = Columns * line;
  static constexpr int stage_bytes = of_a + of_b, stages = (192 << 10) / stage_bytes;
  static constexpr int dynamic_bytes = stages * stage_bytes + 1024;  // which begin at a multiple of 1024

  /// Lines that a map of a factor copies at once.
  static constexpr int lines_of_a = AcrossA ? depth : rows, lines_of_b = AcrossB ? depth : Columns;
  static_assert(stages >= 2, "a stage is given back when the next has been asked for");
  static_assert(lines_of_a <= 256 && lines_of_b <= 256 && dynamic_bytes <= 227 << 10);

  static constexpr index_t tiles(index_t m, index_t n, index_t batch) {
    return (m + rows - 1) / rows * ((n + Columns - 1) / Columns) * batch;
  }

  static DFDX_INLINE void run([[maybe_unused]] Given const& x) {
#if defined(DFDX_HAS_WARPGROUPS)
    divided<WarpgroupProduct>(x);
#endif
  }

 private:
#if defined(DFDX_HAS_WARPGROUPS)
  template <class Kernel, class G>
  friend void divided(G const& given);
  using Barriers = Pipe<stages>;

  // Where a tile lies. Blocks that run at the same time have tiles of few rows and few columns.
  struct Place {
    int matrix, row, column;
  };
  static DFDX_INLINE Place place(Given const& x, int tile) {
    constexpr int high = 8;
    int const down = (x.m + rows - 1) / rows, across = (x.n + Columns - 1) / Columns;
    int const in_matrix = tile % (down * across), first = in_matrix / (high * across) * high;
    int const height = down - first < high ? down - first : high, rest = in_matrix - first * across;
    return {tile / (down * across), (first + rest % height) * rows, rest / height * Columns};
  }

  template <bool Across>
  static DFDX_INLINE void bring_factor(std::byte* to, CUtensorMap const& map, int size, int first, int k,
                                       BulkPlace matrix, TransferBarrier& done) {
    if constexpr (Across)
      for (int i = 0; i < size; i += depth) bulk_copy(to + i * line, map, first + i, k, matrix, done);
    else bulk_copy(to, map, k, first, matrix, done);
  }

  // Lines across k lie in blocks of 64 each, one behind another.
  static constexpr int block_bytes = depth * line;
  template <bool Across>
  static DFDX_INLINE std::uint64_t factor(std::byte const* first) {
    if constexpr (Across) return across_k(first, block_bytes);
    else return along_k(first);
  }

  static DFDX_INLINE void bring(Given const& x, std::byte* memory, Barriers& pipe) {
    prefetch_map(x.a), prefetch_map(x.b);
    Turn<stages> turn;
    int const all = static_cast<int>(tiles(x.m, x.n, x.batch));
    for (int t = static_cast<int>(block()); t < all; t += static_cast<int>(blocks())) {
      Place const at = place(x, t);
      for (int k = 0; k < x.k; k += depth, turn.next()) {
        pipe.used[turn.place].wait(turn.parity ^ 1);
        TransferBarrier& done = pipe.full[turn.place];
        done.arrive_and_expect(stage_bytes);
        std::byte* const to = memory + turn.place * stage_bytes;
        bring_factor<AcrossA>(to, x.a, rows, at.row, k, BulkPlace{x.a_in_batch ? at.matrix : 0}, done);
        bring_factor<AcrossB>(to + of_a, x.b, Columns, at.column, k, BulkPlace{x.b_in_batch ? at.matrix : 0},
                              done);
      }
    }
  }

  static DFDX_INLINE void multiply(Given const& x, std::byte* memory, Barriers& pipe) {
    int const group = thread() / warpgroup_size - 1;
    bool const speaks = thread() % warp_size == 0;
    // A step of 16 along k is so far in memory.
    constexpr int step_a = AcrossA ? 16 * line : 32, step_b = AcrossB ? 16 * line : 32;
    Turn<stages> turn;
    int const all = static_cast<int>(tiles(x.m, x.n, x.batch));
    for (int t = static_cast<int>(block()); t < all; t += static_cast<int>(blocks())) {
      warp_barrier();  // after stores that not all of its threads made
      float sums[Columns / 8][4] = {};
      int before = 0;
      for (int k = 0; k < x.k; k += depth, turn.next()) {
        pipe.full[turn.place].wait(turn.parity);
        std::byte const* const a = memory + turn.place * stage_bytes + group * 64 * line;
        std::byte const* const b = memory + turn.place * stage_bytes + of_a;
        products_begin(sums);
        DFDX_UNROLL for (int i = 0; i < depth / 16; ++i) multiply_add_later<T, AcrossA, AcrossB>(
            sums, factor<AcrossA>(a + i * step_a), factor<AcrossB>(b + i * step_b));
        products_asked();
        // While these are made, those before them have been, and what they read may be overwritten.
        products_made<1>(sums);
        if (k != 0 && speaks) pipe.used[before].arrive();
        before = turn.place;
      }
      products_made<0>(sums);
      if (speaks) pipe.used[before].arrive();
      Place const at = place(x, t);
      store(x, at.matrix, at.row + group * 64, at.column, sums);
    }
  }

  // Of four threads beside each other, which have 8 times two columns of a row, each is handed those of eight columns
  // that follow each other, so that 16 bytes are stored at once.
  static DFDX_INLINE void store(Given const& x, int matrix, int row0, int column0,
                                float const (&sums)[Columns / 8][4]) {
    int const lane = thread() % warp_size, warp = thread() % warpgroup_size / warp_size, mine = lane % 4;
    T* const c = static_cast<T*>(x.c) + matrix * x.c_batch;
    bool const whole =
        x.c_column == 1 && x.c_row % 8 == 0 && reinterpret_cast<std::uintptr_t>(c) % sizeof(uint4) == 0;
    auto const number = [&](float sum, int m, int n) {
      return m < x.m && n < x.n ? Step::stored(x.step, sum, m, n) : T{};
    };
    DFDX_UNROLL for (int q = 0; q < Columns / 32; ++q) {
      DFDX_UNROLL for (int h = 0; h < 2; ++h) {
        int const m = row0 + warp * 16 + lane / 4 + h * 8, n0 = column0 + q * 32;
        std::uint32_t v[4];
        DFDX_UNROLL for (int i = 0; i < 4; ++i) {
          int const n = n0 + i * 8 + mine * 2;
          float const(&s)[4] = sums[q * 4 + i];
          v[i] = both(number(s[h * 2], m, n), number(s[h * 2 + 1], m, n + 1));
        }
        DFDX_UNROLL for (int mask = 1; mask < 4; mask *= 2) {
          bool const upper = (mine & mask) != 0;
          DFDX_UNROLL for (int i = 0; i < 4; ++i) {
            if ((i & mask) != 0) continue;
            std::uint32_t const low = v[i], high = v[i | mask], given = exchanged(upper ? low : high, mask);
            v[i] = upper ? given : low;
            v[i | mask] = upper ? high : given;
          }
        }
        int const n = n0 + mine * 8;
        if (m >= x.m || n >= x.n) continue;
        T* const to = c + m * x.c_row + n * x.c_column;
        if (whole && n + 8 <= x.n) {
          *reinterpret_cast<uint4*>(to) = uint4{v[0], v[1], v[2], v[3]};
        } else {
          DFDX_UNROLL for (int i = 0; i < 8; ++i) if (n + i < x.n) to[i * x.c_column] =
              std::bit_cast<T>(static_cast<std::uint16_t>(v[i / 2] >> (16 * (i % 2))));
        }
      }
    }
  }
  static DFDX_INLINE std::uint32_t both(T first, T second) {
    return std::uint32_t{std::bit_cast<std::uint16_t>(first)} |
           std::uint32_t{std::bit_cast<std::uint16_t>(second)} << 16;
  }
#endif
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
