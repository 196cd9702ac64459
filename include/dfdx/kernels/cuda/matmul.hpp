// SPDX-License-Identifier: BSL-1.0
// A matrix product on a device, for every dtype, stride and epilogue: a block has a tile of the result in registers,
// and goes through the factors tile by tile in shared memory. It is what cuBLASLt does not take, and what tests run.
#pragma once

#include <dfdx/kernels/cuda/threads.hpp>
#include <dfdx/kernels/matmul.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// MatmulArguments - addresses of the factors, the result and the operands of an epilogue; values of extents.
template <int Operands>
struct MatmulArguments {
  void* base[static_cast<std::size_t>(Operands)] = {};
  index_t symbols[max_symbols] = {};
};

template <class Product>
class MatmulStep;

/// MatmulStep - the product that a Matmul (kernels/matmul.hpp) describes.
template <class T, class Code, class Epilogue>
class MatmulStep<Matmul<T, Code, Epilogue>> {
  static constexpr auto const& code = Code::value;
  static constexpr int rank = static_cast<int>(code[0]), batches = rank - 2;
  static constexpr bool has_epilogue = requires { Epilogue{nullptr, nullptr}; };
  static constexpr int operands = 3 + [] {
    if constexpr (has_epilogue) return Epilogue::operands;
    else return 0;
  }();
  using Sum = typename reference::accumulator<T>::type;

  // Operands are 0, 1 and 2, the result.
  template <int Operand, int D>
  static constexpr index_t extent_code = code[static_cast<std::size_t>(Operand * (1 + 2 * rank) + 1 + D)];
  template <int Operand, int D>
  static constexpr index_t stride_code =
      code[static_cast<std::size_t>(Operand * (1 + 2 * rank) + 1 + rank + D)];
  template <int Operand, int D>
  static DFDX_INLINE constexpr index_t extent(index_t const* symbols) {
    return kernels::detail::resolved(extent_code<Operand, D>, symbols);
  }
  template <int Operand, int D>
  static DFDX_INLINE constexpr index_t stride(index_t const* symbols) {
    return kernels::detail::resolved(stride_code<Operand, D>, symbols);
  }
  static DFDX_INLINE constexpr index_t rows(index_t const* symbols) { return extent<2, rank - 2>(symbols); }
  static DFDX_INLINE constexpr index_t columns(index_t const* symbols) {
    return extent<2, rank - 1>(symbols);
  }
  static DFDX_INLINE constexpr index_t depth_of(index_t const* symbols) {
    return extent<0, rank - 1>(symbols);
  }
  template <int D = 0>
  static DFDX_INLINE constexpr index_t matrices(index_t const* symbols) {
    if constexpr (D == batches) return 1;
    else return extent<2, D>(symbols) * matrices<D + 1>(symbols);
  }
  // Where matrix `index` of an operand begins.
  template <int Operand, int D = batches>
  static DFDX_INLINE constexpr index_t matrix(index_t index, index_t const* symbols) {
    if constexpr (D == 0) {
      return 0;
    } else {
      index_t const n = extent<2, D - 1>(symbols);
      return index % n * stride<Operand, D - 1>(symbols) + matrix<Operand, D - 1>(index / n, symbols);
    }
  }

  // Each of 16 x 16 threads has 4 x 4 sums, 16 apart, so that threads beside each other read what lies side by side.
  static constexpr int side = 16, each = 4, tile = side * each, depth = 16;

 public:
  struct Kernel {
    static constexpr int threads = side * side;
    struct OfA;
    struct OfB;

    static DFDX_INLINE void run(MatmulArguments<operands> const& x) {
      index_t const m = rows(x.symbols), n = columns(x.symbols);
      index_t const across = (n + tile - 1) / tile, tiles = (m + tile - 1) / tile * across;
      index_t const all = tiles * matrices(x.symbols);
      for (index_t t = block(); t < all; t += blocks())
        one_tile(x, t / tiles, t % tiles / across * tile, t % across * tile, m, n);
    }

   private:
    static DFDX_INLINE void one_tile(MatmulArguments<operands> const& x, index_t index, index_t row0,
                                     index_t column0, index_t m, index_t n) {
      index_t const k = depth_of(x.symbols);
      index_t const a_row = stride<0, rank - 2>(x.symbols), a_col = stride<0, rank - 1>(x.symbols);
      index_t const b_row = stride<1, rank - 2>(x.symbols), b_col = stride<1, rank - 1>(x.symbols);
      T const* const a = static_cast<T const*>(x.base[0]) + matrix<0>(index, x.symbols);
      T const* const b = static_cast<T const*>(x.base[1]) + matrix<1>(index, x.symbols);
      // A column more, so that what is written down a column lies in different banks.
      Sum* const of_a = shared<OfA, Sum, depth*(tile + 1)>();
      Sum* const of_b = shared<OfB, Sum, depth*(tile + 1)>();
      int const row = thread() / side, column = thread() % side;
      Sum sums[each][each] = {};
      for (index_t k0 = 0; k0 < k; k0 += depth) {
        barrier();  // until all have used what lies there
        for (int i = thread(); i < tile * depth; i += threads) {
          // Neighbours read along the axis that is contiguous.
          int const ar = a_col == 1 ? i / depth : i % tile, ac = a_col == 1 ? i % depth : i / tile;
          int const br = b_col == 1 ? i / tile : i % depth, bc = b_col == 1 ? i % tile : i / depth;
          of_a[ac * (tile + 1) + ar] = row0 + ar < m && k0 + ac < k
                                           ? static_cast<Sum>(a[(row0 + ar) * a_row + (k0 + ac) * a_col])
                                           : Sum{};
          of_b[br * (tile + 1) + bc] = k0 + br < k && column0 + bc < n
                                           ? static_cast<Sum>(b[(k0 + br) * b_row + (column0 + bc) * b_col])
                                           : Sum{};
        }
        barrier();
        for (int p = 0; p < depth; ++p) {
          Sum left[each], right[each];
          for (int i = 0; i < each; ++i) left[i] = of_a[p * (tile + 1) + row + i * side];
          for (int j = 0; j < each; ++j) right[j] = of_b[p * (tile + 1) + column + j * side];
          for (int i = 0; i < each; ++i)
            for (int j = 0; j < each; ++j)
              sums[i][j] = static_cast<Sum>(sums[i][j] + static_cast<Sum>(left[i] * right[j]));
        }
      }
      index_t const c_row = stride<2, rank - 2>(x.symbols), c_col = stride<2, rank - 1>(x.symbols);
      T* const c = static_cast<T*>(x.base[2]) + matrix<2>(index, x.symbols);
      for (int i = 0; i < each; ++i)
        for (int j = 0; j < each; ++j) {
          index_t const at = row0 + row + i * side, to = column0 + column + j * side;
          if (at < m && to < n) c[at * c_row + to * c_col] = stored(x, sums[i][j], at, to);
        }
    }
    static DFDX_INLINE T stored([[maybe_unused]] MatmulArguments<operands> const& x, Sum sum,
                                [[maybe_unused]] index_t m, [[maybe_unused]] index_t n) {
      if constexpr (has_epilogue) return static_cast<T>(Epilogue{x.base + 3, x.symbols}(sum, m, n));
      else return static_cast<T>(sum);
    }
  };

  /// Bytes that it needs besides the operands.
  static constexpr index_t workspace(index_t const*) { return 0; }

  /// run - starts it on `stream`; returns what the runtime says.
  static cudaError_t run(void* const* base, void*, index_t const* symbols, cudaStream_t stream) {
    MatmulArguments<operands> x;
    for (int i = 0; i < operands; ++i) x.base[i] = base[i];
    if (symbols != nullptr)
      for (int i = 0; i < max_symbols; ++i) x.symbols[i] = symbols[i];
    index_t const m = rows(symbols), n = columns(symbols);
    index_t const tiles = (m + tile - 1) / tile * ((n + tile - 1) / tile) * matrices(symbols);
    return start<Kernel>(x, tiles < max_blocks ? tiles : max_blocks, stream);
  }

 private:
  static constexpr index_t max_blocks = index_t{1} << 20;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
