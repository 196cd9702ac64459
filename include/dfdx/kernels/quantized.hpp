// SPDX-License-Identifier: BSL-1.0
// Products with quantized rows by the processor's own kernel. Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <dfdx/kernels/rvv/quantized.hpp>
#include <dfdx/kernels/simd/quantized.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// multiply_quantized - as quantized_product (simd/quantized.hpp).
template <Quant F>
void multiply_quantized(index_t m, index_t n, index_t k, Q8Block<q8_length(F)> const* x, std::byte const* w,
                        std::size_t w_row, float* y, index_t y_row) {
#if defined(DFDX_RVV)
  index_t const blocks = k / block_length(F);
  for (index_t j = 0; j < n; ++j, w += w_row) {
    constexpr int rows = rvv::quantized_rows<F>;
    index_t i = 0;
    for (; i + rows <= m; i += rows)
      rvv::quantized_dots<F, rows>(w, x + i * blocks, blocks, k, y + i * y_row + j, y_row);
    for (; i < m; ++i) rvv::quantized_dots<F, 1>(w, x + i * blocks, blocks, k, y + i * y_row + j, y_row);
  }
#else
  quantized_product<F>(m, n, k, x, w, w_row, y, y_row);
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
