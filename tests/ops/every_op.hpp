// SPDX-License-Identifier: BSL-1.0
// Every elementwise op of the library in a compiled program, in each dtype that its rule takes: ops come here by being
// of LibraryOps. And what else becomes fused loops, in every dtype.
#pragma once

#include "ops/compiled.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace compiled {

// Whether the op's rule takes operands of dtype D, and of truths where it asks for them.
template <class Op, DType D>
constexpr bool takes() {
  Meta in[max_arity];
  for (int i = 0; i < Op::arity; ++i) in[i] = Meta{Op::operand_dtype(i, D), {}};
  return Op::infer(Attrs{}, in, nullptr).valid();
}

// Where the elementwise ops that take D are in a list.
template <DType D, class... Op>
consteval auto places_of_taken(std::type_identity<testing::KnownOps<Op...>>) {
  constexpr auto wanted = [](auto op) {
    using O = typename decltype(op)::type;
    if constexpr (O::elementwise) return takes<O, D>();
    else return false;
  };
  constexpr std::array<bool, sizeof...(Op)> taken{wanted(std::type_identity<Op>{})...};
  std::array<int, std::ranges::count(taken, true)> places{};
  for (int i = 0, n = 0; i < static_cast<int>(taken.size()); ++i)
    if (taken[static_cast<std::size_t>(i)]) places[static_cast<std::size_t>(n++)] = i;
  return places;
}
template <std::size_t I, class... Op>
auto op_at(std::type_identity<testing::KnownOps<Op...>>)
    -> std::tuple_element_t<I, std::tuple<std::type_identity<Op>...>>;

/// EveryOp - the results of a part of all that take D, of y; of x and y; of whether x = y, and both. In parts, for what
/// compilers do for one fused loop grows with the square of what it does.
template <DType D, std::size_t Part>
struct EveryOp {
  using List = std::type_identity<testing::LibraryOps>;
  static constexpr auto places = places_of_taken<D>(List{});
  static constexpr std::size_t at_once = 24, begin = Part * at_once,
                               size = std::min(at_once, places.size() - begin);

  template <class Op>
  static constexpr auto one(auto const& x, auto const& y) {
    if constexpr (Op::arity == 1) return apply<Op>(y);
    else if constexpr (Op::arity == 2) return apply<Op>(x, y);
    else return apply<Op>(x == y, x, y);
  }
  constexpr auto operator()(auto const& x, auto const& y) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple(one<typename decltype(op_at<places[begin + I]>(List{}))::type>(x, y)...);
    }(std::make_index_sequence<size>{});
  }
};
/// EveryOpTurned - the same of operands that lie in memory with steps.
template <DType D, std::size_t Part>
struct EveryOpTurned {
  constexpr auto operator()(auto const& x, auto const& y) const {
    return EveryOp<D, Part>{}(transpose(x), slice<0, 1, 6, 2>(y));
  }
};
/// for_every_part - calls f with the number of each part of EveryOp.
template <DType D>
void for_every_part(auto const& f) {
  constexpr std::size_t parts = (EveryOp<D, 0>::places.size() - 1) / EveryOp<D, 0>::at_once + 1;
  [&]<std::size_t... Part>(std::index_sequence<Part...>) {
    (f(std::integral_constant<std::size_t, Part>{}), ...);
  }(std::make_index_sequence<parts>{});
}

/// rearranged - reductions, products and what lays elements out anew.
constexpr auto rearranged = [](auto const& x, auto const& y) {
  auto const columns = transpose(x);
  return std::tuple(sum<0>(x), sum<1>(x), sum(x), prod<1>(y), max<0>(x), max<1>(x), max(x), min<0>(x),
                    min<1>(x), argmax<1>(x), argmin<0>(x), cumsum<1>(x), cumsum<0>(x), any<1>(x), all<0>(x),
                    matmul(x, columns), matmul(y, x), concat<1>(columns, columns), flip<0>(x), pad<1, 2>(x),
                    slice<1, 2, 21, 3>(x), expand<4, 3, 21>(x), cast<float>(columns), cast<double>(x),
                    cast<float16>(x), cast<bfloat16>(x), cast<std::int32_t>(x), cast<std::int64_t>(x),
                    cast<std::uint8_t>(x), cast<bool>(x));
};

/// wrapping - sums and products of integers that leave their range, fused and by kernels of their own.
constexpr auto wrapping = [](auto const& x, auto const& y, auto const& at) {
  auto const z = x * y - x * 3 + y * y * y;
  return std::tuple(z, -x, square(x), sum<0>(x), sum<1>(z), prod<1>(x), prod(y), sum<1>(x * y), max<1>(z),
                    cumsum<1>(x), cumsum<0>(z), cumprod<1>(x), matmul(x, transpose(x)),
                    matmul(transpose(x), y) + 1, scatter_add<1>(x, at, y),
                    index_add<0>(x, select<1, 0>(at), z), cast<std::uint8_t>(z), cast<std::int32_t>(z));
};

template <class T>
constexpr DType dtype = dtype_of<T>::value;
// Whole numbers among the first, so that operands of equal values meet.
template <class T, std::size_t... N>
auto drawn(std::uint64_t key) {
  constexpr int low = dtype<T> == DType::u8 || dtype<T> == DType::boolean ? 0 : -3;
  constexpr int high = dtype<T> == DType::boolean ? 2 : 4;
  if constexpr (!is_floating(dtype<T>)) return randint<T, N...>(Key{key}, low, high);
  else if constexpr (sizeof...(N) == 0) return uniform<T>(Key{key}, low, high);
  else return cast<T>(floor(uniform<float, N...>(Key{key}, 2 * low, 2 * high)) * 0.5f);
}

/// check_every_op - a vector and a part of one, of operands that broadcast.
template <class T>
void check_every_op() {
  for_every_part<dtype<T>>(
      [](auto part) { check(EveryOp<dtype<T>, part>{}, drawn<T, 3, 1>(1), drawn<T, 1, 21>(2)); });
}
/// check_every_layout - whole values, values with steps, of one element and of none.
template <class T>
void check_every_layout() {
  for_every_part<dtype<T>>([](auto part) {
    constexpr EveryOp<dtype<T>, part> f{};
    check(f, drawn<T, 37>(1), drawn<T, 37>(2));
    check(EveryOpTurned<dtype<T>, part>{}, drawn<T, 5, 3>(3), drawn<T, 7, 5>(4));
    check(f, drawn<T>(5), drawn<T, 1>(6));
    check(f, drawn<T, 2, 0>(7), drawn<T, 1>(8));
  });
}
template <class T>
void check_rearranged() {
  check(rearranged, drawn<T, 3, 21>(1), drawn<T, 2, 3>(2));
}

template <class T>
void check_wrapping() {
  using L = std::numeric_limits<T>;
  auto x = zeros<T, 3, 21>(), y = x;
  for (int i = 0; i < 63; ++i) {
    x.data()[i] = i % 3 == 0 ? L::max() : i % 3 == 1 ? L::min() : static_cast<T>(L::max() / 5 * (i % 5));
    y.data()[i] = static_cast<T>(i % 4 == 0 ? L::max() - i : i % 4 == 1 ? L::min() + i : i);
  }
  check(wrapping, x, y, randint<std::int64_t, 3, 21>(Key{5}, 0, 3));
}

}  // namespace compiled
