// SPDX-License-Identifier: BSL-1.0
// Values cut into parts: split, chunk and unbind into several; unfold into windows that may overlap, and fold, which
// adds them up again; pixel_shuffle, which makes pixels of channels.
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
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape s = in->shape;
    int const a = rule_axis("unfold", axis, s, why);
    if (a < 0) return refuse(nullptr);
    if (s[a] < 0) return refuse(why, "unfold: axis ", a, " of ", s, " has no fixed extent");
    if (s.rank == max_rank || size < 0 || step < 1 || s[a] < size)
      return refuse(why, "unfold: windows of ", Position{size}, " by steps of ", Position{step},
                    " do not fit axis ", a, " of ", s);
    s[a] = (s[a] - size) / step + 1;
    s.push_back(size);
    return Meta{in->dtype, s};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const a = normalize_axis(axis, x.shape().rank);
    V const index = window_index(x, y.shape[a], size, y.shape[a] > 1 ? step : 1, 1);
    V const rows = bind<op::take>(Attrs{}, call(Movedim{a, 0}, x), index);
    return call(Movedim{Axes{0, 1}, Axes{a, -1}}, rows);
  }
};

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

struct PixelShuffle {
  static constexpr index_t limit = index_t{1} << 31;
  index_t r;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape s = in->shape;
    int const n = s.rank;
    if (n < 3 || r < 1 || r > limit || s[n - 3] < 0 || s[n - 3] % (r * r) != 0)
      return refuse(why, "pixel_shuffle: channels of ", s, " are no multiple of ", Position{r}, " squared");
    s[n - 3] /= r * r;
    s[n - 2] = extent::mul(s[n - 2], r);
    s[n - 1] = extent::mul(s[n - 1], r);
    return countable("pixel_shuffle", Meta{in->dtype, s}, in->shape, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Shape const s = x.shape();
    int const n = s.rank;
    index_t const batch = product(s, 0, n - 3);
    V const parts = reshape_to(x, make_shape(batch, y.shape[n - 3], r, r, s[n - 2], s[n - 1]));
    return reshape_to(call(Permute{{0, 1, 4, 2, 5, 3}}, parts), y.shape);
  }
};
struct PixelUnshuffle {
  index_t r;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape s = in->shape;
    int const n = s.rank;
    if (n < 3 || r < 1 || r > PixelShuffle::limit || s[n - 2] < 0 || s[n - 1] < 0 || s[n - 2] % r != 0 ||
        s[n - 1] % r != 0)
      return refuse(why, "pixel_unshuffle: rows and columns of ", s, " are no multiples of ", Position{r});
    s[n - 3] = extent::mul(s[n - 3], r * r);
    s[n - 2] /= r;
    s[n - 1] /= r;
    return countable("pixel_unshuffle", Meta{in->dtype, s}, in->shape, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Shape const s = x.shape();
    int const n = s.rank;
    index_t const batch = product(s, 0, n - 3);
    V const parts = reshape_to(x, make_shape(batch, s[n - 3], y.shape[n - 2], r, y.shape[n - 1], r));
    return reshape_to(call(Permute{{0, 1, 3, 5, 2, 4}}, parts), y.shape);
  }
};

// An axis without elements has `Empty` parts.
template <int Axis, index_t Size, index_t Empty, operand X>
constexpr auto equal_parts(X const& x) {
  constexpr int axis = normalize_axis(Axis, X::static_rank);
  constexpr index_t n = X::static_shape[axis], count = n == 0 ? Empty : (n + Size - 1) / Size;
  static_assert(n >= 0 && Size > 0, "split: a positive size and an axis of fixed extent required");
  return [&]<index_t... I>(std::integer_sequence<index_t, I...>) {
    if constexpr (n % Size == 0) return std::array{slice<axis, I * Size, (I + 1) * Size>(x)...};
    else return std::tuple(slice<axis, I * Size, (I + 1) * Size>(x)...);
  }(std::make_integer_sequence<index_t, count>{});
}
template <int Axis, operand X>
inline constexpr bool has_axis = typed<X> && normalize_axis(Axis, X::static_rank) >= 0;

template <class X>
constexpr index_t fixed_extent(char const* name, X const& x, int axis) {
  index_t const n = x.shape()[checked_axis(name, axis, x.shape())];
  if (n < 0) raise(name, ": axis ", axis, " of ", x.shape(), " has no fixed extent");
  return n;
}

}  // namespace detail

/// diag<Offset>(x), diag(x, offset) - the diagonal of a matrix, or the matrix with a vector on its diagonal.
///
/// Shapes    x: [M, N] -> [K]; or [N] -> [M, M], M = N + |Offset|
/// Dtypes    any
/// Errors    those of diagonal and diag_embed
/// Source    NumPy's diag
template <operand X>
constexpr auto diag(X const& x, index_t offset) {
  return x.shape().rank == 1 ? diag_embed(detail::untyped(x), offset) : diagonal(detail::untyped(x), offset);
}
template <index_t Offset = 0, operand X>
constexpr auto diag(X const& x) {
  if constexpr (!typed<X>) return diag(x, Offset);
  else if constexpr (X::static_rank == 1) return diag_embed<Offset>(x);
  else return diagonal<Offset>(x);
}

/// split<Size, Axis>(x), split(x, size, axis) - parts of that size along an axis, the last smaller if need be: an array
/// or a tuple of Tensors, or a vector of Arrays; of an empty axis one empty part. split(x, {sizes}, axis) gives parts
/// of several sizes. No copies.
///
/// Shapes    x: [.., N, ..] -> parts [.., size, ..]
/// Dtypes    any
/// Errors    "split: sizes [2, 2] do not add up to axis 0 of [5, 3]"
/// Source    PyTorch's split
template <index_t Size, int Axis = 0, operand X>
constexpr auto split(X const& x) {
  static_assert(Size > 0, "split: a positive size required");
  if constexpr (Size < 1) return Refused{};
  else if constexpr (!typed<X>) return split(x, Size, Axis);
  else if constexpr (detail::has_axis<Axis, X>) return detail::equal_parts<Axis, Size, 1>(x);
  else return slice<Axis, 0>(x);
}
template <operand X>
auto split(X const& x, index_t size, int axis = 0) {
  index_t const n = detail::fixed_extent("split", x, axis);
  if (size < 1) raise("split: a positive size required");
  std::vector<std::remove_cvref_t<decltype(detail::untyped(x))>> r;
  for (index_t at = 0; at < n || r.empty(); at += size)
    r.push_back(slice(detail::untyped(x), axis, at, at + size));
  return r;
}
template <operand X>
auto split(X const& x, std::initializer_list<index_t> sizes, int axis = 0) {
  index_t const n = detail::fixed_extent("split", x, axis);
  Text list;
  index_t total = 0;
  for (index_t s : sizes)
    list.put(total == 0 ? "" : ", ").put(Position{s}), total = s < 0 || s > n ? n + 1 : total + s;
  if (total != n) raise("split: sizes [", list.c_str(), "] do not add up to axis ", axis, " of ", x.shape());
  std::vector<std::remove_cvref_t<decltype(detail::untyped(x))>> r;
  index_t at = 0;
  for (index_t s : sizes) r.push_back(narrow(detail::untyped(x), axis, at, s)), at += s;
  return r;
}

/// chunk<N, Axis>(x), chunk(x, n, axis) - split into n parts, or fewer where an extent has too few elements; of an
/// empty axis n empty parts. chunk<N, Axis> of an Array gives an array of N, as of a Tensor.
///
/// Shapes    x: [.., M, ..] -> parts [.., M / n rounded up, ..], the last smaller if need be
/// Dtypes    any
/// Errors    "chunk: a positive number of parts required"; "chunk: axis 1 of [2, 3] makes 2 parts, 4 required" of an
///           Array
/// Source    PyTorch's chunk
template <index_t N, int Axis = 0, operand X>
constexpr auto chunk(X const& x) {
  static_assert(N > 0, "chunk: a positive number of parts required");
  if constexpr (N < 1) {
    return Refused{};
  } else if constexpr (!typed<X>) {
    auto const parts = chunk(x, N, Axis);
    if (index_t const n = static_cast<index_t>(parts.size()); n != N)
      raise("chunk: axis ", Axis, " of ", x.shape(), " makes ", n, " parts, ", N, " required");
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array{parts[I]...};
    }(std::make_index_sequence<static_cast<std::size_t>(N)>{});
  } else if constexpr (detail::has_axis<Axis, X>) {
    constexpr index_t n = X::static_shape[normalize_axis(Axis, X::static_rank)];
    return detail::equal_parts<Axis, (n > N ? (n + N - 1) / N : 1), N>(x);
  } else {
    return slice<Axis, 0>(x);
  }
}
template <operand X>
auto chunk(X const& x, index_t n, int axis = 0) {
  index_t const size = detail::fixed_extent("chunk", x, axis);
  if (n < 1) raise("chunk: a positive number of parts required");
  auto r = split(x, size > n ? (size + n - 1) / n : 1, axis);
  if (size == 0) r.resize(static_cast<std::size_t>(n), r[0]);
  return r;
}

/// unbind<Axis>(x), unbind(x, axis) - the parts at each position of an axis.
///
/// Shapes    x: [.., N, ..] -> N parts [S... without the axis]
/// Dtypes    any
/// Errors    "unbind: axis 0 of [dyn, 3] has no fixed extent"
/// Source    PyTorch's unbind
template <int Axis = 0, operand X>
constexpr auto unbind(X const& x) {
  if constexpr (!typed<X>) {
    return unbind(x, Axis);
  } else if constexpr (detail::has_axis<Axis, X>) {
    constexpr index_t n = X::static_shape[normalize_axis(Axis, X::static_rank)];
    static_assert(n > 0, "unbind: an axis of fixed positive extent required");
    return [&]<index_t... I>(std::integer_sequence<index_t, I...>) {
      return std::array{select<Axis, I>(x)...};
    }(std::make_integer_sequence<index_t, n>{});
  } else {
    return select<Axis, 0>(x);
  }
}
template <operand X>
auto unbind(X const& x, int axis) {
  std::vector<std::remove_cvref_t<decltype(detail::untyped(x))>> r;
  for (index_t i = 0, n = detail::fixed_extent("unbind", x, axis); i < n; ++i)
    r.push_back(select(detail::untyped(x), axis, i));
  return r;
}

/// unfold<Axis, Size, Step>(x), unfold(x, axis, size, step) - windows along an axis; their elements make a new last
/// axis.
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

/// pixel_shuffle<R>(x), pixel_shuffle(x, r) - channels become pixels; pixel_unshuffle goes back.
///
/// Shapes    x: [B..., C r r, Y, X] -> [B..., C, Y r, X r]
/// Dtypes    any
/// Errors    "pixel_shuffle: channels of [1, 3, 4, 4] are no multiple of 2 squared"
/// Source    Shi et al., CVPR 2016; PyTorch's pixel_shuffle
template <index_t R, operand X>
constexpr auto pixel_shuffle(X const& x) {
  return detail::call(detail::Fixed<detail::PixelShuffle{R}>{}, x);
}
template <operand X>
constexpr auto pixel_shuffle(X const& x, index_t r) {
  return detail::call(detail::PixelShuffle{r}, x);
}
template <index_t R, operand X>
constexpr auto pixel_unshuffle(X const& x) {
  return detail::call(detail::Fixed<detail::PixelUnshuffle{R}>{}, x);
}
template <operand X>
constexpr auto pixel_unshuffle(X const& x, index_t r) {
  return detail::call(detail::PixelUnshuffle{r}, x);
}

}  // namespace dfdx
