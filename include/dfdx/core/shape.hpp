// SPDX-License-Identifier: BSL-1.0
// Extents, shapes and strides. An extent is a count known now, or a product of counts that a program learns when
// it is called (a symbolic extent): passes over graphs multiply and compare both kinds alike.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace dfdx {

using index_t = std::int64_t;

/// dyn - a dim of a Tensor type that is known at run time only.
inline constexpr std::size_t dyn = static_cast<std::size_t>(-1);

inline constexpr int max_rank = 8;
inline constexpr int max_symbols = 5;

namespace extent {

// A symbolic extent is negative: bit 63 set, bit 62 clear, four bits of exponent for each symbol from bit 40 on,
// a constant factor below. The type-level `dyn` is -1 and has no symbol yet.
inline constexpr index_t unknown = -1;
inline constexpr int factor_bits = 40;
inline constexpr index_t factor_mask = (index_t{1} << factor_bits) - 1;
inline constexpr index_t symbol_flag = std::int64_t(std::uint64_t{1} << 63);

constexpr bool is_static(index_t e) { return e >= 0; }
constexpr bool is_symbolic(index_t e) { return e < 0 && (e >> 62 & 1) == 0; }
constexpr index_t symbol(int k) { return symbol_flag | (index_t{1} << (factor_bits + 4 * k)) | 1; }

/// mul - product of two extents; a product that does not fit becomes `unknown` when symbolic and -2 when static.
constexpr index_t mul(index_t a, index_t b) {
  if (a >= 0 && b >= 0) {
#if defined(__CUDACC__)  // whose front end does not know the builtin in constant expressions
    return b != 0 && a > INT64_MAX / b ? index_t{-2} : a * b;
#else
    index_t r = 0;
    return __builtin_mul_overflow(a, b, &r) ? index_t{-2} : r;
#endif
  }
  if (a == 0 || b == 0) return 0;
  if (a == -2 || b == -2) return -2;
  if (a == 1) return b;
  if (b == 1) return a;
  if (a == unknown || b == unknown) return unknown;
  index_t const fa = a < 0 ? a & factor_mask : a, fb = b < 0 ? b & factor_mask : b;
  index_t const ea = a < 0 ? (a & ~symbol_flag) >> factor_bits : 0;
  index_t const eb = b < 0 ? (b & ~symbol_flag) >> factor_bits : 0;
  return symbol_flag | ((ea + eb) << factor_bits) | (fa * fb);
}

/// step_over - how far n steps of a stride go: one of memory, which may be negative, or one that has symbols.
constexpr index_t step_over(index_t stride, index_t n) {
  return is_symbolic(stride) ? mul(stride, n) : stride * n;
}

/// symbol_of - k if the extent is the k-th symbol alone, else -1.
constexpr int symbol_of(index_t e) {
  for (int k = 0; k < max_symbols; ++k)
    if (e == symbol(k)) return k;
  return -1;
}

/// substitute - the extent with the k-th symbol replaced by another extent.
constexpr index_t substitute(index_t e, int k, index_t by) {
  if (e >= 0 || e == unknown) return e;
  int const shift = factor_bits + 4 * k;
  index_t const times = (e >> shift) & 15;
  index_t r = e & ~(index_t{15} << shift);
  if ((r & ~symbol_flag) >> factor_bits == 0) r &= factor_mask;
  for (index_t n = 0; n < times; ++n) r = mul(r, by);
  return r;
}

/// resolve - the value of an extent, given the values of the symbols.
constexpr index_t resolve(index_t e, index_t const* symbols) {
  if (e >= 0) return e;
  index_t r = e & factor_mask;
  for (int k = 0; k < max_symbols; ++k)
    for (index_t n = (e >> (factor_bits + 4 * k)) & 15; n > 0; --n) r *= symbols[k];
  return r;
}

}  // namespace extent

/// Shape - up to max_rank extents. Rank -1 marks "no shape": the answer of a shape rule that refused.
struct Shape {
  int rank = 0;
  index_t dims[max_rank] = {};

  constexpr Shape() = default;
  template <std::integral... D>
    requires(sizeof...(D) > 0)
  constexpr explicit(sizeof...(D) == 1) Shape(D... extents)
      : rank(static_cast<int>(sizeof...(D))), dims{static_cast<index_t>(extents)...} {
    static_assert(sizeof...(D) <= max_rank, "shape: at most 8 axes");
  }
  /// Of so many of the extents. (nvcc writes defaults of parameters so into the code for the host.)
  constexpr Shape(int axes, index_t const (&extents)[max_rank]) : rank(axes) {
    for (int i = 0; i < axes; ++i) dims[i] = extents[i];
  }
  /// The answer of a rule that refused.
  static constexpr Shape none() {
    Shape r;
    return r.rank = -1, r;
  }

  constexpr index_t& operator[](int i) { return dims[i]; }
  constexpr index_t operator[](int i) const { return dims[i]; }
  constexpr bool valid() const { return rank >= 0; }

  constexpr bool operator==(Shape const& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != o.dims[i]) return false;
    return true;
  }

  constexpr index_t numel() const {
    index_t n = rank == 0 ? 1 : dims[0];
    for (int i = 1; i < rank; ++i) n = extent::mul(n, dims[i]);
    return n;
  }

  constexpr bool is_static() const {
    for (int i = 0; i < rank; ++i)
      if (dims[i] < 0) return false;
    return true;
  }

  constexpr void push_back(index_t d) { dims[rank++] = d; }
};

template <class... D>
constexpr Shape make_shape(D... dims) {
  if constexpr (sizeof...(D) == 0) return Shape();
  else return Shape(dims...);
}

/// with_first_axis - the shape with an axis of that extent in front.
constexpr Shape with_first_axis(index_t extent, Shape const& s) {
  Shape r = make_shape(extent);
  for (int i = 0; i < s.rank; ++i) r.push_back(s[i]);
  return r;
}

/// Strides - step of each axis, in elements.
using Strides = Shape;

/// contiguous - row-major strides of a shape.
constexpr Strides contiguous(Shape const& s) {
  Strides r;
  r.rank = s.rank;
  index_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    r.dims[i] = step;
    if (i != 0) step = step == 1 ? s.dims[i] : extent::mul(step, s.dims[i]);
  }
  return r;
}

/// is_contiguous - whether (shape, strides) walks memory row by row without gaps; axes of extent 1 do not matter.
constexpr bool is_contiguous(Shape const& s, Strides const& t) {
  index_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    index_t const n = s.dims[i];
    if (n != 1 && t.dims[i] != step) return false;
    if (i != 0) step = step == 1 ? n : extent::mul(step, n);
  }
  return true;
}

/// reshape_strides - strides that walk the same elements under another shape, or rank -1 if that needs a copy. With
/// symbolic extents only axes of extent 1 may come and go.
constexpr Strides reshape_strides(Shape const& from, Strides const& old, Shape const& to) {
  if (is_contiguous(from, old) || from.numel() == 0) return contiguous(to);
  Strides r;
  r.rank = to.rank;
  if (!from.is_static() || !to.is_static()) {
    int i = 0;
    for (int j = 0; j < to.rank; ++j) {
      if (to[j] == 1) continue;
      while (i < from.rank && from[i] == 1) ++i;
      if (i == from.rank || from[i] != to[j]) return Strides::none();
      r[j] = old[i++];
    }
    return r;
  }
  int i = 0, j = 0;
  while (j < to.rank) {
    // Match a run of old axes with a run of new axes of equal size.
    int const i0 = i, j0 = j;
    index_t a = 1, b = to[j++];
    while (a != b)
      if (a < b) a *= from[i++];
      else b *= to[j++];
    if (b == 1) continue;
    index_t step = 0, expected = 0;
    bool first = true;
    for (int k = i - 1; k >= i0; --k) {
      if (from[k] == 1) continue;
      if (first) step = old[k];
      else if (old[k] != expected) return Strides::none();
      expected = extent::step_over(old[k], from[k]);
      first = false;
    }
    for (int k = j - 1; k >= j0; --k) {
      r[k] = step;
      step = extent::step_over(step, to[k]);
    }
  }
  return r;
}

/// normalize_axis - an axis in [0, rank), from one that may count from the end; -1 if out of range.
constexpr int normalize_axis(int axis, int rank) {
  int const a = axis < 0 ? axis + rank : axis;
  return a < 0 || a >= rank ? -1 : a;
}

}  // namespace dfdx
