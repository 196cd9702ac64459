// SPDX-License-Identifier: BSL-1.0
// The kernel of one matrix product of a program, from its description: a loop over the batch around the GEMM that
// suits its element type, extents and strides.
#pragma once

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/kernels/gemm.hpp>
#include <dfdx/kernels/half.hpp>
#include <dfdx/kernels/loop.hpp>
#include <dfdx/kernels/reference/gemm.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// LoopEpilogue - a fused loop applied to the sums of a matrix product while they are in registers. Operand Given
/// of the loop is the sum; what it stores to operand Stored is returned, for the product's kernel to store.
template <class Code, int Given, int Stored, bool ReadsResult>
struct LoopEpilogue {
  static constexpr bool reads_c = ReadsResult;
  static constexpr int operands = LoopFacts(Code::value).operands;
  /// Whether it is too much code to be written out for every register of a tile.
  static constexpr bool heavy = loop_cost<Code>() >= 8;
  void* const* base;
  index_t const* symbols;

  template <class V>
  DFDX_INLINE V operator()(V const& sum, std::int64_t m, std::int64_t n) const {
    if constexpr (std::is_arithmetic_v<V>)
      return Loop<Code, loop_code::scalar, Given, Stored>::template at<false>(base, symbols, sum, m, n, 1);
    else return Loop<Code, Code::value[0], Given, Stored>::template at<false>(base, symbols, sum, m, n, 0);
  }
  template <class V>
  DFDX_INLINE V operator()(V const& sum, std::int64_t m, std::int64_t n, int count) const {
    return Loop<Code, Code::value[0], Given, Stored>::template at<true>(base, symbols, sum, m, n, count);
  }
  /// Asks for what it will read of a tile, long before it does.
  DFDX_INLINE void prefetch(std::int64_t m, std::int64_t n, int rows, int columns) const {
    Loop<Code, Code::value[0], Given, Stored>::prefetch(base, symbols, m, n, rows, columns);
  }
};

/// Matmul - reads three walks (a, b, c), each a rank, that many extents and that many strides. T is the element type of
/// the result; the factors have others if they are bytes.
template <class T, class Code, class Epilogue, class A = T, class B = T>
class Matmul {
  static constexpr auto const& code = Code::value;
  static constexpr int rank = static_cast<int>(code[0]);
  static constexpr int batches = rank - 2;
  static constexpr index_t extent_code(int operand, int d) {
    return code[static_cast<std::size_t>(operand * (1 + 2 * rank) + 1 + d)];
  }
  static constexpr index_t stride_code(int operand, int d) {
    return code[static_cast<std::size_t>(operand * (1 + 2 * rank) + 1 + rank + d)];
  }
  // An extent or stride that the compiler knows; -1 if it does not.
  static constexpr index_t known(index_t e) { return e >= 0 ? e : -1; }

  static constexpr index_t m = known(extent_code(2, rank - 2)), n = known(extent_code(2, rank - 1)),
                           k = known(extent_code(0, rank - 1));
  static constexpr index_t a_row = known(stride_code(0, rank - 2)), a_col = known(stride_code(0, rank - 1)),
                           b_row = known(stride_code(1, rank - 2)), b_col = known(stride_code(1, rank - 1)),
                           c_row = known(stride_code(2, rank - 2));
  static constexpr bool has_simd = (std::is_same_v<T, float> || std::is_same_v<T, double>) &&
                                   (a_row == 1 || a_col == 1) && (b_row == 1 || b_col == 1);

  // Bytes, summed in numbers of 32 bits.
  static constexpr bool is_bytes = byte_number<A> && byte_number<B> && std::is_same_v<Epilogue, store_sum>;

#if !defined(__CUDACC__)
  using Shape = gemm_shape<T, m, n, k, a_row, a_col, b_row, b_col, c_row>;

  // Numbers of 16 bits are multiplied as f32, in dense copies that run as the operands do, and the sums rounded once.
  static constexpr bool is_widened = half_number<T> && std::is_same_v<Epilogue, store_sum> &&
                                     (a_row == 1 || a_col == 1) && (b_row == 1 || b_col == 1) &&
                                     stride_code(2, rank - 1) == 1;
  using Widened = gemm_shape<float, m, n, k, a_col == 1 ? k : 1, a_col == 1 ? 1 : m, b_col == 1 ? n : 1,
                             b_col == 1 ? 1 : k, n>;
  // Few rows times rows that are contiguous: the second factor is widened in registers.
#if defined(DFDX_RVV)
  static constexpr bool is_dot = false;
  // One row, too, is multiplied with what vectors widen; for more the second factor is widened once.
  static constexpr bool is_half_product =
      is_widened && ((std::is_same_v<T, float16> && rvv::multiplies_halves) || (m == 1 && b_row == 1));
#else
  static constexpr bool is_half_product = false;
  static constexpr bool is_dot = is_widened && m > 0 && m <= 8 && a_col == 1 && b_row == 1;
#endif
  struct narrowed {
    T* c;
    index_t c_row;
    void operator()(lane<float> sums, index_t i, index_t j, int count) const {
      alignas(64) float part[lane<float>::size];
      sums.store_aligned(part);
      narrow(c + i * c_row + j, part, count);
    }
  };
  static constexpr index_t aligned(index_t floats) { return (floats + 15) / 16 * 16; }

  // Rows of `length` numbers, `step` apart.
  static void widen_rows(float* y, T const* x, index_t rows, index_t length, index_t step) {
    if (length == step) return widen(y, x, rows * length);
    for (index_t i = 0; i < rows; ++i) widen(y + i * length, x + i * step, length);
  }
  static void multiply_widened(T const* a, T const* b, T* c, void* workspace, gemm_sizes s) {
#if defined(DFDX_RVV)
    if constexpr (is_half_product)
      return rvv::gemm<T>(s.m, s.n, s.k, {a, s.a_row, s.a_col}, {b, s.b_row, s.b_col}, c, s.c_row, workspace,
                          store_sum{});
#endif
    if constexpr (std::is_same_v<T, bfloat16>)
      if (uses_bf16_products(s.m, s.n, s.k))
        return multiply_bf16(s.m, s.n, s.k, {a, s.a_row, s.a_col}, {b, s.b_row, s.b_col}, c, s.c_row,
                             workspace);
    auto* const as = static_cast<float*>(workspace);
    if constexpr (is_dot) {
      widen_rows(as, a, s.m, s.k, s.a_row);
      detail::gemm_dot(s.m, s.n, s.k, as, s.k, b, s.b_col, narrowed{c, s.c_row});
      return;
    }
    float *const bs = as + aligned(s.m * s.k), *const cs = bs + aligned(s.k * s.n);
    if constexpr (a_col == 1) widen_rows(as, a, s.m, s.k, s.a_row);
    else widen_rows(as, a, s.k, s.m, s.a_col);
    if constexpr (b_col == 1) widen_rows(bs, b, s.k, s.n, s.b_row);
    else widen_rows(bs, b, s.n, s.k, s.b_col);
    index_t const c_step = s.c_row;
    s.a_row = a_col == 1 ? s.k : 1, s.a_col = a_col == 1 ? 1 : s.m;
    s.b_row = b_col == 1 ? s.n : 1, s.b_col = b_col == 1 ? 1 : s.k;
    s.c_row = s.n;
    multiply<Widened>(as, bs, cs, cs + aligned(s.m * s.n), store_sum{}, s);
    for (index_t i = 0; i < s.m; ++i) narrow(c + i * c_step, cs + i * s.n, s.n);
  }
#endif

  static void one(A const* a, B const* b, T* c, void* workspace, index_t const* symbols,
                  Epilogue const& epilogue) {
    auto const at = [&](int operand, int d) { return extent::resolve(extent_code(operand, d), symbols); };
    auto const by = [&](int operand, int d) { return extent::resolve(stride_code(operand, d), symbols); };
#if !defined(__CUDACC__)
    if constexpr (is_bytes) {
      if (stride_code(2, rank - 1) == 1)
        return multiply_int8<A, B>(at(2, rank - 2), at(2, rank - 1), at(0, rank - 1),
                                   {a, by(0, rank - 2), by(0, rank - 1)},
                                   {b, by(1, rank - 2), by(1, rank - 1)}, c, by(2, rank - 2), workspace);
    } else if constexpr (has_simd || is_widened) {
      gemm_sizes sizes;
      sizes.m = at(2, rank - 2);
      sizes.n = at(2, rank - 1);
      sizes.k = at(0, rank - 1);
      sizes.a_row = by(0, rank - 2);
      sizes.a_col = by(0, rank - 1);
      sizes.b_row = by(1, rank - 2);
      sizes.b_col = by(1, rank - 1);
      sizes.c_row = by(2, rank - 2);
      if constexpr (is_widened) multiply_widened(a, b, c, workspace, sizes);
      else multiply<Shape>(a, b, c, workspace, epilogue, sizes);
      return;
    }
#endif
    static_cast<void>(workspace);
    reference::gemm(at(2, rank - 2), at(2, rank - 1), at(0, rank - 1), a, by(0, rank - 2), by(0, rank - 1), b,
                    by(1, rank - 2), by(1, rank - 1), c, by(2, rank - 2), by(2, rank - 1), epilogue);
  }

  template <int D>
  static void over_batch(A const* a, B const* b, T* c, void* workspace, index_t const* symbols,
                         Epilogue const& epilogue) {
    if constexpr (D == batches) {
      one(a, b, c, workspace, symbols, epilogue);
    } else {
      index_t const count = extent::resolve(extent_code(2, D), symbols);
      index_t const sa = extent::resolve(stride_code(0, D), symbols),
                    sb = extent::resolve(stride_code(1, D), symbols),
                    sc = extent::resolve(stride_code(2, D), symbols);
      if constexpr (D == 0 && has_threads)
        if (divide_batch(count, symbols, [&](index_t i, void* own) {
              over_batch<1>(a + i * sa, b + i * sb, c + i * sc, own, symbols, epilogue);
            }))
          return;
      for (index_t i = 0; i < count; ++i)
        over_batch<D + 1>(a + i * sa, b + i * sb, c + i * sc, workspace, symbols, epilogue);
    }
  }
  // Several products at once, if all threads have as much to do as far as possible; else each is divided.
  template <class F>
  static bool divide_batch(index_t count, index_t const* symbols, F const& f) {
    index_t products = extent::resolve(extent_code(0, rank - 1), symbols);
    for (int d = 0; d < rank; ++d) products *= extent::resolve(extent_code(2, d), symbols);
    int const parts = parts_of(work_of_products(products), count);
    if (parts == 1 || (count % parts != 0 && count < 4 * parts)) return false;
    in_parallel(parts, [&](int i) {
      Scratch<std::byte> const own(workspace(symbols));
      Part const part = part_of(count, i, parts);
      for (index_t k = part.begin; k < part.end; ++k) f(k, own.get());
    });
    return true;
  }

 public:
  /// Bytes of scratch that run needs; `symbols` may be null if all extents are static.
  static constexpr std::size_t workspace([[maybe_unused]] index_t const* symbols) {
#if !defined(__CUDACC__)
    if constexpr (is_bytes) {
      return multiply_int8_workspace(extent::resolve(extent_code(2, rank - 2), symbols),
                                     extent::resolve(extent_code(2, rank - 1), symbols),
                                     extent::resolve(extent_code(0, rank - 1), symbols));
    } else if constexpr (has_simd || is_widened) {
      gemm_sizes sizes;
      sizes.m = extent::resolve(extent_code(2, rank - 2), symbols);
      sizes.n = extent::resolve(extent_code(2, rank - 1), symbols);
      sizes.k = extent::resolve(extent_code(0, rank - 1), symbols);
#if defined(DFDX_RVV)
      if constexpr (is_half_product) return rvv::gemm_workspace<T>(sizes.n, sizes.k, b_col != 1);
#endif
      if constexpr (is_widened) {
        auto const copies = static_cast<std::size_t>(aligned(sizes.m * sizes.k) + aligned(sizes.k * sizes.n) +
                                                     aligned(sizes.m * sizes.n));
        std::size_t const as_floats = copies * sizeof(float) + multiply_workspace<Widened, store_sum>(sizes);
        if constexpr (std::is_same_v<T, bfloat16>)
          if (uses_bf16_products(sizes.m, sizes.n, sizes.k))
            return gemm_bf16_workspace(sizes.m, sizes.n, sizes.k);
        return as_floats;
      } else {
        return multiply_workspace<Shape, Epilogue>(sizes);
      }
    }
#endif
    return 0;
  }
  static constexpr bool is_static = m >= 0 && n >= 0 && k >= 0;

  static void run(void* const* base, void* workspace, index_t const* symbols) {
    // The operands of an epilogue follow those of the product.
    auto const epilogue = [&] {
      if constexpr (requires { Epilogue{base, symbols}; }) return Epilogue{base + 3, symbols};
      else return Epilogue{};
    }();
    over_batch<0>(static_cast<A const*>(base[0]), static_cast<B const*>(base[1]), static_cast<T*>(base[2]),
                  workspace, symbols, epilogue);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
