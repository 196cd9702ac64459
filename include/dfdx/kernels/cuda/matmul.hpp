// SPDX-License-Identifier: BSL-1.0
// A matrix product on a device. Large ones are cuBLASLt's, with what is to be done to the sums in a kernel after it
// unless cuBLASLt does that too (kernels/cuda/cublas_sums.hpp).
// The others are computed by a kernel for every dtype, stride and epilogue (kernels/cuda/tiles.hpp).
#pragma once

#include <dfdx/kernels/cuda/cublas.hpp>
#include <dfdx/kernels/cuda/cublas_sums.hpp>
#include <dfdx/kernels/cuda/tensor_tiles.hpp>
#include <dfdx/kernels/cuda/threads.hpp>
#include <dfdx/kernels/cuda/warpgroup_product.hpp>
#include <dfdx/kernels/matmul.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// MatmulArguments - addresses of the factors, the result and the operands of an epilogue; values of extents.
template <int Operands, int Symbols = max_symbols>
struct MatmulArguments {
  void* base[static_cast<std::size_t>(Operands)] = {};
  index_t symbols[static_cast<std::size_t>(Symbols)] = {};
};

template <class Product>
class MatmulStep;

/// MatmulStep - the product that a Matmul (kernels/matmul.hpp) describes.
template <class T, class Code, class Epilogue, class A, class B>
class MatmulStep<Matmul<T, Code, Epilogue, A, B>> {
  static constexpr auto const& code = Code::value;
  static constexpr int rank = static_cast<int>(code[0]), batches = rank - 2;
  static constexpr bool has_epilogue = requires { Epilogue{nullptr, nullptr}; };
  static constexpr int operands = 3 + [] {
    if constexpr (has_epilogue) return Epilogue::operands;
    else return 0;
  }();
  using Sum = typename reference::accumulator<T>::type;
  static constexpr int symbols_needed = [] {
    if constexpr (requires { Code::slots; }) return Code::slots;
    else return max_symbols;
  }();
  using Arguments = MatmulArguments<operands, symbols_needed>;

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

 public:
  struct Kernel {
    using Sums = ProductTile<Kernel, std::conditional_t<std::is_same_v<A, B>, A, void>, Sum>;
    static constexpr int threads = Sums::threads;

    static DFDX_INLINE void run(Arguments const& x) {
      index_t const m = rows(x.symbols), n = columns(x.symbols);
      constexpr index_t tile = Sums::size;
      index_t const across = (n + tile - 1) / tile, tiles = (m + tile - 1) / tile * across;
      index_t const all = tiles * matrices(x.symbols);
      for (index_t t = block(); t < all; t += blocks())
        one_tile(x, t / tiles, t % tiles / across * tile, t % across * tile, m, n);
    }

    static DFDX_INLINE T stored([[maybe_unused]] Arguments const& x, Sum sum, [[maybe_unused]] index_t m,
                                [[maybe_unused]] index_t n) {
      if constexpr (has_epilogue) return static_cast<T>(Epilogue{x.base + 3, x.symbols}(sum, m, n));
      else return static_cast<T>(sum);
    }

   private:
    // A factor whose rows are so far apart, and the elements of a row.
    template <class E>
    struct Factor {
      E const* first;
      index_t by_row, by_k;
      bool along_k;
      DFDX_INLINE E const* at(index_t row) const { return first + row * by_row; }
      DFDX_INLINE E value(E const* row, index_t k) const { return row[k * by_k]; }
      DFDX_INLINE bool has_chunk(E const* row, index_t k) const {
        return by_k == 1 && reinterpret_cast<std::uintptr_t>(row + k) % sizeof(uint4) == 0;
      }
      DFDX_INLINE uint4 chunk(E const* row, index_t k) const {
        return *reinterpret_cast<uint4 const*>(row + k);
      }
    };
    static DFDX_INLINE void one_tile(Arguments const& x, index_t index, index_t row0, index_t column0,
                                     index_t m, index_t n) {
      index_t const a_row = stride<0, rank - 2>(x.symbols), a_col = stride<0, rank - 1>(x.symbols);
      index_t const b_row = stride<1, rank - 2>(x.symbols), b_col = stride<1, rank - 1>(x.symbols);
      index_t const c_row = stride<2, rank - 2>(x.symbols), c_col = stride<2, rank - 1>(x.symbols);
      Factor<A> const a{static_cast<A const*>(x.base[0]) + matrix<0>(index, x.symbols), a_row, a_col,
                        a_col == 1};
      Factor<B> const b{static_cast<B const*>(x.base[1]) + matrix<1>(index, x.symbols), b_col, b_row,
                        b_col != 1};
      T* const c = static_cast<T*>(x.base[2]) + matrix<2>(index, x.symbols);
      Sums::run(a, b, row0, column0, m, n, 0, depth_of(x.symbols), [&](index_t at, index_t to, Sum sum) {
        c[at * c_row + to * c_col] = stored(x, sum, at, to);
      });
    }
  };
  static constexpr int tile = Kernel::Sums::size;

  /// EpilogueKernel - what is to be done to sums that lie in memory, a thread for each.
  struct EpilogueArguments {
    Arguments product;
    T const* sums;
  };
  struct EpilogueKernel {
    static constexpr int threads = 256;
    static DFDX_INLINE void run(EpilogueArguments const& x) {
      index_t const n = columns(x.product.symbols), all = rows(x.product.symbols) * n;
      for (index_t i = block() * threads + thread(); i < all; i += blocks() * threads)
        static_cast<T*>(x.product.base[2])[i] =
            Kernel::stored(x.product, static_cast<Sum>(x.sums[i]), i / n, i % n);
    }
  };

  /// Bytes that it needs besides the operands.
  static constexpr index_t workspace(index_t const* symbols) {
    // Whatever cuda_options says now: it may say something else when the program runs.
    if constexpr (!may_be_cublas) return 0;
    else return alignment + cublas_bytes + sums_bytes(symbols);
  }

  /// The same for one call, with the options as they are now.
  static index_t workspace_now(index_t const* symbols) { return is_large(symbols) ? workspace(symbols) : 0; }

  /// run - starts it on `stream`; returns what the runtime says.
  static cudaError_t run(void* const* base, [[maybe_unused]] void* workspace, index_t const* symbols,
                         [[maybe_unused]] Device device, cudaStream_t stream) {
    Arguments x;
    for (int i = 0; i < operands; ++i) x.base[i] = base[i];
    if (symbols != nullptr)
      for (int i = 0; i < symbols_needed; ++i) x.symbols[i] = symbols[i];
    if constexpr (may_be_warpgroups) {
      cudaError_t said = cudaSuccess;
      bool const asked = multiplications(symbols) >= cuda_options.warpgroup_products_from;
      if (asked && by_warpgroups(x, device, stream, said)) return said;
    }
    if constexpr (may_be_cublas)
      if (is_large(symbols)) {
        auto at = reinterpret_cast<std::uintptr_t>(workspace);
        at = (at + alignment - 1) / alignment * alignment;
        auto* const work = reinterpret_cast<std::byte*>(at);
        if constexpr (addends<T, Epilogue>.found)
          if (multiply<true>(x, base[2], work, device, stream)) return cudaSuccess;
        void* const sums = sums_bytes(symbols) != 0 ? work + cublas_bytes : base[2];
        if (multiply<false>(x, sums, work, device, stream)) {
          if constexpr (has_epilogue) {
            index_t const blocks = (rows(symbols) * columns(symbols) + 255) / 256;
            return start<EpilogueKernel>(EpilogueArguments{x, static_cast<T const*>(sums)},
                                         blocks < 2048 ? blocks : 2048, stream);
          }
          return cudaSuccess;
        }
      }
    index_t const m = rows(symbols), n = columns(symbols);
    index_t const tiles = (m + tile - 1) / tile * ((n + tile - 1) / tile) * matrices(symbols);
    return start<Kernel>(x, tiles < most_blocks ? tiles : most_blocks, stream);
  }

 private:
  static constexpr index_t most_blocks = index_t{1} << 20;
  static constexpr index_t alignment = 256, cublas_bytes = cuda_runtime::cublas_bytes;
  static constexpr bool may_be_cublas =
      cuda_runtime::has_cublas &&
      (std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>);

  static index_t multiplications(index_t const* symbols) {
    return matrices(symbols) * rows(symbols) * columns(symbols) * depth_of(symbols);
  }
  static bool is_large(index_t const* symbols) {
    index_t const n = multiplications(symbols);
    return n != 0 && n >= cuda_options.cublas_from;
  }
  // The sums have memory of their own where their epilogue reads what lay in the result's.
  static constexpr index_t sums_bytes([[maybe_unused]] index_t const* symbols) {
    if constexpr (has_epilogue) {
      if (Epilogue::reads_c) return rows(symbols) * columns(symbols) * static_cast<index_t>(sizeof(T));
    }
    return 0;
  }

  // How many of the last dims of the batch all three walk as one.
  template <int Operand, int D>
  static bool joins(index_t const* symbols) {
    return stride<Operand, D - 1>(symbols) == stride<Operand, D>(symbols) * extent<2, D>(symbols);
  }
  template <int D = batches>
  static index_t joined(index_t const* symbols) {
    if constexpr (D == 0) {
      return 1;
    } else {
      index_t const n = extent<2, D - 1>(symbols);
      if constexpr (D > 1)
        if (joins<0, D - 1>(symbols) && joins<1, D - 1>(symbols) && joins<2, D - 1>(symbols))
          return n * joined<D - 1>(symbols);
      return n;
    }
  }
  template <int Operand>
  static constexpr index_t batch_step(index_t const* symbols) {
    if constexpr (batches == 0) return 0;
    else return stride<Operand, batches - 1>(symbols);
  }

  // By the kernel for warpgroups: of factors whose lines are known to go along k or not.
  static constexpr bool a_along_k = stride_code<0, rank - 1> == 1, b_along_k = stride_code<1, rank - 2> == 1;
  static constexpr bool may_be_warpgroups = std::is_same_v<A, T> && std::is_same_v<B, T> &&
                                            (std::is_same_v<A, float16> || std::is_same_v<A, bfloat16>) &&
                                            std::is_same_v<Sum, float> && (batches == 0 || !has_epilogue) &&
                                            (a_along_k || stride_code<0, rank - 2> == 1) &&
                                            (b_along_k || stride_code<1, rank - 1> == 1);
  // Tiles are half as wide where there would be too few of them for all multiprocessors, or they were half empty.
  static constexpr int columns_of_tile = [](index_t m, index_t n) {
    bool const known = m >= 0 && n >= 0;
    bool const few = known && batches == 0 && (m + 127) / 128 * ((n + 255) / 256) < 100;
    return few || (n >= 0 && n <= 128) ? 128 : 256;
  }(extent_code<2, rank - 2>, extent_code<2, rank - 1>);

  static bool by_warpgroups(Arguments const& x, Device device, cudaStream_t stream, cudaError_t& said) {
    using K = WarpgroupProduct<Kernel, Arguments, T, columns_of_tile, !a_along_k, !b_along_k>;
    index_t const* const symbols = x.symbols;
    index_t const m = rows(symbols), n = columns(symbols), k = depth_of(symbols), at_once = joined(symbols);
    constexpr index_t most = index_t{1} << 30;  // in the kernel they are int
    if (multiplications(symbols) == 0 || m > most || n > most || k > most || K::tiles(m, n, at_once) > most)
      return false;
    if (!is_there<K, WarpgroupArguments<Arguments>>(device)) return false;
    WarpgroupArguments<Arguments> to;
    to.step = x;
    to.c_row = stride<2, rank - 2>(symbols), to.c_column = stride<2, rank - 1>(symbols);
    to.c_batch = batch_step<2>(symbols);
    to.m = static_cast<int>(m), to.n = static_cast<int>(n), to.k = static_cast<int>(k);
    to.batch = static_cast<int>(at_once);
    index_t const step_a = batch_step<0>(symbols), step_b = batch_step<1>(symbols);
    to.a_in_batch = step_a != 0, to.b_in_batch = step_b != 0;
    index_t const all = matrices(symbols);
    for (index_t i = 0; i < all; i += at_once) {
      cuda_runtime::BulkMatrices a{static_cast<A const*>(x.base[0]) + matrix<0>(i, symbols),
                                   k,
                                   m,
                                   stride<0, rank - 2>(symbols),
                                   {step_a != 0 ? at_once : 1, 1, 1},
                                   {step_a, 0, 0}};
      cuda_runtime::BulkMatrices b{static_cast<B const*>(x.base[1]) + matrix<1>(i, symbols),
                                   k,
                                   n,
                                   stride<1, rank - 1>(symbols),
                                   {step_b != 0 ? at_once : 1, 1, 1},
                                   {step_b, 0, 0}};
      if constexpr (!a_along_k) a.inner = m, a.outer = k, a.outer_step = stride<0, rank - 1>(symbols);
      if constexpr (!b_along_k) b.inner = n, b.outer = k, b.outer_step = stride<1, rank - 2>(symbols);
      to.c = static_cast<T*>(x.base[2]) + matrix<2>(i, symbols);
      // What the copy engine refuses is computed by others, with all that came before.
      if (!cuda_runtime::tensor_map(to.a, a, K::lines_of_a) ||
          !cuda_runtime::tensor_map(to.b, b, K::lines_of_b))
        return false;
      auto const blocks = std::min<index_t>(K::tiles(m, n, at_once), cuda_runtime::multiprocessors(device));
      said = start<K>(to, blocks, stream);
      if (said != cudaSuccess) return true;
    }
    return true;
  }

  static bool overlap(T const* a, index_t of_a, T const* b, index_t of_b) {
    return a < b + of_b && b < a + of_a;
  }

  // By columns the result is its own transpose, the product of those of the factors in the other order.
  // With Adds what the epilogue adds, too.
  template <bool Adds>
  static bool multiply(Arguments const& x, void* to, void* work, Device device, cudaStream_t stream) {
    using namespace cuda_runtime;
    index_t const* const symbols = x.symbols;
    index_t const m = rows(symbols), n = columns(symbols), k = depth_of(symbols);
    FactorOf left = as_factor(n, k, stride<1, rank - 1>(symbols), stride<1, rank - 2>(symbols));
    FactorOf right = as_factor(k, m, stride<0, rank - 1>(symbols), stride<0, rank - 2>(symbols));
    if (!left.taken || !right.taken) return false;
    left.factor.batch_step = batch_step<1>(symbols);
    right.factor.batch_step = batch_step<0>(symbols);
    index_t const at_once = joined(symbols), all = matrices(symbols);
    Product product{dtype_v<T>, n, m, k, at_once, left.factor, right.factor, n, m * n};
    Memory memory;
    if constexpr (Adds) {
      constexpr Addends sums = addends<T, Epilogue>;
      if constexpr (sums.row >= 0) {
        product.has_bias = true;
        memory.bias = x.base[3 + sums.row];
        if (overlap(static_cast<T const*>(memory.bias), n, static_cast<T const*>(to), m * n)) return false;
      }
      if constexpr (sums.matrix >= 0) {
        product.addend_step = row_step<sums.matrix>(std::type_identity<Epilogue>{}, symbols);
        memory.addend = x.base[3 + sums.matrix];
        // In place only where each element is read just before it is stored.
        auto const* const addend = static_cast<T const*>(memory.addend);
        index_t const step = product.addend_step;
        if (step < n || (overlap(addend, (m - 1) * step + n, static_cast<T const*>(to), m * n) &&
                         (addend != to || step != n)))
          return false;
      }
    }
    for (index_t i = 0; i < all; i += at_once) {
      memory.a = static_cast<T const*>(x.base[1]) + matrix<1>(i, symbols);
      memory.b = static_cast<T const*>(x.base[0]) + matrix<0>(i, symbols);
      memory.c = static_cast<T*>(to) + i * m * n;
      if (!Cublas::multiply(product, memory, work, static_cast<std::size_t>(cublas_bytes), device, stream))
        return false;
    }
    return true;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
