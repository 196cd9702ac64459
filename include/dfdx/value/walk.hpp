// SPDX-License-Identifier: BSL-1.0
// Walking strided memory: the loop over all index tuples of a shape that every plain (not fused) kernel is written
// with.
#pragma once

#include <cstring>

#include <dfdx/value/node.hpp>

namespace dfdx {

/// RowWalk - the rows (along the last axis) of up to four operands of one shape, in row-major order. All kernels share
/// this code, so that each adds but its inner loop to a program.
class RowWalk {
 public:
  static constexpr int max_operands = 4;

  constexpr RowWalk(Shape const& shape, Strides const* strides, int operands)
      : shape_(shape), strides_(strides), operands_(operands) {
    for (int a = 0; a < shape.rank; ++a) empty_ = empty_ || shape[a] == 0;
    if (shape.rank == 0) return;
    size = shape[shape.rank - 1];
    for (int k = 0; k < operands; ++k) step[k] = strides[k][shape.rank - 1];
  }

  constexpr bool empty() const { return empty_; }
  /// Goes to the next row; false after the last.
  [[gnu::noinline]] constexpr bool next() {
    for (int a = shape_.rank - 2; a >= 0; --a) {
      for (int k = 0; k < operands_; ++k) offset[k] += strides_[k][a];
      if (++index_[a] < shape_[a]) return true;
      for (int k = 0; k < operands_; ++k) offset[k] -= strides_[k][a] * shape_[a];
      index_[a] = 0;
    }
    return false;
  }

  /// Elements of a row; of each operand where the present row starts, and how far its elements are apart.
  index_t size = 1, offset[max_operands] = {}, step[max_operands] = {};

 private:
  Shape const& shape_;
  Strides const* strides_;
  int operands_;
  bool empty_ = false;
  index_t index_[max_rank] = {};
};

/// walk - calls f(offsets) for every index tuple of the shape in row-major order; offsets[k] counts elements from
/// the start of the k-th operand, whose strides are strides[k].
template <int N, class F>
constexpr void walk(Shape const& shape, Strides const (&strides)[N], F&& f) {
  static_assert(N <= RowWalk::max_operands);
  RowWalk row(shape, strides, N);
  if (row.empty()) return;
  do {
    index_t offset[N] = {};
    for (int k = 0; k < N; ++k) offset[k] = row.offset[k];
    for (index_t i = 0; i < row.size; ++i) {
      f(offset);
      for (int k = 0; k < N; ++k) offset[k] += row.step[k];
    }
  } while (row.next());
}

namespace detail {

/// repeat - y[i] = x for n elements, by lines of memory: compilers of -O2 make no vectors of the loop.
template <class T>
void repeat(T* y, index_t n, T x) {
  constexpr index_t line = 64 / static_cast<index_t>(sizeof(T));
  if (n < 2 * line) {
    for (index_t i = 0; i < n; ++i) y[i] = x;
    return;
  }
  alignas(64) T full[line];
  for (T& t : full) t = x;
  index_t i = 0;
  for (; i + line <= n; i += line) std::memcpy(y + i, full, sizeof full);
  std::memcpy(y + i, full, static_cast<std::size_t>(n - i) * sizeof(T));
}

/// copy_dense - y[i] = x[i] for n elements; a short row by a few pieces, the last of which may overlap the one before,
/// for a call of memcpy costs as much as several of them.
template <std::size_t Bytes, class E>
DFDX_INLINE void copy_pieces(E* DFDX_RESTRICT y, E const* DFDX_RESTRICT x, index_t n) {
  constexpr auto piece = static_cast<index_t>(Bytes / sizeof(E));
  for (index_t i = 0; i + piece < n; i += piece) std::memcpy(y + i, x + i, Bytes);
  std::memcpy(y + n - piece, x + n - piece, Bytes);
}
template <class E>
DFDX_INLINE void copy_dense(E* y, E const* x, index_t n) {
  index_t const bytes = n * static_cast<index_t>(sizeof(E));
  if (bytes >= 64 && bytes <= 256) copy_pieces<32>(y, x, n);
  else if (bytes >= 16 && bytes < 64) copy_pieces<16>(y, x, n);
  else if (bytes > 0) std::memcpy(y, x, static_cast<std::size_t>(bytes));
}

/// mirror - y[i] = x[-i] for n elements that lie apart: eight at once, of which compilers make a vector.
template <class E>
void mirror(E* DFDX_RESTRICT y, E const* DFDX_RESTRICT x, index_t n) {
  index_t i = 0;
  for (; i + 8 <= n; i += 8) {
    E const* const p = x - i;
    E* const q = y + i;
    E const a = p[0], b = p[-1], c = p[-2], d = p[-3], e = p[-4], f = p[-5], g = p[-6], h = p[-7];
    q[0] = a, q[1] = b, q[2] = c, q[3] = d, q[4] = e, q[5] = f, q[6] = g, q[7] = h;
  }
  for (; i < n; ++i) y[i] = x[-i];
}

/// Rows of n elements each, rows and elements so far apart. Backwards is for who reverses rows: others do not compile
/// what makes that fast.
template <class E, bool Backwards = false>
void copy_rows(void* to, index_t to_row, index_t to_step, void const* from, index_t row, index_t step,
               index_t rows, index_t n) {
  auto* y = static_cast<E*>(to);
  auto const* x = static_cast<E const*>(from);
  for (; rows > 0; --rows, y += to_row, x += row) {
    if constexpr (Backwards)
      if (to_step == -1 && step == 1) {
        mirror(y - (n - 1), x + (n - 1), n);
        continue;
      }
    if (to_step == 1 && step == 1) copy_dense(y, x, n);
    else if (to_step == 1 && step == 0) repeat(y, n, *x);
    else
      for (index_t i = 0; i < n; ++i) y[i * to_step] = x[i * step];
  }
}

/// The same of elements of a size.
template <bool Backwards = false>
auto copy_rows_of(std::size_t size) {
  return size == 1   ? &copy_rows<std::uint8_t, Backwards>
         : size == 2 ? &copy_rows<std::uint16_t, Backwards>
         : size == 4 ? &copy_rows<std::uint32_t, Backwards>
                     : &copy_rows<std::uint64_t, Backwards>;
}

}  // namespace detail

/// copy_elements - copies a strided view into another of the same shape; the dtype only matters for its size. Backwards
/// as copy_rows.
template <bool Backwards = false>
void copy_elements(Operand const& from, Operand const& to) {
  std::size_t const size = size_of(from.meta.dtype);
  auto const* src = static_cast<std::byte const*>(from.data);
  auto* dst = static_cast<std::byte*>(to.data);
  if (is_contiguous(from.meta.shape, from.strides) && is_contiguous(from.meta.shape, to.strides)) {
    if (auto const n = static_cast<std::size_t>(from.meta.shape.numel()); n != 0)
      std::memcpy(dst, src, n * size);
    return;
  }
  // Without axes of one element, so that rows are as long as they can be. The walk goes over the axes before the last
  // two: to go on to a next row costs it as much as copying a short one.
  Shape shape;
  Strides strides[2];
  for (int a = 0; a < from.meta.shape.rank; ++a) {
    if (from.meta.shape[a] == 1) continue;
    shape.push_back(from.meta.shape[a]);
    strides[0].push_back(from.strides[a]);
    strides[1].push_back(to.strides[a]);
  }
  index_t n = 1, step[2] = {1, 1};
  if (shape.rank > 0) {
    n = shape[--shape.rank];
    for (int k = 0; k < 2; ++k) step[k] = strides[k][--strides[k].rank];
  }
  RowWalk rows(shape, strides, 2);
  if (rows.empty() || n == 0) return;
  auto const bytes = static_cast<index_t>(size);
  auto const copy_rows = detail::copy_rows_of<Backwards>(size);
  do
    copy_rows(dst + rows.offset[1] * bytes, rows.step[1], step[1], src + rows.offset[0] * bytes, rows.step[0],
              step[0], rows.size, n);
  while (rows.next());
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
