// SPDX-License-Identifier: BSL-1.0
// Ops with kernels of their own in compiled programs, for every dtype that they take: those that order, those that look
// up, those of windows.
#pragma once

#include "ops/every_op.hpp"

#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/embedding.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/quantile.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace compiled {

/// ordered - positions and what stands there, along both axes, of values with steps too.
constexpr auto ordered = [](auto const& x, auto const& list) {
  auto const columns = transpose(x);
  auto const [largest, at] = cummax<1>(x);
  auto const [least, where_least] = cummin<0>(columns);
  auto const [values, order] = sort<0, true>(columns);
  return std::tuple(largest, at, least, where_least, values, order, argsort<1>(x), std::get<0>(topk<1>(x)),
                    searchsorted(list, columns), searchsorted(list, x, true), median<1>(x),
                    argmax<0>(columns), argmin<1>(x));
};

/// looked_up - elements and rows by an index, taken, put in and added to; and what lays elements out anew.
constexpr auto looked_up = [](auto const& x, auto const& src, auto const& at, auto const& rows,
                              auto const& columns) {
  auto const turned = transpose(src);
  auto const moved =
      std::tuple(take(x, rows), gather<1>(x, at), scatter<0>(x, at, src),
                 index_copy<1>(x, rows, index_select<1>(src, rows)), embedding(at, turned),
                 concat<0>(transpose(x), turned), flip<0>(turned), pad<1, 0, 2, 1>(turned, 1), roll<2, 1>(x));
  if constexpr (std::remove_cvref_t<decltype(x)>::static_meta.dtype == DType::boolean) return moved;
  else return std::tuple_cat(moved, std::tuple(scatter_add<0>(x, at, src), index_add<1>(x, columns, src, 3)));
};

constexpr std::size_t results_moved = 9;  // of looked_up: those that add may wrap

/// windowed - convolutions, pools, nearest neighbours and patches.
constexpr auto windowed = [](auto const& x, auto const& w) {
  constexpr Patches patches{{2, 3}, 1, {1, 0}, {2, 1}};
  auto const y = conv2d<ConvOptions{.stride = {2, 1}, .padding = 1}>(x, w);
  auto const columns = unfold<patches>(x);
  return std::tuple(y, conv2d<ConvOptions{.dilation = 2, .groups = 2}>(x, slice<1, 0, 1>(w)),
                    conv_transpose2d<ConvTransposeOptions{.stride = 2}>(y, w),
                    conv1d(select<2, 0>(x), select<2, 1>(w)),
                    max_pool2d<MaxPoolOptions{.kernel = 2, .ceil_mode = true}>(x),
                    max_pool1d<MaxPoolOptions{3, 1, 1}>(select<2, 0>(x)),
                    interpolate<InterpolateOptions{.size = {4, 9}}>(x), columns,
                    fold<7, 5, patches>(columns * columns), pad<PadMode::reflect, 2, 1>(x));
};
constexpr auto pooled_at = [](auto const& x) {
  return std::tuple(std::get<1>(max_pool2d_with_indices<MaxPoolOptions{2}>(x)),
                    std::get<1>(adaptive_max_pool2d_with_indices<3, 2>(x)));
};

// Integers from their whole range, of which sums and products wrap.
template <class T, std::size_t... N>
auto drawn_widely(std::uint64_t key) {
  if constexpr (is_floating(dtype<T>) || dtype<T> == DType::boolean) {
    return drawn<T, N...>(key);
  } else {
    using L = std::numeric_limits<std::conditional_t<sizeof(T) == 8, std::int32_t, T>>;
    auto const part = [](std::uint64_t k) { return randint<T, N...>(Key{k}, L::min(), L::max()); };
    return part(key) * part(key + 100);
  }
}

/// check_closely - check, and 16 bits to two units in their last place: both are to round once.
template <class F, class... A>
void check_closely(F const& f, A const&... args) {
  check(f, args...);
  auto const result = compile(f)(args...);
  std::vector<Array> const got = leaves(result), want = leaves(f(args...));
  for (std::size_t i = 0; i < got.size(); ++i) {
    DType const d = want[i].dtype();
    INFO("result " << i << ", " << name_of(d));
    if (size_of(d) == 2)
      CHECK(testing::error_ratio(got[i], want[i], d == DType::f16 ? 0x1p-9 : 0x1p-6, 0x1p-23) <= 1);
  }
}

// What moves elements and compares them gives for narrow numbers what it gives for the same ones in double.
inline void require_as_of_doubles(std::vector<Array> const& got, std::vector<Array> const& want,
                                  std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    INFO("result " << i << ", " << name_of(got[i].dtype()) << ", against doubles");
    CHECK(array_equal(got[i], want[i]));
  }
}

/// check_ordered, check_looked_up, check_windowed - for T, of an index of I and shapes [M, N], M <= N.
template <class T, std::size_t M, std::size_t N>
void check_ordered() {
  auto const x = drawn_widely<T, M, N>(1);
  auto const list = std::get<0>(sort<0>(drawn_widely<T, 5>(2)));
  check_closely(ordered, x, list);
  if constexpr (sizeof(T) < sizeof(double)) {
    auto const wide = leaves(ordered(cast<double>(x), cast<double>(list)));
    require_as_of_doubles(leaves(ordered(x, list)), wide, wide.size());
  }
}
template <class T, class I, std::size_t M, std::size_t N>
void check_looked_up() {
  constexpr int end = M == 0 ? 1 : static_cast<int>(M);
  auto const x = drawn_widely<T, M, N>(1), src = drawn_widely<T, M, N>(2);
  auto const at = randint<I, M, N>(Key{3}, 0, end);
  auto const rows = permutation<I, M>(Key{4});
  auto const columns = randint<I, N>(Key{5}, 0, end);
  check_closely(looked_up, x, src, at, rows, columns);
  if constexpr (sizeof(T) < sizeof(double))
    require_as_of_doubles(leaves(looked_up(x, src, at, rows, columns)),
                          leaves(looked_up(cast<double>(x), cast<double>(src), at, rows, columns)),
                          results_moved);
}
template <class T, std::size_t Batch>
void check_windowed() {
  auto const x = drawn_widely<T, Batch, 2, 7, 5>(1);
  check_closely(windowed, x, drawn_widely<T, 4, 2, 3, 3>(2));
  check_closely(pooled_at, x);
}

}  // namespace compiled
