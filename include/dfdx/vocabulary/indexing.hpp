// SPDX-License-Identifier: BSL-1.0
// a(i, range(1, 4), all(), newaxis, index): parts of an Array as NumPy and PyTorch name them. Views wherever those are
// views; all of it is recorded on the tape.
#pragma once

#include <dfdx/vocabulary/choose.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx {

/// Range - a slice of an axis: begin:end:step as in Python, where an end left out is the axis' own. Steps may be
/// negative.
struct Range {
  static constexpr index_t open = std::numeric_limits<index_t>::max();
  index_t begin = open, end = open, step = 1;
};
/// range() is a whole axis, range(b) from b on, range(b, e), range(b, e, step); ends count from the end if negative.
///
/// Shapes    stands for an axis
/// Dtypes    none
/// Source    Python's slices
constexpr Range range() { return {}; }
constexpr Range range(index_t begin, index_t end = Range::open, index_t step = 1) {
  return {begin, end, step};
}

/// all() - a whole axis. (With an operand, `all` asks whether every element is not 0.)
///
/// Shapes    stands for an axis
/// Dtypes    none
/// Source    Python's :
constexpr Range all() { return {}; }

/// newaxis - an axis of extent 1; ellipsis - as many whole axes as are left over.
struct NewAxis {};
inline constexpr NewAxis newaxis{};
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};

namespace detail {

template <class I>
inline constexpr bool is_index_array = std::is_base_of_v<Array, I>;
template <class I>
inline constexpr bool is_index_item =
    std::is_integral_v<I> || std::is_same_v<I, Range> || std::is_same_v<I, NewAxis> ||
    std::is_same_v<I, Ellipsis> || is_index_array<I>;

// How many axes of the indexed value an item stands for.
template <class I>
int axes_of_item(I const& item) {
  if constexpr (std::is_same_v<I, NewAxis> || std::is_same_v<I, Ellipsis>) return 0;
  else if constexpr (is_index_array<I>) return item.dtype() == DType::boolean ? item.ndim() : 1;
  else return 1;
}

// Goes through the items from left to right; `axis` is the axis of `value` that the next one is for.
template <std::size_t Items>
class Indexing {
 public:
  Indexing(Array const& x, int named) : value(x), left_over_(x.ndim() - named), whole_(x.shape()) {}

  template <class I>
  void take(I const& item) {
    if constexpr (std::is_same_v<I, NewAxis>) {
      value = unsqueeze(lazy<Items>(value), axis_++);
    } else if constexpr (std::is_same_v<I, Ellipsis>) {
      axis_ += left_over_;
    } else if constexpr (std::is_same_v<I, Range>) {
      take_range(item);
    } else if constexpr (is_index_array<I>) {
      take_array(static_cast<Array const&>(item));
    } else {
      take_position(static_cast<index_t>(item));
    }
    if constexpr (!std::is_same_v<I, NewAxis> && !std::is_same_v<I, Ellipsis>) named_ += axes_of_item(item);
  }

  /// The part of the value. Axes with arrays go to the front and become one, of which a list of places is taken; if
  /// they are neighbours, the places stand where they were.
  Array result() const {
    if (arrays_ == 0) return value;
    Axes axes, front, places, home;
    Array list;
    Shape from = value.shape(), shape;
    index_t extents = 1;
    bool neighbours = true;
    for (int k = 0; k < arrays_; ++k) {
      Chosen const& c = chosen_[k];
      neighbours = neighbours && (k == 0 || c.first == chosen_[k - 1].first + chosen_[k - 1].axes);
      index_t extent = 1;
      for (int i = 0; i < c.axes; ++i) {
        extent = extent::mul(extent, from[c.first + i]);
        front.push(axes.n);
        axes.push(c.first + i);
      }
      Array const n = numbers(lazy<Items>(c.index), c.named, extent);
      Text why;
      shape = k == 0 ? n.shape() : op::broadcast_shapes("at", shape, n.shape(), &why);
      if (!shape.valid()) raise(why);
      list = k == 0 ? n : Array(lazy<Items>(list) * extent + n);
      extents = extent::mul(extents, extent);
    }
    Array const moved =
        axes.v[0] == 0 && neighbours ? value : Array(movedim(lazy<Items>(value), axes, front));
    Shape rows = make_shape(extents);
    for (int i = axes.n; i < moved.ndim(); ++i) rows.push_back(moved.shape()[i]);
    Array const y =
        take_for<Caller::at>(axes.n == 1 ? lazy<Items>(moved) : reshape_to(lazy<Items>(moved), rows), list);
    if (!neighbours || chosen_[0].first == 0 || list.ndim() == 0) return y;
    for (int i = 0; i < list.ndim(); ++i) places.push(i), home.push(chosen_[0].first + i);
    return movedim(lazy<Items>(y), places, home);
  }

 private:
  template <class I>
  void take_position(I item) {
    index_t const n = value.shape()[axis_], i = item < 0 ? item + n : item;
    if (i < 0 || i >= n)
      raise("at: index ", Position{item}, " out of range for axis ", named_, " of ", whole_);
    value = axis_ == 0 ? at_position(lazy<Items>(value), i) : select(lazy<Items>(value), axis_, i);
  }
  template <class R>
  void take_range(R const& r) {
    index_t const n = value.shape()[axis_];
    if (r.step == 0) raise("at: a range with step 0");
    auto const bound = [n](index_t i, index_t if_open, index_t low, index_t high) {
      if (i == Range::open) return if_open;
      i = i < 0 ? i + n : i;
      return i < low ? low : i > high ? high : i;
    };
    if (r.step > 0) {
      index_t const b = bound(r.begin, 0, 0, n), e = bound(r.end, n, 0, n);
      if (b != 0 || e != n || r.step != 1) value = slice(lazy<Items>(value), axis_, b, e, r.step);
    } else {
      // The same places counted from the other end.
      index_t const b = bound(r.begin, n - 1, -1, n - 1), e = bound(r.end, -1, -1, n - 1);
      value = slice(flip(lazy<Items>(value), axis_), axis_, n - 1 - b, n - 1 - e,
                    r.step < -Range::open ? Range::open : -r.step);
    }
    ++axis_;
  }
  // Arrays wait for all items, since they choose places together.
  void take_array(Array const& index) {
    int const first = axis_, rank = index.ndim();
    bool const truths = index.dtype() == DType::boolean;
    if (truths) {
      bool fits = first + rank <= value.ndim();
      for (int i = 0; fits && i < rank; ++i) fits = index.shape()[i] == value.shape()[first + i];
      if (!fits) raise("at: truths of shape ", index.shape(), " do not fit axis ", named_, " of ", whole_);
    } else if (!op::detail::is_index(index.dtype())) {
      raise("at: indices of i32, i64, u8 or bool required, got ", index.dtype());
    }
    int const axes = truths ? rank : 1;
    chosen_[arrays_++] = {index, first, axes, named_};
    axis_ += axes;
  }

  // The numbers of the places on the axes of an array, counted from their fronts, as one number each.
  template <class A>
  A numbers(A const& index, int named, index_t extent) const {
    if (index.dtype() == DType::boolean) return beside(index, flat_nonzero(with_elements("at", index)));
    bool const alone = arrays_ == 1, negative = index.dtype() != DType::u8;
    bool const fits = alone && extent <= std::numeric_limits<std::int32_t>::max();
    A const wide = fits ? index : A(cast_to(index, DType::i64));
    if (!lies_elsewhere(wide))  // where they are looked at by what reads them
      each_in_memory(wide, [&](Operand const& o, index_t at) {
        index_t const n = read_index(o, at);
        if (n < -extent || n >= extent)
          raise("at: index ", Position{n}, " out of range for axis ", named, " of ", whole_);
      });
    A const i = negative ? A(where(wide < 0, wide + static_cast<std::int64_t>(extent), wide)) : wide;
    if (alone || !(i.recorded() || lies_elsewhere(i))) return i;  // `take` looks whether they are there
    return where(logical_and(i >= 0, i < extent), i, -(std::int64_t{1} << 31));
  }

  struct Chosen {
    Array index{};
    int first = 0, axes = 0, named = 0;
  };

  Array value;
  int axis_ = 0, named_ = 0, left_over_, arrays_ = 0;
  Shape whole_;
  Chosen chosen_[Items == 0 ? 1 : Items];
};

}  // namespace detail

/// a(items...) - integers (from the end if negative), ranges, all(), newaxis, ellipsis, and arrays: of integers, or of
/// truths, which choose places of as many axes as they have. The shape of an array takes the place of its axes; several
/// broadcast and choose together, a(rows, columns), and if they are not neighbours what they choose comes first.
///
/// Shapes    x: [S...] -> [R...], as the items say
/// Dtypes    x: any; arrays of indices: i32 i64 u8 bool
/// Errors    "at: index 3 out of range for axis 1 of [2, 3]"; "at: 3 indices for shape [2, 3]"
/// Source    NumPy's indexing
template <class... I>
Array Array::operator()(I const&... items) const {
  static_assert((detail::is_index_item<I> && ...),
                "at: integers, range(), all(), newaxis, ellipsis or an Array required");
  int const named = (0 + ... + detail::axes_of_item(items));
  if (named > ndim()) raise("at: ", named, " indices for shape ", shape());
  detail::Indexing<sizeof...(I)> r(*this, named);
  (r.take(items), ...);
  return r.result();
}

}  // namespace dfdx
