// SPDX-License-Identifier: BSL-1.0
// How often numbers occur: bincount of integers, histc of what lies between two bounds.
#pragma once

#include <dfdx/vocabulary/choose.hpp>
#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

// The sums of what is listed beside each number from 0 to n - 1.
struct Counts {
  index_t n;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Meta const &x = in[0], &w = in[1];
    if (n < 0) return refuse(why, "bincount: a number of places required, got ", Position{n});
    if (x.shape.rank != 1 || !op::detail::is_index(x.dtype))
      return refuse(why, "bincount: a list of integers required, got ", x.dtype, " ", x.shape);
    if (w.shape.rank != 1 || !op::extents_agree(x.shape[0], w.shape[0]))
      return refuse(why, "bincount: weights ", w.shape, " do not fit ", x.shape);
    if (w.dtype == DType::boolean) return refuse(why, "bincount: numeric weights required, got bool");
    return Meta{w.dtype, make_shape(n)};
  }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& w) const {
    return bind<op::rows_add>(op::detail::attrs_for(op::Caller::bincount, n), w, x);
  }
};
// Ones of a dtype beside each number.
template <element T, operand X>
constexpr auto one_each(X const& x) {
  return cast<T>(ones_as(x));
}
// As many places as the largest number asks for, and at least so many.
template <class X>
index_t places_for(X const& x, index_t least) {
  Array const& given = with_elements("bincount", x);
  if (least < 0) raise("bincount: a number of places required, got ", Position{least});
  if (given.ndim() != 1 || !op::detail::is_index(given.dtype()))
    raise("bincount: a list of integers required, got ", given.dtype(), " ", given.shape());
  index_t n = least;
  each_in_memory(given, [&](Operand const& o, index_t at) {
    index_t const i = read_index(o, at);
    if (i < 0) raise("bincount: numbers from 0 on required, got ", Position{i});
    if (i >= n) n = i + 1;
  });
  return n;
}

// In which of N parts each element is, N for none, counted; N is a number or Fixed.
template <class P, operand X>
constexpr auto histogram(X const& x, P const& parts, double low, double high) {
  auto const v = in_f32(floating<"histc">(x));
  if constexpr (refused<decltype(v)>) {
    return Refused{};
  } else {
    index_t n = 0;
    if constexpr (is_fixed<P>) n = P::value;
    else n = parts;
    if (n < 1) raise("histc: a positive number of parts required, got ", Position{n});
    if (!(low < high)) raise("histc: low must be below high");
    auto const flat = reshape<-1>(v);
    auto const part =
        minimum(floor((flat - low) * static_cast<double>(n) / (high - low)), static_cast<double>(n - 1));
    auto const at = cast<std::int32_t>(where(flat >= low && flat <= high, part, static_cast<double>(n)));
    if constexpr (is_fixed<P>)
      return rounded_as(slice<0, 0, P::value>(call(Fixed<Counts{P::value + 1}>{}, at, ones_as(flat))), x);
    else return rounded_as(slice(call(Counts{n + 1}, at, ones_as(flat)), 0, 0, n), x);
  }
}

}  // namespace detail

/// bincount<N>(x, weights), bincount(x, weights, at_least) - how often each of the numbers 0 .. N-1 occurs in a list,
/// or the sums of the weights beside each. Without N there are as many places as the largest number asks for, which a
/// program cannot know.
///
/// Math      y[n] = sum_i [x_i = n] w_i
/// Shapes    x, weights: [M] -> y: [N]
/// Dtypes    x: i32 i64 u8; weights, and y: all but bool, i64 without weights
/// Errors    "bincount: index 5 out of range for axis 0 of [3]" (also thrown by compiled programs); "bincount: weights
///           [2] do not fit [3]"
/// Source    PyTorch's bincount
template <index_t N, operand X, operand W>
constexpr auto bincount(X const& x, W const& weights) {
  return detail::call(detail::Fixed<detail::Counts{N}>{}, x, weights);
}
template <index_t N, operand X>
constexpr auto bincount(X const& x) {
  return bincount<N>(x, detail::one_each<std::int64_t>(x));
}
template <class X, class W>
  requires(std::is_base_of_v<Array, X> && std::is_base_of_v<Array, W>)
Array bincount(X const& x, W const& weights, index_t at_least = 0) {
  return detail::call(detail::Counts{detail::places_for(x, at_least)}, detail::untyped(x),
                      detail::untyped(weights));
}
template <class X>
  requires std::is_base_of_v<Array, X>
Array bincount(X const& x, index_t at_least = 0) {
  return bincount(x, detail::one_each<std::int64_t>(detail::untyped(x)), at_least);
}

/// histc<N>(x, low, high), histc(x, n, low, high) - how many elements lie in each of N parts of equal width from low to
/// high, which belongs to the last; those outside, and NaN, are not counted.
///
/// Math      y[n] = number of i with n = min(N - 1, floor(N (x_i - low) / (high - low)))
/// Shapes    x: [S...] -> y: [N]
/// Dtypes    x: floating, and y
/// Errors    "histc: low must be below high"
/// Source    PyTorch's histc
template <index_t N, operand X>
constexpr auto histc(X const& x, double low, double high) {
  return detail::histogram(x, detail::Fixed<N>{}, low, high);
}
template <operand X>
constexpr auto histc(X const& x, index_t n, double low, double high) {
  return detail::histogram(x, n, low, high);
}

}  // namespace dfdx
