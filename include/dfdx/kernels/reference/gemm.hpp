// SPDX-License-Identifier: BSL-1.0
//
// reference gemm - the matrix product by its definition: three loops, any types, any strides, constexpr.
//
// This is the oracle of the other backends' tests and the path of the types they do not serve. It is not
// fast. It knows no graph and no shapes, only memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include <dfdx/core/integers.hpp>

namespace dfdx::kernels::reference {

/// accumulator - the type that sums products of T: float for the 16-bit floats, 64 bits for integers.
template <class T>
struct accumulator {
  using type = std::conditional_t<
      std::is_same_v<T, bool>, bool,
      std::conditional_t<std::is_integral_v<T> && std::is_signed_v<T>, std::int64_t,
                         std::conditional_t<std::is_integral_v<T>, std::uint64_t,
                                            std::conditional_t<std::is_floating_point_v<T>, T, float>>>>;
};

/// store_as_is - the epilogue that changes nothing.
struct store_as_is {
  template <class V>
  constexpr V operator()(V sum, std::int64_t, std::int64_t) const {
    return sum;
  }
};

/// gemm - C[i, j] = epilogue(sum_p A[i, p] B[p, j], i, j), with A (M,K), B (K,N) and C (M,N) of any strides.
///
/// Numerics  sums in Acc, p ascending: |error| <= K eps / (1 - K eps) * sum |a| |b|
template <class Acc = void, class A, class B, class C, class Epilogue = store_as_is>
constexpr void gemm(std::int64_t m, std::int64_t n, std::int64_t k, A const* a, std::int64_t a_row,
                    std::int64_t a_col, B const* b, std::int64_t b_row, std::int64_t b_col, C* c,
                    std::int64_t c_row, std::int64_t c_col = 1, Epilogue const& epilogue = {}) {
  using Sum = std::conditional_t<std::is_void_v<Acc>, typename accumulator<A>::type, Acc>;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Sum sum{};
      for (std::int64_t p = 0; p < k; ++p)
        sum = static_cast<Sum>(
            math::plus(sum, static_cast<Sum>(math::times(static_cast<Sum>(a[i * a_row + p * a_col]),
                                                         static_cast<Sum>(b[p * b_row + j * b_col])))));
      c[i * c_row + j * c_col] = static_cast<C>(epilogue(sum, i, j));
    }
  }
}

}  // namespace dfdx::kernels::reference
