// SPDX-License-Identifier: BSL-1.0
// Walking strided memory: the loop over all index tuples of a shape that every plain (not fused) kernel is written
// with.
#pragma once

#include <cstring>

#include <dfdx/value/node.hpp>

namespace dfdx {

/// walk - calls f(offsets) for every index tuple of the shape in row-major order; offsets[k] counts elements from
/// the start of the k-th operand, whose strides are strides[k].
template <int N, class F>
constexpr void walk(Shape const& shape, Strides const (&strides)[N], F&& f) {
  for (int a = 0; a < shape.rank; ++a)
    if (shape[a] == 0) return;
  index_t offset[N] = {};
  if (shape.rank == 0) return static_cast<void>(f(offset));
  int const last = shape.rank - 1;
  index_t const inner = shape[last];
  index_t index[max_rank] = {};
  for (;;) {
    for (index_t i = 0; i < inner; ++i) {
      f(offset);
      for (int k = 0; k < N; ++k) offset[k] += strides[k][last];
    }
    for (int k = 0; k < N; ++k) offset[k] -= strides[k][last] * inner;
    int a = last - 1;
    for (; a >= 0; --a) {
      for (int k = 0; k < N; ++k) offset[k] += strides[k][a];
      if (++index[a] < shape[a]) break;
      for (int k = 0; k < N; ++k) offset[k] -= strides[k][a] * shape[a];
      index[a] = 0;
    }
    if (a < 0) return;
  }
}

/// copy_elements - copies a strided view into another of the same shape; the dtype only matters for its size.
inline void copy_elements(Operand const& from, Operand const& to) {
  std::size_t const size = size_of(from.meta.dtype);
  auto const* src = static_cast<std::byte const*>(from.data);
  auto* dst = static_cast<std::byte*>(to.data);
  if (is_contiguous(from.meta.shape, from.strides) && is_contiguous(from.meta.shape, to.strides)) {
    if (auto const n = static_cast<std::size_t>(from.meta.shape.numel()); n != 0)
      std::memcpy(dst, src, n * size);
    return;
  }
  auto const copy = [&](auto element) {
    using E = decltype(element);
    Strides const strides[2] = {from.strides, to.strides};
    walk<2>(from.meta.shape, strides, [&](index_t const(&o)[2]) {
      std::memcpy(dst + o[1] * static_cast<index_t>(sizeof(E)), src + o[0] * static_cast<index_t>(sizeof(E)),
                  sizeof(E));
    });
  };
  switch (size) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

/// read_index - an integer element, whatever its width.
inline index_t read_index(Operand const& x, index_t offset) {
  switch (x.meta.dtype) {
    case DType::i32: return static_cast<std::int32_t const*>(x.data)[offset];
    case DType::u8: return static_cast<std::uint8_t const*>(x.data)[offset];
    default: return static_cast<std::int64_t const*>(x.data)[offset];
  }
}

/// part - the operand restricted by dropping leading axes after moving to `offset` elements.
inline Operand part(Operand x, index_t offset, int dropped_axes) {
  x.data = static_cast<std::byte*>(x.data) + offset * static_cast<index_t>(size_of(x.meta.dtype));
  x.meta.shape.rank -= dropped_axes;
  x.strides.rank -= dropped_axes;
  for (int a = 0; a < x.meta.shape.rank; ++a) {
    x.meta.shape[a] = x.meta.shape[a + dropped_axes];
    x.strides[a] = x.strides[a + dropped_axes];
  }
  return x;
}

}  // namespace dfdx
