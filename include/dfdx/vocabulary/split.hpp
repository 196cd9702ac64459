// SPDX-License-Identifier: BSL-1.0
// Values cut into parts: split, chunk and unbind into several; pixel_shuffle, which makes pixels of channels.
#pragma once

#include <dfdx/vocabulary/unfold.hpp>

namespace dfdx {

namespace detail {

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
