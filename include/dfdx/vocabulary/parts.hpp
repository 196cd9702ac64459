// SPDX-License-Identifier: BSL-1.0
// Views by other names: flatten, movedim, select, narrow, diagonals, meshgrid.
#pragma once

#include <dfdx/vocabulary/arrange.hpp>
#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

struct Flatten : Reshaped {
  int start, end;
  constexpr Flatten(int s, int e) : start(s), end(e) {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    if (s.rank == 0) return Meta{in->dtype, make_shape(1)};
    int const a = rule_axis("flatten", start, s, why);
    int const b = a < 0 ? a : rule_axis("flatten", end, s, why);
    if (b < 0) return refuse(nullptr);
    if (a > b) return refuse(why, "flatten: axis ", start, " lies behind axis ", end, " of ", s);
    Shape r;
    for (int i = 0; i < a; ++i) r.push_back(s[i]);
    index_t n = 1;
    for (int i = a; i <= b; ++i) n = extent::mul(n, s[i]);
    r.push_back(n);
    for (int i = b + 1; i < s.rank; ++i) r.push_back(s[i]);
    return Meta{in->dtype, r};
  }
};

struct Unflatten : Reshaped {
  int axis;
  Shape sizes;
  constexpr Unflatten(int a, Shape const& s) : axis(a), sizes(s) {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    int const a = rule_axis("unflatten", axis, s, why);
    if (a < 0) return refuse(nullptr);
    Shape const part = op::reshape::target(make_shape(s[a]), sizes, nullptr);
    if (!part.valid() || s.rank + part.rank - 1 > max_rank)
      return refuse(why, "unflatten: axis ", a, " of ", s, " does not make ", sizes);
    Shape r;
    for (int i = 0; i < a; ++i) r.push_back(s[i]);
    for (int i = 0; i < part.rank; ++i) r.push_back(part[i]);
    for (int i = a + 1; i < s.rank; ++i) r.push_back(s[i]);
    return Meta{in->dtype, r};
  }
};

struct Movedim {
  Axes from, to;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Permute const p = permutation(in->shape.rank);
    if (p.axes.n < 0)
      return refuse(why, "movedim: ", from.n, " axes of ", in->shape, " cannot move to ", to.n, " places");
    return p.infer(in, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return permutation(y.shape.rank).template run<void>(y, x);
  }

 private:
  constexpr Permute permutation(int rank) const {
    Permute p{};
    index_t const moved = from.mask(rank), taken = to.mask(rank);
    int distinct = 0, places = 0;
    for (int i = 0; i < rank; ++i) distinct += moved >> i & 1, places += taken >> i & 1;
    p.axes.n = -1;
    if (moved < 0 || taken < 0 || from.n != to.n || distinct != from.n || places != to.n) return p;
    p.axes.n = rank;
    for (int i = 0; i < from.n; ++i)
      p.axes.v[normalize_axis(to.v[i], rank)] = normalize_axis(from.v[i], rank);
    for (int i = 0, next = 0; i < rank; ++i) {
      if ((taken >> i & 1) != 0) continue;
      while ((moved >> next & 1) != 0) ++next;
      p.axes.v[i] = next++;
    }
    return p;
  }
};

struct Select {
  int axis;
  index_t index;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("select", axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    index_t const n = in->shape[a];
    if (n < 0 ? index < 0 : index < -n || index >= n)
      return refuse(why, "select: index ", Position{index}, " out of range for axis ", a, " of ", in->shape);
    return Meta{in->dtype, dropped(in->shape, index_t{1} << a)};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const a = axis < 0 ? axis + x.shape().rank : axis;  // infer has looked whether there is one
    return reshape_to(slice_axis(x, a, index < 0 ? index + x.shape()[a] : index, 1), y.shape);
  }
};

struct Narrow {
  int axis;
  index_t start, length;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("narrow", axis, in->shape, why);
    if (a < 0) return refuse(nullptr);
    index_t const n = in->shape[a];
    if (start < 0 || length < 0 || (n >= 0 && (start > n || length > n - start)))
      return refuse(why, "narrow: ", Position{length}, " elements from ", Position{start},
                    " on out of range for axis ", a, " of ", in->shape);
    return Meta{in->dtype, with_extent(in->shape, a, length)};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    return slice_axis(x, normalize_axis(axis, y.shape.rank), start, length);
  }
};

// The diagonal of axes a and b becomes the last axis: a slice of both, flattened.
struct Diagonal {
  index_t offset;
  int first, second;
  constexpr index_t length(index_t rows, index_t columns) const {
    index_t const r = offset < 0 ? rows + offset : rows, c = offset < 0 ? columns : columns - offset;
    index_t const n = r < c ? r : c;
    return n < 0 ? 0 : n;
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    int const a = rule_axis("diagonal", first, s, why);
    int const b = a < 0 ? a : rule_axis("diagonal", second, s, why);
    if (b < 0) return refuse(nullptr);
    if (a == b) return refuse(why, "diagonal: two axes of ", s, " required");
    if (s[a] < 0 || s[b] < 0)
      return refuse(why, "diagonal: axes ", a, " and ", b, " of ", s, " have no fixed extents");
    Shape r = dropped(s, index_t{1} << a | index_t{1} << b);
    r.push_back(length(s[a], s[b]));
    return Meta{in->dtype, r};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Movedim back{Axes{first, second}, Axes{-2, -1}};
    V const m = call(back, x);
    Shape flat = m.shape();
    index_t const rows = flat[flat.rank - 2], columns = flat[flat.rank - 1];
    flat[--flat.rank - 1] = rows * columns;
    index_t const n = y.shape[y.shape.rank - 1];
    index_t const start = n == 0 ? 0 : offset < 0 ? -offset * columns : offset;
    return slice_axis(reshape_to(m, flat), flat.rank - 1, start, n, columns + 1);
  }
};

// Its transpose: the last axis becomes the diagonal of a square of zeros.
struct DiagEmbed {
  index_t offset;
  constexpr index_t extent(index_t n) const {
    constexpr index_t limit = index_t{1} << 40;
    return offset > limit || offset < -limit ? limit : n + (offset < 0 ? -offset : offset);
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape r = in->shape;
    if (r.rank < 1 || r.rank == max_rank || r[r.rank - 1] < 0)
      return refuse(why, "diag_embed: a last axis of fixed extent required, got ", r);
    index_t const n = extent(r[r.rank - 1]);
    if (extent::mul(n, n) < 0) return refuse(why, "diag_embed: size overflows for ", in->shape);
    r[r.rank - 1] = n;
    r.push_back(n);
    return countable("diag_embed", Meta{in->dtype, r}, in->shape, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const last = x.shape().rank - 1;
    index_t const n = x.shape()[last], size = extent(n);
    index_t const start = n == 0 ? 0 : offset < 0 ? -offset * size : offset;
    index_t const used = n == 0 ? 0 : (n - 1) * (size + 1) + 1;
    return reshape_to(pad_axis(x, last, start, size * size - start - used, size), y.shape);
  }
};

// What tril and triu keep, and zeros.
struct Triangle {
  index_t k;
  bool lower;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    if (s.rank < 2) return refuse(why, lower ? "tril" : "triu", ": a matrix required, got ", s);
    return *in;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const rank = y.shape.rank;
    index_t const rows = y.shape[rank - 2], columns = y.shape[rank - 1];
    // Places in 32 bits, of which a vector has as many as of most numbers, if all of them are.
    constexpr index_t half = index_t{1} << 30;
    bool const narrow = rows >= 0 && rows < half && columns >= 0 && columns < half;
    DType const places = narrow ? DType::i32 : DType::i64;
    index_t const far =
        narrow ? half : index_t{1} << 60;  // beyond every extent, and a sum with one is no overflow
    index_t const diagonal = k > far ? far : k < -far ? -far : k;
    if constexpr (std::is_same_v<V, Array>)
      if (wants_values(x)) {
        V const r(y), from = x.strides()[rank - 1] == 1 ? x : packed(x);
        kernels::copy_triangle(from.operand(), r.operand(), diagonal, lower);
        return r;
      }
    V const row = iota_as(x, Meta{places, make_shape(rows, 1)}, 0),
            column = iota_as(x, Meta{places, make_shape(1, columns)}, 1);
    V const end = row + diagonal;
    V const kept = either(lower, [&] { return column <= end; }, [&] { return column >= end; });
    return where(kept, x, full_as(x, Meta{y.dtype, {}}, 0));
  }
};

// One of `count` operands, repeated to the shape of all: as their axes in order (a grid of lists), or broadcast.
struct Common {
  int which, count;
  bool grid;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape s = grid ? Shape{} : in[0].shape;
    for (int i = 0; i < count; ++i) {
      if (grid && (in[i].shape.rank > 1 || count > max_rank))
        return refuse(why, "meshgrid: at most 8 lists required, got ", in[i].shape);
      if (grid) s.push_back(in[i].shape.numel());
      else s = op::broadcast_shapes("broadcast_tensors", s, in[i].shape, why);
      if (!s.valid()) return Meta{DType::f32, s};
    }
    return countable(grid ? "meshgrid" : "broadcast_tensors", Meta{in[which].dtype, s}, in->shape, why);
  }
  template <class, class... V>
  constexpr auto run(Meta const& y, V const&... x) const {
    std::common_type_t<V...> const all[] = {x...};
    if (!grid) return broadcast_to(all[which], y.shape, "broadcast_tensors");
    Shape const row = with_extent(op::reduced_shape(y.shape, -1), which, y.shape[which]);
    return broadcast_to(reshape_to(all[which], row), y.shape);
  }
};
template <bool Grid, operand... X>
constexpr auto in_common(X const&... x) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple(call(Fixed<Common{static_cast<int>(I), sizeof...(X), Grid}>{}, x...)...);
  }(std::index_sequence_for<X...>{});
}

}  // namespace detail

/// flatten<Start, End>(x), flatten(x, start, end) - these axes as one.
///
/// Shapes    x: [S...] -> [.., product of the axes, ..]
/// Dtypes    any
/// Errors    "flatten: axis 2 lies behind axis 1 of [2, 3, 4]"
/// Source    PyTorch's flatten
template <int Start = 0, int End = -1, operand X>
constexpr auto flatten(X const& x) {
  return detail::call(detail::Fixed<detail::Flatten{Start, End}>{}, x);
}
template <operand X>
constexpr auto flatten(X const& x, int start, int end = -1) {
  return detail::call(detail::Flatten{start, end}, x);
}

/// unflatten<Axis, Sizes...>(x), unflatten(x, axis, sizes) - one axis as several; one size may be -1.
///
/// Shapes    x: [.., N, ..] -> [.., sizes, ..], of product N
/// Dtypes    any
/// Errors    "unflatten: axis 0 of [6, 2] does not make [4, 2]"
/// Source    PyTorch's unflatten
template <int Axis, index_t... Sizes, operand X>
constexpr auto unflatten(X const& x) {
  return detail::call(detail::Fixed<detail::Unflatten{Axis, make_shape(Sizes...)}>{}, x);
}
template <operand X>
constexpr auto unflatten(X const& x, int axis, Extents const& sizes) {
  return detail::call(detail::Unflatten{axis, sizes.shape}, x);
}

/// movedim<From, To>(x), movedim(x, from, to) - axes moved to other positions, the others in their order. No copy.
///
/// Shapes    x: [S...] -> [S permuted]
/// Dtypes    any
/// Errors    "movedim: 1 axes of [2, 3] cannot move to 2 places"
/// Source    PyTorch's movedim
template <int From, int To, operand X>
constexpr auto movedim(X const& x) {
  return detail::call(detail::Fixed<detail::Movedim{From, To}>{}, x);
}
template <operand X>
constexpr auto movedim(X const& x, Axes const& from, Axes const& to) {
  return detail::call(detail::Movedim{from, to}, x);
}

/// select<Axis, Index>(x), select(x, axis, index) - the part at one position, which may count from the end. No copy.
///
/// Shapes    x: [.., N, ..] -> [S... without the axis]
/// Dtypes    any
/// Errors    "select: index 3 out of range for axis 1 of [2, 3]"
/// Source    PyTorch's select
template <int Axis, index_t Index, operand X>
constexpr auto select(X const& x) {
  return detail::call(detail::Fixed<detail::Select{Axis, Index}>{}, x);
}
template <operand X>
constexpr auto select(X const& x, int axis, index_t index) {
  return detail::call(detail::Select{axis, index}, x);
}

/// narrow<Axis, Start, Length>(x), narrow(x, axis, start, length) - so many positions of an axis. No copy.
///
/// Shapes    x: [.., N, ..] -> [.., Length, ..]
/// Dtypes    any
/// Errors    "narrow: 3 elements from 1 on out of range for axis 1 of [2, 3]"
/// Source    PyTorch's narrow
template <int Axis, index_t Start, index_t Length, operand X>
constexpr auto narrow(X const& x) {
  return detail::call(detail::Fixed<detail::Narrow{Axis, Start, Length}>{}, x);
}
template <operand X>
constexpr auto narrow(X const& x, int axis, index_t start, index_t length) {
  return detail::call(detail::Narrow{axis, start, length}, x);
}

/// diagonal<Offset, A, B>(x), diagonal(x, offset, a, b) - the diagonal of two axes, as a new last axis. No copy where
/// matrices lie in one piece, row by row.
///
/// Shapes    x: [.., M, .., N, ..] -> [.., K], K as long as the diagonal
/// Dtypes    any
/// Errors    "diagonal: two axes of [2, 3] required"
/// Source    PyTorch's diagonal
template <index_t Offset = 0, int A = 0, int B = 1, operand X>
constexpr auto diagonal(X const& x) {
  return detail::call(detail::Fixed<detail::Diagonal{Offset, A, B}>{}, x);
}
template <operand X>
constexpr auto diagonal(X const& x, index_t offset, int a = 0, int b = 1) {
  return detail::call(detail::Diagonal{offset, a, b}, x);
}
/// diag_embed<Offset>(x), diag_embed(x, offset) - square matrices with the last axis on a diagonal.
///
/// Shapes    x: [.., N] -> [.., M, M], M = N + |Offset|
/// Dtypes    any
/// Errors    "diag_embed: a last axis of fixed extent required, got []"
/// Source    PyTorch's diag_embed
template <index_t Offset = 0, operand X>
constexpr auto diag_embed(X const& x) {
  return detail::call(detail::Fixed<detail::DiagEmbed{Offset}>{}, x);
}
template <operand X>
constexpr auto diag_embed(X const& x, index_t offset) {
  return detail::call(detail::DiagEmbed{offset}, x);
}
/// trace(x) - the sum of the main diagonal of a matrix.
///
/// Shapes    x: [M, N] -> []
/// Dtypes    all; integers and bool in i64
/// Errors    "trace: axis 1 out of range for [3]"
/// Source    elementary
template <operand X>
constexpr auto trace(X const& x) {
  return sum<-1>(detail::call(detail::named<"trace">(detail::Fixed<detail::Diagonal{0, 0, 1}>{}), x));
}

/// tril(x, k), triu(x, k) - matrices with zeros above, below the k-th diagonal.
///
/// Shapes    x: [B..., M, N] -> [B..., M, N]
/// Dtypes    any
/// Errors    "tril: a matrix required, got [3]"
/// Source    NumPy's tril and triu
template <operand X>
constexpr auto tril(X const& x, index_t k = 0) {
  return detail::call(detail::FixedType<detail::Triangle{0, true}>{{}, {k, true}}, x);
}
template <operand X>
constexpr auto triu(X const& x, index_t k = 0) {
  return detail::call(detail::FixedType<detail::Triangle{0, false}>{{}, {k, false}}, x);
}

/// meshgrid(x, y, ...) - a tuple: each list along an axis of its own, repeated along the others.
///
/// Shapes    x: [M], y: [N], ... -> a tuple of [M, N, ...]
/// Dtypes    any
/// Errors    "meshgrid: at most 8 lists required, got [2, 3]"
/// Source    NumPy's meshgrid with indexing="ij"
template <operand... X>
constexpr auto meshgrid(X const&... x) {
  return detail::in_common<true>(x...);
}
/// broadcast_tensors(x, y, ...) - a tuple of all, in their common shape.
///
/// Shapes    broadcast to [S...] -> a tuple of [S...]
/// Dtypes    any
/// Errors    "broadcast_tensors: shapes do not broadcast: [2, 3] x [4]"
/// Source    PyTorch's broadcast_tensors
template <operand... X>
constexpr auto broadcast_tensors(X const&... x) {
  return detail::in_common<false>(x...);
}

}  // namespace dfdx
