// SPDX-License-Identifier: BSL-1.0
// one_hot: places as rows of zeros with a 1 at the place.
#pragma once

#include <cstring>

#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

// 1 where positions along a new last axis are the index, which has been looked at where it is in memory.
struct OneHot {
  index_t n;
  DType to;
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (!op::detail::is_index(in->dtype))
      return refuse(why, "one_hot: integer index required, got ", in->dtype);
    if (in->shape.rank == max_rank) return refuse(why, "one_hot: at most 7 axes, got ", in->shape);
    if (n == extent::unknown || (n < 0 && !op::is_extent(n)))
      return refuse(why, "one_hot: a number of places required, got ", Position{n});
    Meta r{to, in->shape};
    r.shape.push_back(n);
    return r;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& index) const {
    if constexpr (std::is_same_v<V, Array>)
      if (!DFDX_IN_CONSTANT_EXPRESSION && wants_values(index)) return in_memory(y, index);
    int const last = y.shape.rank - 1;
    Shape const rows = with_extent(y.shape, last, 1),
                row = with_extent(op::reduced_shape(y.shape, -1), last, n);
    // There may be more places than an index of u8 has values.
    V const wide = reshape_to(cast_to(index, DType::i64), rows),
            place = iota_as(index, Meta{DType::i64, row}, last);
    return cast_to(bind<op::equal>(Attrs{}, broadcast_to(wide, y.shape), broadcast_to(place, y.shape)), to);
  }

 private:
  template <int = 0>
  static Array in_memory(Meta const& y, Array const& index) {
    Array const r(y);
    op::detail::set_zero(r.operand());
    std::byte one[sizeof(double)] = {};
    dispatch(y.dtype, [&](auto type) {
      auto const c = math::convert_number<typename decltype(type)::type>(1);
      std::memcpy(one, &c, sizeof c);
    });
    std::byte* row = r.bytes();
    auto const size = static_cast<index_t>(size_of(y.dtype)), n = y.shape[y.shape.rank - 1];
    each_in_memory(index, [&](Operand const& o, index_t at) {
      std::byte* const place = row + read_index(o, at) * size;
      if (size == 4) std::memcpy(place, one, 4);  // of a known size, as mostly
      else std::memcpy(place, one, static_cast<std::size_t>(size));
      row += n * size;
    });
    return r;
  }
};

// Indices in memory that are no place are refused.
template <class I>
constexpr void require_places(char const* name, I const& index, index_t n) {
  if constexpr (!refused<I>) {
    if (!op::detail::is_index(index.dtype())) raise(name, ": integer index required, got ", index.dtype());
    if (index.shape().rank == max_rank) raise(name, ": at most 7 axes, got ", index.shape());
    if (n < 0) return;  // which `positions` refuses
    each_in_memory(index, [&](Operand const& o, index_t at) {
      index_t const i = read_index(o, at);
      if (i < 0 || i >= n) raise(name, ": index ", Position{i}, " out of range for ", n, " places");
    });
  }
}

}  // namespace detail

/// one_hot<N>(index), one_hot(index, n) - 1 at the index, 0 elsewhere, along a new last axis.
///
/// Math      y[.., n] = [index = n]
/// Shapes    index: [I...] -> y: [I..., N]
/// Dtypes    index: i32 i64 u8; the result f32, unless another is named
/// Errors    "one_hot: index 5 out of range for 3 places", of indices in memory
/// Source    PyTorch's one_hot
template <index_t N, element T = float, operand I>
constexpr auto one_hot(I const& index) {
  detail::require_places("one_hot", index, N);
  return detail::call(detail::Fixed<detail::OneHot{N, dtype_of<T>::value}>{}, index);
}
template <operand I>
constexpr auto one_hot(I const& index, index_t n, DType dtype = DType::f32) {
  detail::require_places("one_hot", index, n);
  return detail::call(detail::OneHot{n, dtype}, detail::untyped(index));
}

}  // namespace dfdx
