// SPDX-License-Identifier: BSL-1.0
// Windows that may overlap: unfold lays them out, fold adds them up again.
#pragma once

#include <dfdx/vocabulary/parts.hpp>

namespace dfdx {

/// Patches - how windows of two axes lie; one number stands for both axes.
struct Patches {
  Extents kernel;
  Extents dilation = 1;
  Extents padding = 0;
  Extents stride = 1;
};

namespace detail {

// The positions that windows read: y[o, k] = stride o + dilation k.
template <class V>
constexpr V window_index(V const& like, index_t windows, index_t size, index_t stride, index_t dilation) {
  Meta const m{DType::i64, make_shape(windows, size)};
  auto const scaled = [&](int axis, index_t by) {
    V const at = iota_as(like, m, axis);
    return either(
        by == 1, [&] { return at; },
        [&] {
          return V(
              bind_element<op::mul, std::int64_t>(Attrs{}, at, full_as(like, m, static_cast<double>(by))));
        });
  };
  return bind_element<op::add, std::int64_t>(Attrs{}, scaled(0, stride), scaled(1, dilation));
}

struct Windows {
  int axis;
  index_t size, step;
  constexpr Attrs attrs(Shape const& x) const {
    // The step of a single window may be any number.
    int const a = normalize_axis(axis, x.rank);
    return {{a, size,
             a >= 0 && x[a] >= size && (x[a] - size) / std::max<index_t>(step, 1) == 0 && step > 1
                 ? index_t{1}
                 : step}};
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (rule_axis("unfold", axis, in->shape, why) < 0) return refuse(nullptr);
    return op::windows::infer(Attrs{{normalize_axis(axis, in->shape.rank), size, step}}, in, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return bind_as<op::windows>(y, attrs(x.shape()), x);
  }
};

// The sum of windows where they lie in an array of the given shape: the transpose of op::windows, of its attributes.
template <class V>
constexpr V sum_of_windows(V const& y, Shape const& x, Attrs const& attrs) {
  int const a = op::windows::axis(attrs), last = x.rank;
  index_t const n = x[a], windows = y.shape()[a], size = attrs.i[1];
  if (size == 0) return full_as(y, Meta{y.dtype(), x}, 0);
  index_t const by = windows > 1 ? op::windows::step(attrs) : size, pieces = (size + by - 1) / by;
  constexpr index_t few =
      8;  // parts of windows, one step long each: more of them are added element by element
  if (pieces > few) {
    V const rows = call(Movedim{Axes{a, -1}, Axes{0, 1}}, y);
    return call(Movedim{0, a},
                V(bind<op::rows_add>(Attrs{{n}}, rows, window_index(y, windows, size, by, 1))));
  }
  index_t const all = (windows + pieces - 1) * by;
  V sum{};
  for (index_t k = 0; k < pieces; ++k) {
    index_t const wide = std::min(by, size - k * by);
    V const part = pad_axis(slice_axis(y, last, k * by, wide), last, 0, by - wide);
    V const steps = pad_axis(V(call(Movedim{-1, a + 1}, part)), a, k, pieces - 1 - k);
    sum = k == 0 ? steps : V(sum + steps);
  }
  V const line = reshape_to(sum, with_extent(x, a, all));
  return all > n ? slice_axis(line, a, 0, n) : pad_axis(line, a, 0, n - all);
}

// Patches of images [C, Y, X] or [N, C, Y, X].
struct PatchPlan {
  static constexpr index_t limit = (index_t{1} << 31) - 1;  // products of two are numbers of 64 bits
  Patches p;
  static constexpr index_t of(Extents const& e, int i) { return e.shape[e.shape.rank == 1 ? 0 : i]; }
  static constexpr bool pair(Extents const& e, index_t least) {
    bool ok = e.shape.rank == 1 || e.shape.rank == 2;
    for (int i = 0; ok && i < e.shape.rank; ++i) ok = e.shape[i] >= least && e.shape[i] <= limit;
    return ok;
  }
  constexpr index_t kernel(int i) const { return of(p.kernel, i); }
  constexpr index_t padding(int i) const { return of(p.padding, i); }
  constexpr bool valid() const {
    return pair(p.kernel, 1) && pair(p.dilation, 1) && pair(p.padding, 0) && pair(p.stride, 1);
  }
  // How many windows lie along one of the two axes, of n elements; negative if it has no room for any.
  constexpr index_t windows(int i, index_t n) const {
    index_t const reach = of(p.dilation, i) * (kernel(i) - 1) + 1, room = n + 2 * padding(i);
    return n < 0 || room < reach ? -1 : (room - reach) / of(p.stride, i) + 1;
  }
  template <class V>
  constexpr V index(V const& like, int i, index_t n) const {
    return window_index(like, windows(i, n), kernel(i), of(p.stride, i), of(p.dilation, i));
  }
};

struct Unfold : PatchPlan {
  constexpr explicit Unfold(Patches const& patches) : PatchPlan{patches} {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    bool const fits = valid() && (s.rank == 3 || s.rank == 4);
    index_t const rows = fits ? windows(0, s[s.rank - 2]) : -1,
                  columns = fits ? windows(1, s[s.rank - 1]) : -1;
    if (rows < 0 || columns < 0) return refuse(why, "unfold: the patches do not fit images ", s);
    Meta r{in->dtype,
           make_shape(extent::mul(s[s.rank - 3], kernel(0) * kernel(1)), extent::mul(rows, columns))};
    if (s.rank == 4) r.shape = make_shape(s[0], r.shape[0], r.shape[1]);
    return countable("unfold", r, s, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Shape const s = x.shape();
    index_t const height = s[s.rank - 2], width = s[s.rank - 1], batch = s.rank == 4 ? s[0] : 1;
    V image = reshape_to(x, make_shape(batch, s[s.rank - 3], height, width));
    image = pad_axis(pad_axis(image, 2, padding(0), padding(0)), 3, padding(1), padding(1));
    V const rows = bind<op::take>(Attrs{}, call(Permute{{2, 0, 1, 3}}, image), index(x, 0, height));
    V const cells = bind<op::take>(Attrs{}, call(Permute{{4, 0, 1, 2, 3}}, rows), index(x, 1, width));
    return reshape_to(call(Permute{{4, 5, 3, 1, 2, 0}}, cells), y.shape);
  }
};

struct Fold : PatchPlan {
  Extents size;
  constexpr Fold(Extents const& s, Patches const& patches) : PatchPlan{patches}, size(s) {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    index_t const area = valid() ? kernel(0) * kernel(1) : 1;
    bool fits = valid() && pair(size, 0) && (s.rank == 2 || s.rank == 3) && s[s.rank - 2] % area == 0;
    if (fits) {
      index_t const rows = windows(0, of(size, 0)), columns = windows(1, of(size, 1));
      index_t const all = rows < 0 || columns < 0 ? -1 : extent::mul(rows, columns);
      fits = all >= 0 && op::extents_agree(s[s.rank - 1], all);
    }
    if (!fits) return refuse(why, "fold: patches ", s, " do not make images ", size.shape);
    Shape r = make_shape(s[s.rank - 2] / area, of(size, 0), of(size, 1));
    return Meta{in->dtype, s.rank == 2 ? r : make_shape(s[0], r[0], r[1], r[2])};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Shape const s = y.shape;
    index_t const height = of(size, 0), width = of(size, 1), batch = s.rank == 4 ? s[0] : 1;
    V const cells = reshape_to(
        x, make_shape(batch, s[s.rank - 3], kernel(0), kernel(1), windows(0, height), windows(1, width)));
    V const rows = bind<op::rows_add>(Attrs{{width + 2 * padding(1)}},
                                      call(Permute{{5, 3, 4, 2, 0, 1}}, cells), index(x, 1, width));
    V image = bind<op::rows_add>(Attrs{{height + 2 * padding(0)}}, call(Permute{{1, 2, 3, 4, 0}}, rows),
                                 index(x, 0, height));
    image = call(Permute{{1, 2, 0, 3}}, image);
    return reshape_to(slice_axis(slice_axis(image, 2, padding(0), height), 3, padding(1), width), s);
  }
};

}  // namespace detail

/// windows_added(y, shape, attrs) - the sum of windows where they lie in an array of a shape: the transpose of
/// op::windows, for which its rule looks.
///
/// Math      x[.., step i + k, ..] += y[.., i, .., k]
/// Shapes    y: [.., (N - size) / step + 1, .., size] -> x: [.., N, ..]
/// Dtypes    all but bool
/// Source    elementary
template <class V>
constexpr V windows_added(V const& ct, Shape const& x, Attrs const& attrs) {
  return detail::sum_of_windows(ct, x, attrs);
}

/// unfold<Axis, Size, Step>(x), unfold(x, axis, size, step) - windows along an axis; their elements make a new last
/// axis. Of values in memory it is a view.
///
/// Shapes    x: [.., N, ..] -> [.., (N - size) / step + 1, .., size]
/// Dtypes    any
/// Errors    "unfold: windows of 5 by steps of 1 do not fit axis 0 of [4]"; "unfold: axis 0 of
///           [dyn] has no fixed extent"
/// Source    PyTorch's Tensor.unfold
template <int Axis, index_t Size, index_t Step, operand X>
constexpr auto unfold(X const& x) {
  return detail::call(detail::Fixed<detail::Windows{Axis, Size, Step}>{}, x);
}
template <operand X>
constexpr auto unfold(X const& x, int axis, index_t size, index_t step) {
  return detail::call(detail::Windows{axis, size, step}, x);
}

/// unfold<Patches{...}>(x), unfold(x, patches) - the patches of images as columns (im2col).
///
/// Shapes    x: [N, C, Y, X] -> [N, C * kernel, windows], or all without N
/// Dtypes    any
/// Errors    "unfold: the patches do not fit images [1, 1, 2, 2]"
/// Source    PyTorch's unfold
template <Patches P, operand X>
constexpr auto unfold(X const& x) {
  return detail::call(detail::Fixed<detail::Unfold{P}>{}, x);
}
template <operand X>
constexpr auto unfold(X const& x, Patches const& patches) {
  return detail::call(detail::Unfold{patches}, x);
}

/// fold<Y, X, Patches{...}>(x), fold(x, {Y, X}, patches) - the sum of patches where they lie: the transpose of unfold.
///
/// Shapes    x: [N, C * kernel, windows] -> [N, C, Y, X], or all without N
/// Dtypes    all but bool
/// Errors    "fold: patches [1, 4, 8] do not make images [4, 4]"
/// Source    PyTorch's fold
template <index_t Height, index_t Width, Patches P, operand X>
constexpr auto fold(X const& x) {
  return detail::call(detail::Fixed<detail::Fold{{Height, Width}, P}>{}, x);
}
template <operand X>
constexpr auto fold(X const& x, Extents const& size, Patches const& patches) {
  return detail::call(detail::Fold{size, patches}, x);
}

}  // namespace dfdx
