// SPDX-License-Identifier: BSL-1.0
// Splitting a data set into rows to train on and rows to test on.
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include <dfdx/core/random.hpp>
#include <dfdx/value/tensor.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::data {

namespace detail {

// Rows of any number.
template <class X>
struct RowsOf;
template <class T, std::size_t N, std::size_t... Rest>
struct RowsOf<Tensor<T, N, Rest...>> : std::type_identity<Tensor<T, dyn, Rest...>> {};

}  // namespace detail

/// permutation - the numbers below n in an order that the key settles.
template <int = 0>
std::vector<index_t> permutation(Key key, index_t n) {
  std::vector<index_t> r(static_cast<std::size_t>(n));
  std::iota(r.begin(), r.end(), index_t{0});
  for (index_t i = n - 1; i > 0; --i)
    std::swap(r[static_cast<std::size_t>(i)],
              r[static_cast<std::size_t>(integer_at(key, static_cast<std::uint64_t>(i), i + 1))]);
  return r;
}

/// rows_of(x, rows) - these rows of x, copied: x: [N, S...] -> [rows, S...].
///
/// Errors    "rows_of: row 10 of 10"
template <typed X>
auto rows_of(X const& x, std::vector<index_t> const& rows) {
  using R = typename detail::RowsOf<typename dfdx::detail::tensor_base<X>::type>::type;
  Shape shape = x.shape();
  shape[0] = static_cast<index_t>(rows.size());
  R r = R::uninitialized(shape);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= x.shape()[0])
      raise("rows_of: row ", Position{rows[i]}, " of ", x.shape()[0]);
    copy_elements(x.part(rows[i]).operand(), r.part(static_cast<index_t>(i)).operand());
  }
  return r;
}

/// train_test_split(key, part, x, y...) - the rows of some tensors, the same of each, as two tuples: those to train on,
/// and `part` of them, chosen by the key, to test on.
///
///     auto const [train, test] = data::train_test_split(Key{1}, 0.2, images, labels);
///     auto const& [images, labels] = train;
///
/// Errors    "train_test_split: a part between 0 and 1 required"; "train_test_split: 100 and 99 rows";
///           "train_test_split: of 3 rows none is left"
template <typed... X>
auto train_test_split(Key key, double part, X const&... data) {
  static_assert(sizeof...(X) > 0);
  if (!(part > 0 && part < 1)) raise("train_test_split: a part between 0 and 1 required");
  index_t const n = std::get<0>(std::tie(data...)).shape()[0];
  ((n == data.shape()[0] ? void() : raise("train_test_split: ", n, " and ", data.shape()[0], " rows")), ...);
  auto const test = static_cast<index_t>(std::llround(part * static_cast<double>(n)));
  if (test == 0 || test == n) raise("train_test_split: of ", n, " rows none is left");
  std::vector<index_t> const order = permutation<0>(key, n);
  auto const end = order.end() - test;
  std::vector<index_t> const first(order.begin(), end), second(end, order.end());
  return std::pair(std::tuple(rows_of(data, first)...), std::tuple(rows_of(data, second)...));
}

}  // namespace dfdx::data
