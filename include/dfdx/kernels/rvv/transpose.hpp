// SPDX-License-Identifier: BSL-1.0
// Copies of matrices between strides, in vectors of any length: what transposes.
#pragma once

#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// transpose - to[i * to_row + j] = from[i * row + j * col] for i < rows, j < columns: rows of the result
/// are contiguous, those of `from` need not be. Some rows are written together: where columns of `from` are contiguous,
/// each line of the cache then serves all the numbers that it holds.
template <class T>
void transpose(T const* from, index_t row, index_t col, index_t rows, index_t columns, T* to,
               index_t to_row) {
  constexpr index_t block = 16;
  index_t const w = lanes();
  for (index_t first = 0; first < rows; first += block) {
    index_t const end = first + block < rows ? first + block : rows;
    for (index_t j = 0; j < columns; j += w) {
      auto const count = static_cast<std::size_t>(columns - j < w ? columns - j : w);
      for (index_t i = first; i < end; ++i)
        if constexpr (sizeof(T) == 2)
          store_bits(to + i * to_row + j, 1, load_bits(from + i * row + j * col, col, count), count);
        else store_part(to + i * to_row + j, 1, load_part(from + i * row + j * col, col, count), count);
    }
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
