// SPDX-License-Identifier: BSL-1.0
// The places along an axis that an index names: read a block at a time as integers of one width, and looked at
// together, before what is done with them.
#pragma once

#include <algorithm>

#include <dfdx/value/walk.hpp>

namespace dfdx::op::detail {

// Where a function has brought an axis to the front: the shape that it was given.
constexpr Shape as_given(Shape s, index_t axis) {
  std::swap(s.dims[0], s.dims[axis]);
  return s;
}
inline index_t checked_index(char const* name, index_t i, index_t n, int axis, Shape const& shape) {
  if (i < 0 || i >= n) raise(name, ": index ", Position{i}, " out of range for axis ", axis, " of ", shape);
  return i;
}

/// Places - of indices `step` apart up to 512 at once, as integers of one width. They are asked for what they are once
/// and for being places all together, so that loops over elements depend on no dtype of an index.
class Places {
 public:
  static constexpr index_t most = 512;

  Places(Operand const& index, index_t extent) : index_(index), extent_(extent) {}
  index_t operator[](index_t i) const { return place_[i]; }

  /// Reads n <= most of them, from element `at` on; false if one is none of 0 .. extent - 1. Those that were read last
  /// are known: of an index that was expanded many lines are one. Who has looked at them before says so.
  template <int = 0>
  bool read(index_t at, index_t step, index_t n, bool looked_at = false) {
    if (at == at_ && n == n_) return true;
    switch (index_.meta.dtype) {
      case DType::i32: copy(static_cast<std::int32_t const*>(index_.data) + at, step, n); break;
      case DType::u8: copy(static_cast<std::uint8_t const*>(index_.data) + at, step, n); break;
      default: {
        auto const* const p = static_cast<index_t const*>(index_.data) + at;
        if (step != 1) copy(p, step, n);
        else place_ = p;
      }
    }
    if (!looked_at && !all_hold(n)) return false;
    at_ = at, n_ = n;
    return true;
  }

 private:
  // Of blocks of known size compilers make vectors.
  static constexpr index_t block = 32;

  template <class I>
  void copy(I const* p, index_t step, index_t n) {
    index_t* DFDX_RESTRICT const to = copied_;
    index_t i = 0;
    if (step == 1)
      for (; i + block <= n; i += block)
        for (index_t j = 0; j < block; ++j) to[i + j] = static_cast<index_t>(p[i + j]);
    for (; i < n; ++i) to[i] = static_cast<index_t>(p[i * step]);
    place_ = to;
  }
  // Neither a place nor what it lacks to the last one has a sign.
  template <int = 0>
  bool all_hold(index_t n) const {
    auto const last = static_cast<std::uint64_t>(extent_ - 1);
    auto const signs = [&](index_t i) {
      auto const v = static_cast<std::uint64_t>(place_[i]);
      return v | (last - v);
    };
    std::uint64_t all = 0;
    index_t i = 0;
    for (; i + block <= n; i += block) {
      std::uint64_t here = 0;
      for (index_t k = 0; k < block; ++k) here |= signs(i + k);
      all |= here;
    }
    for (; i < n; ++i) all |= signs(i);
    return all >> 63 == 0;
  }

  Operand const& index_;
  index_t extent_, at_ = 0, n_ = -1, copied_[most];
  index_t const* place_ = copied_;
};

/// for_places - f(places, n) for the places that an index names along axis `axis` of `shape`, n at a time, in order.
template <class F>
void for_places(char const* by, Operand const& index, Shape const& shape, index_t extent, int axis,
                F const& f) {
  Places places(index, extent);
  Strides const strides[1] = {index.strides};
  RowWalk row(index.meta.shape, strides, 1);
  if (row.empty()) return;
  do {
    for (index_t first = 0; first < row.size; first += Places::most) {
      index_t const at = row.offset[0] + first * row.step[0], n = std::min(row.size - first, Places::most);
      if (!places.read(at, row.step[0], n))
        for (index_t i = 0; i < n; ++i)
          checked_index(by, read_index(index, at + i * row.step[0]), extent, axis, shape);
      f(places, n);
    }
  } while (row.next());
}
/// check_places - that they are ones of `shape`, before anything is written there.
template <int = 0>
void check_places(char const* by, Operand const& index, Shape const& shape, index_t extent, int axis) {
  for_places(by, index, shape, extent, axis, [](Places const&, index_t) {});
}

}  // namespace dfdx::op::detail
