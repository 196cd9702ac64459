// SPDX-License-Identifier: BSL-1.0
// Functions that lay elements out anew: pad, flip, roll, tile, and the views that name parts of a value.
#pragma once

#include <array>
#include <tuple>

#include <dfdx/vocabulary/join.hpp>

namespace dfdx {

/// PadMode - what stands beyond the ends of an axis.
enum class PadMode { constant, reflect, replicate, circular };

/// Widths - of padding: before and after the last axis, then the one before it, and so on, as in PyTorch.
struct Widths {
  int n = 0;
  index_t v[2 * max_rank] = {};
  constexpr Widths(std::initializer_list<index_t> w) {
    for (index_t i : w) push(i);
  }
  template <class R>
    requires std::convertible_to<R const&, std::span<index_t const>>
  constexpr Widths(R const& w) {
    for (index_t i : std::span<index_t const>(w)) push(i);
  }

 private:
  constexpr void push(index_t i) {
    if (n == 2 * max_rank) raise("pad: at most 8 axes");
    v[n++] = i;
  }

 public:
  constexpr index_t before(int axis, int rank) const { return at(2 * (rank - 1 - axis)); }
  constexpr index_t after(int axis, int rank) const { return at(2 * (rank - 1 - axis) + 1); }

 private:
  constexpr index_t at(int i) const { return i < n ? v[i] : 0; }
};

namespace detail {

struct Pad {
  Widths widths;
  PadMode mode = PadMode::constant;
  double value = 0;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const rank = in->shape.rank;
    if (widths.n % 2 != 0 || widths.n > 2 * rank)
      return refuse(why, "pad: a pair of widths for each of at most ", rank, " axes required, got ", widths.n,
                    " numbers");
    Meta r = *in;
    for (int a = 0; r.valid() && a < rank; ++a) {
      index_t const b = widths.before(a, rank), e = widths.after(a, rank), n = in->shape[a];
      constexpr index_t limit = index_t{1} << 40;
      if (mode == PadMode::constant && (b < 0 || e < 0) && b >= -limit && e >= -limit) {
        if (n < 0) return refuse(why, "pad: axis ", a, " of ", in->shape, " has no fixed extent to cut from");
        if (n < cut_by(b) + cut_by(e))
          return refuse(why, "pad: axis ", a, " of ", in->shape, " has fewer than ", cut_by(b) + cut_by(e),
                        " elements to cut off");
        r.shape[a] = n - cut_by(b) - cut_by(e);
      }
      index_t const longest = b > e ? b : e;
      bool const fits = mode == PadMode::reflect    ? longest < n
                        : mode == PadMode::circular ? longest <= n
                                                    : mode == PadMode::constant || n > 0;
      if (longest > limit || b < -limit || e < -limit || (longest > 0 && n >= 0 && !fits))
        return refuse(why, "pad: widths ", Position{b}, " and ", Position{e}, " are too large for axis ", a,
                      " of ", in->shape);
      r = op::pad::infer(mode == PadMode::constant ? Attrs{{a, cut_by(-b), cut_by(-e)}} : Attrs{{a, b, e}},
                         &r, why);
    }
    return r;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    if constexpr (std::is_same_v<V, Array>)
      if (wants_values(x) && !cuts(y.shape.rank)) return in_memory(y, x);
    V r = x;
    for (int a = 0, rank = y.shape.rank; a < rank; ++a)
      r = along(r, a, widths.before(a, rank), widths.after(a, rank));
    return r;
  }

 private:
  // How much a width cuts off: negative ones do.
  static constexpr index_t cut_by(index_t width) { return width < 0 ? -width : 0; }
  constexpr bool cuts(int rank) const {
    bool r = false;
    for (int a = 0; a < rank; ++a) r = r || widths.before(a, rank) < 0 || widths.after(a, rank) < 0;
    return r;
  }
  // All axes at once.
  template <int = 0>
  Array in_memory(Meta const& y, Array const& x) const {
    index_t before[max_rank] = {};
    for (int a = 0, rank = y.shape.rank; a < rank; ++a) before[a] = widths.before(a, rank);
    op::detail::Beyond outside = nullptr;
    if (mode == PadMode::reflect) outside = [](index_t i, index_t n) { return i < 0 ? -i : 2 * (n - 1) - i; };
    else if (mode == PadMode::replicate) outside = [](index_t i, index_t n) { return i < 0 ? 0 : n - 1; };
    else if (mode == PadMode::circular) outside = [](index_t i, index_t n) { return i < 0 ? i + n : i - n; };
    Array const r(y);
    op::detail::pad_all(x.operand(), r.operand(), before, outside, value);
    return r;
  }
  template <class V>
  constexpr V along(V const& x, int axis, index_t before, index_t after) const {
    if (mode == PadMode::constant) {
      V const cut = either(
          before >= 0 && after >= 0, [&] { return x; },
          [&] {
            return slice_axis(x, axis, cut_by(before), x.shape()[axis] - cut_by(before) - cut_by(after));
          });
      return pad_axis(cut, axis, cut_by(-before), cut_by(-after), 0, value);
    }
    V parts[] = {x, x, x};
    int first = 1, last = 1;
    if (before > 0) parts[--first] = beyond(x, axis, before, true);
    if (after > 0) parts[++last] = beyond(x, axis, after, false);
    return Concat::joined(parts + first, last - first + 1, Attrs{{axis}});
  }
  template <class V>
  constexpr V beyond(V const& x, int axis, index_t n, bool left) const {
    index_t const size = x.shape()[axis];
    if (mode == PadMode::circular) return slice_axis(x, axis, left ? size - n : 0, n);
    if (mode == PadMode::reflect)
      return bind<op::flip>(Attrs{{index_t{1} << axis}}, slice_axis(x, axis, left ? 1 : size - 1 - n, n));
    return broadcast_to(slice_axis(x, axis, left ? 0 : size - 1, 1), with_extent(x.shape(), axis, n));
  }
};

struct Flip {
  Axes axes;
  constexpr Meta infer(Meta const* in, Text* why) const {
    index_t const mask = axes.mask(in->shape.rank);
    if (mask < 0) return refuse(why, "flip: axis ", axes.offender(mask), axes.fault(mask), in->shape);
    return *in;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return bind_as<op::flip>(y, Attrs{{axes.mask(y.shape.rank)}}, x);
  }
};

struct Roll {
  Shape shifts;
  Axes axes;  // none: of the flattened value
  constexpr Meta infer(Meta const* in, Text* why) const {
    index_t const mask = axes.mask(in->shape.rank);
    if (mask < 0) return refuse(why, "roll: axis ", axes.offender(mask), axes.fault(mask), in->shape);
    if (shifts.rank != (axes.n == 0 ? 1 : axes.n))
      return refuse(why, "roll: ", shifts.rank, " shifts for ", axes.n, " axes");
    for (int i = 0; i < in->shape.rank; ++i)
      if ((axes.n == 0 || (mask >> i & 1) != 0) && in->shape[i] < 0)
        return refuse(why, "roll: axis ", i, " of ", in->shape, " has no fixed extent");
    return *in;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    if (axes.n == 0)
      return reshape_to(along(reshape_to(x, make_shape(y.shape.numel())), 0, shifts[0]), y.shape);
    V r = x;
    for (int i = 0; i < axes.n; ++i) r = along(r, normalize_axis(axes.v[i], y.shape.rank), shifts[i]);
    return r;
  }

 private:
  template <class V>
  static constexpr V along(V const& x, int axis, index_t shift) {
    index_t const n = x.shape()[axis];
    index_t const s = n == 0 ? 0 : (shift % n + n) % n;
    if (s == 0) return x;
    return bind<op::concat>(Attrs{{axis}}, slice_axis(x, axis, n - s, s), slice_axis(x, axis, 0, n - s));
  }
};

constexpr index_t product(Shape const& s, int from, int to) {
  index_t n = 1;
  for (int i = from; i < to; ++i) n = extent::mul(n, s[i]);
  return n;
}

// The parts of x, of all axes from `axis` on, each repeated n times in place.
template <class V>
constexpr V repeated_parts(V const& x, int axis, index_t n) {
  Shape const s = x.shape();
  index_t const outer = product(s, 0, axis), inner = product(s, axis, s.rank);
  V const wide = broadcast_to(reshape_to(x, make_shape(outer, 1, inner)), make_shape(outer, n, inner));
  return reshape_to(wide, make_shape(extent::mul(outer, n), inner));
}

struct Tile {
  Shape reps;
  constexpr Shape aligned(Shape const& s) const {
    Shape r;
    for (int i = s.rank; i < reps.rank; ++i) r.push_back(1);
    for (int i = 0; i < s.rank; ++i) r.push_back(s[i]);
    return r;
  }
  constexpr index_t times(int axis, int rank) const {
    return axis < rank - reps.rank ? 1 : reps[axis - (rank - reps.rank)];
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape s = aligned(in->shape);
    for (int i = 0; i < s.rank; ++i) {
      if (times(i, s.rank) < 0) return refuse(why, "tile: negative number of repetitions");
      s[i] = extent::mul(s[i], times(i, s.rank));
    }
    return countable("tile", Meta{in->dtype, s}, in->shape, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Shape s = aligned(x.shape());
    V r = reshape_to(x, s);
    for (int i = 0; i < s.rank; ++i)
      if (times(i, s.rank) != 1) {
        s[i] = y.shape[i];
        r = reshape_to(repeated_parts(r, i, times(i, s.rank)), s);
      }
    return r;
  }
};

struct RepeatInterleave {
  index_t repeats;
  Axes axes;  // one, or none for the flattened value
  constexpr Meta infer(Meta const* in, Text* why) const {
    index_t const mask = axes.mask(in->shape.rank);
    if (mask < 0 || axes.n > 1)
      return refuse(why, "repeat_interleave: axis ", axes.offender(mask), axes.fault(mask), in->shape);
    if (repeats < 0) return refuse(why, "repeat_interleave: negative number of repetitions");
    if (axes.n == 0)
      return countable("repeat_interleave",
                       Meta{in->dtype, make_shape(extent::mul(in->shape.numel(), repeats))}, in->shape, why);
    int const a = normalize_axis(axes.v[0], in->shape.rank);
    Shape const wide = with_extent(in->shape, a, extent::mul(in->shape[a], repeats));
    return countable("repeat_interleave", Meta{in->dtype, wide}, in->shape, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const a = axes.n == 0 ? x.shape().rank : normalize_axis(axes.v[0], x.shape().rank) + 1;
    return reshape_to(repeated_parts(x, a, repeats), y.shape);
  }
};

}  // namespace detail

/// pad<1, 1>(x), pad(x, {1, 1}) - values beyond the ends of axes, given in PyTorch's order: before and after the last
/// axis, then the one before it. A negative width of constants cuts elements off. The mode comes first among template
/// arguments: pad<PadMode::reflect, 1, 1>(x).
///
/// Shapes    x: [.., N, ..] -> [.., before + N + after, ..]
/// Dtypes    any
/// Errors    "pad: widths 3 and 0 are too large for axis 1 of [2, 3]" (reflect, circular)
/// Source    PyTorch's pad
template <PadMode Mode, index_t... Width, operand X>
constexpr auto pad(X const& x, double value = 0) {
  return detail::call(detail::FixedType<detail::Pad{{Width...}, Mode}>{{}, {{Width...}, Mode, value}}, x);
}
template <index_t First, index_t... Width, operand X>
constexpr auto pad(X const& x, double value = 0) {
  return pad<PadMode::constant, First, Width...>(x, value);
}
template <operand X>
constexpr auto pad(X const& x, Widths const& widths, PadMode mode = PadMode::constant, double value = 0) {
  return detail::call(detail::Pad{widths, mode, value}, x);
}

/// diff<Axis>(x), diff(x, axis) - the differences of neighbours along an axis.
///
/// Math      y[i] = x[i + 1] - x[i]
/// Shapes    x: [.., N, ..] -> [.., N - 1, ..], of no elements none
/// Dtypes    all but bool
/// Errors    "slice: axis 2 out of range for [2, 3]"
/// Source    NumPy's diff
template <int Axis = -1, operand X>
constexpr auto diff(X const& x) {
  return slice<Axis, 1>(x) - slice<Axis, 0, -1>(x);
}
template <operand X>
constexpr auto diff(X const& x, int axis) {
  return slice(x, axis, 1) - slice(x, axis, 0, -1);
}

/// flip - axes walked from their ends.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Errors    "flip: axis 2 out of range for [2, 3]"
/// Source    NumPy's flip
template <int... A, operand X>
constexpr auto flip(X const& x) {
  return detail::call(detail::Fixed<detail::Flip{Axes{A...}}>{}, x);
}
template <operand X>
constexpr auto flip(X const& x, Axes const& axes) {
  return detail::call(detail::Flip{axes}, x);
}

/// roll<Shift, Axis...>(x), roll(x, shifts, axes) - elements moved along axes, those beyond the end come back at the
/// beginning; without an axis along the flattened value.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Errors    "roll: 2 shifts for 1 axes"
/// Source    NumPy's roll
template <index_t Shift, int... A, operand X>
constexpr auto roll(X const& x) {
  return detail::call(detail::Fixed<detail::Roll{make_shape(Shift), Axes{A...}}>{}, x);
}
template <operand X>
constexpr auto roll(X const& x, Extents const& shifts, Axes const& axes = {}) {
  return detail::call(detail::Roll{shifts.shape, axes}, x);
}

/// tile<2, 1>(x), tile(x, {2, 1}) - x repeated so often along each of the last axes (PyTorch's tile and repeat).
///
/// Shapes    x: [M, N], {a, b} -> [a M, b N]
/// Dtypes    any
/// Errors    "tile: negative number of repetitions"
/// Source    PyTorch's tile
template <index_t... Reps, operand X>
constexpr auto tile(X const& x) {
  return detail::call(detail::Fixed<detail::Tile{make_shape(Reps...)}>{}, x);
}
template <operand X>
constexpr auto tile(X const& x, Extents const& reps) {
  return detail::call(detail::Tile{reps.shape}, x);
}

/// repeat_interleave<Repeats, Axis>(x), repeat_interleave(x, repeats, axis) - each element repeated in place along an
/// axis; without one in the flattened value.
///
/// Shapes    x: [.., N, ..] -> [.., N repeats, ..]; without an axis [all repeats]
/// Dtypes    any
/// Errors    "repeat_interleave: negative number of repetitions"
/// Source    PyTorch's repeat_interleave
template <index_t Repeats, int... A, operand X>
constexpr auto repeat_interleave(X const& x) {
  static_assert(sizeof...(A) <= 1, "repeat_interleave: at most one axis");
  return detail::call(detail::Fixed<detail::RepeatInterleave{Repeats, Axes{A...}}>{}, x);
}
template <operand X>
constexpr auto repeat_interleave(X const& x, index_t repeats, Axes const& axes = {}) {
  return detail::call(detail::RepeatInterleave{repeats, axes}, x);
}

}  // namespace dfdx
