// SPDX-License-Identifier: BSL-1.0
// Products of matrices of bytes on vectors of any length, summed in 32 bits. Lanes run over the columns of C: a byte of
// B becomes 16 bits as it is read, is multiplied with a number of A, and the product widened as it is added. Where B is
// read by columns they are brought together in a workspace, or, for few rows of A, lanes run over k.
#pragma once

#include <dfdx/kernels/rvv/gemm.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {
namespace detail {

/// Sums, and factors beside them: four, two and one registers.
using ByteSums = vint32m4_t;
using ByteFactors = vint16m2_t;

template <byte_number T>
DFDX_INLINE ByteFactors widened_bytes(T const* p, index_t step, std::size_t n) {
  auto const* at = reinterpret_cast<std::uint8_t const*>(p);
  vuint8m1_t const x = step == 1 ? __riscv_vle8_v_u8m1(at, n) : __riscv_vlse8_v_u8m1(at, step, n);
  if constexpr (std::is_signed_v<T>) return __riscv_vsext_vf2(__riscv_vreinterpret_i8m1(x), n);
  else return __riscv_vreinterpret_i16m2(__riscv_vzext_vf2(x, n));
}

/// `Rows` rows of C, `n` columns, which one group of registers holds.
template <int Rows, class A, class B>
struct ByteTile {
  static void run(index_t k, Operand<A> a, B const* b, index_t b_row, std::int32_t* c, index_t c_row,
                  std::size_t n) {
    with_sums<0>([&](auto&... sums) DFDX_INLINE_LAMBDA {
#pragma clang loop unroll_count(2)
      for (index_t p = 0; p < k; ++p) {
        ByteFactors const y = widened_bytes(b + p * b_row, 1, n);
        A const* x = a.at + p * a.col;
        ((sums = __riscv_vwmacc(sums, static_cast<std::int16_t>(*x), y, n), x += a.row), ...);
      }
      index_t r = 0;
      (__riscv_vse32(c + r++ * c_row, sums, n), ...);
    });
  }

 private:
  template <int Declared, class F, class... V>
  static DFDX_INLINE void with_sums(F const& f, V&... sums) {
    if constexpr (Declared == Rows) {
      f(sums...);
    } else {
      ByteSums next = __riscv_vmv_v_x_i32m4(0, every);
      with_sums<Declared + 1>(f, sums..., next);
    }
  }
};

template <class A, class B>
std::int32_t byte_dot(index_t k, A const* a, index_t a_step, B const* b, index_t b_step) {
  ByteSums sum = __riscv_vmv_v_x_i32m4(0, every);
  for (index_t p = 0; p < k;) {
    std::size_t const n = __riscv_vsetvl_e32m4(static_cast<std::size_t>(k - p));
    sum = __riscv_vwmacc_tu(sum, widened_bytes(a + p * a_step, a_step, n),
                            widened_bytes(b + p * b_step, b_step, n), n);
    p += static_cast<index_t>(n);
  }
  return __riscv_vmv_x(__riscv_vredsum(sum, __riscv_vmv_s_x_i32m1(0, 1), every));
}

}  // namespace detail

/// gemm_int8_workspace - bytes that gemm_int8 needs for a B of k rows and n columns.
constexpr std::size_t gemm_int8_workspace(index_t n, index_t k) {
  return static_cast<std::size_t>((n < columns_together ? n : columns_together) * k);
}

/// gemm_int8 - c[m, n] = sum_k a[m, k] b[k, n] of bytes with or without a sign, C of numbers of 32 bits in rows.
///
/// Numerics  exact, modulo 2^32
/// Cost      2 m n k operations, gemm_int8_workspace bytes where B's rows are not contiguous
template <class A, class B>
void gemm_int8(index_t m, index_t n, index_t k, Operand<A> a, Operand<B> b, std::int32_t* c, index_t c_row,
               void* workspace) {
  if (n == 1 || (b.col != 1 && m <= few_rows)) {
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j)
        c[i * c_row + j] = detail::byte_dot(k, a.at + i * a.row, a.col, b.at + j * b.col, b.row);
    return;
  }
  index_t const w = static_cast<index_t>(__riscv_vsetvlmax_e32m4());
  index_t const together = w < columns_together ? w : columns_together;
  for (index_t j = 0; j < n; j += together) {
    auto const count = static_cast<std::size_t>(n - j < together ? n - j : together);
    B const* from = b.at + j * b.col;
    index_t step = b.row;
    if (b.col != 1) {
      auto* const rows = static_cast<std::uint8_t*>(workspace);
      step = static_cast<index_t>(count);
      for (index_t p = 0; p < k; ++p)
        __riscv_vse8(
            rows + p * step,
            __riscv_vlse8_v_u8m1(reinterpret_cast<std::uint8_t const*>(from + p * b.row), b.col, count),
            count);
      from = reinterpret_cast<B const*>(rows);
    }
    index_t i = 0;
    auto const tiles = [&]<int Rows>() {
      for (; i + Rows <= m; i += Rows)
        detail::ByteTile<Rows, A, B>::run(k, {a.at + i * a.row, a.row, a.col}, from, step, c + i * c_row + j,
                                          c_row, count);
    };
    tiles.template operator()<6>();
    tiles.template operator()<2>();
    tiles.template operator()<1>();
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
