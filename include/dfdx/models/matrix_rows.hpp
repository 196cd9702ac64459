// SPDX-License-Identifier: BSL-1.0
// MatrixRows - a matrix of a model by its address, whatever its numbers are.
#pragma once

#include <dfdx/io/weights.hpp>

namespace dfdx::models::detail {

/// Rows of numbers of one encoding, contiguous; on devices blocks are by planes (core/quantized_planes.hpp).
struct MatrixRows {
  Encoding encoding = DType::f32;
  std::byte const* bytes = nullptr;
  index_t rows = 0, columns = 0;

  std::size_t row_bytes() const {
    if (Quant const* const q = std::get_if<Quant>(&encoding))
      return static_cast<std::size_t>(columns / block_length(*q)) * block_bytes(*q);
    return static_cast<std::size_t>(columns) * size_of(std::get<DType>(encoding));
  }
  std::byte const* row(index_t i) const { return bytes + static_cast<std::size_t>(i) * row_bytes(); }
  static bool supports(Encoding const& e) {
    DType const* const d = std::get_if<DType>(&e);
    return d == nullptr || *d == DType::f32 || is_half(*d);
  }
};

}  // namespace dfdx::models::detail
