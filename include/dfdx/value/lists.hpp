// SPDX-License-Identifier: BSL-1.0
// Lists of axes and of extents as arguments of functions: a braced list, one number, or a range known at run time.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>

#include <dfdx/core/error.hpp>

namespace dfdx {

/// Extents - a shape given as a braced list of any integers, {batch, 3}, as one integer, as a Shape, or as a vector.
struct Extents {
  Shape shape{};
  template <std::integral... I>
  constexpr Extents(I... dims) : shape(make_shape(dims...)) {
    static_assert(sizeof...(I) <= static_cast<std::size_t>(max_rank), "extents: at most 8 axes");
  }
  constexpr Extents(Shape const& s) : shape(s) {}
  constexpr Extents(std::span<index_t const> dims) {
    for (index_t d : dims) {
      if (shape.rank == max_rank) raise("extents: at most 8 axes");
      shape.push_back(d);
    }
  }
};

/// Axes - axes given as a braced list, {0, -1}, as one integer, or as a vector. None means all where that has a sense.
struct Axes {
  int n = 0;
  int v[max_rank] = {};

  constexpr void push(int axis) {
    if (n == max_rank) raise("axes: at most 8 axes");
    v[n++] = axis;
  }

  constexpr Axes() = default;
  constexpr Axes(int axis) : n(1), v{axis} {}
  constexpr Axes(std::initializer_list<int> axes) {
    for (int a : axes) push(a);
  }
  template <class R>
    requires std::convertible_to<R const&, std::span<int const>>
  constexpr Axes(R const& axes) {
    for (int a : std::span<int const>(axes)) push(a);
  }

  /// mask - the axes as bits. Negative if one is out of range or named twice, which offender and fault tell.
  constexpr index_t mask(int rank) const {
    index_t r = 0;
    for (int i = 0; i < n; ++i) {
      int const a = normalize_axis(v[i], rank);
      if (a < 0) return -1 - i;
      if ((r >> a & 1) != 0) return -1 - i - max_rank;
      r |= index_t{1} << a;
    }
    return r;
  }
  /// mask_or_all - the same, and all axes for none. A scalar may be asked for axis 0 or -1, as in PyTorch: it has none.
  constexpr index_t mask_or_all(int rank) const {
    if (rank == 0 && n == 1 && (v[0] == 0 || v[0] == -1)) return 0;
    return n == 0 ? (index_t{1} << rank) - 1 : mask(rank);
  }
  /// offender - which axis made a mask negative.
  constexpr int offender(index_t mask) const { return mask < 0 ? v[(-1 - mask) % max_rank] : 0; }
  constexpr char const* fault(index_t mask) const {
    return mask < -max_rank ? " named twice for " : " out of range for ";
  }
};

}  // namespace dfdx
