// SPDX-License-Identifier: BSL-1.0
// Splits: every row once, rows of the tensors together, the same for the same key.
#include "support.hpp"

#include <dfdx/data/split.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/shape.hpp>

#include <catch2/catch_test_macros.hpp>

#include <set>

namespace tests::data_split {

using namespace dfdx;

TEST_CASE("a split has every row once and keeps rows together", "[data]") {
  auto const x = transpose(reshape<2, 10>(arange<Tensor<float, 20>>()));  // strided: rows (i, 10 + i)
  auto const y = arange<Tensor<std::int32_t, dyn>>(0, 1, {10});
  auto const [train, test] = data::train_test_split(Key{1}, 0.25, x, y);
  auto const& [x1, y1] = train;
  auto const& [x2, y2] = test;
  static_assert(std::is_same_v<decltype(x1), Tensor<float, dyn, 2> const>);
  CHECK(y1.size() == 7);
  CHECK(y2.size() == 3);
  std::set<int> seen;
  auto const look = [&](auto const& rows, auto const& labels) {
    for (index_t i = 0; i < labels.size(); ++i) {
      seen.insert(labels(i));
      CHECK(rows(i, 0) == static_cast<float>(labels(i)));
      CHECK(rows(i, 1) == static_cast<float>(10 + labels(i)));
    }
  };
  look(x1, y1), look(x2, y2);
  CHECK(seen.size() == 10);
  CHECK(array_equal(std::get<0>(data::train_test_split(Key{1}, 0.25, y).second), y2));
  CHECK_FALSE(array_equal(std::get<0>(data::train_test_split(Key{2}, 0.25, y).second), y2));
}

TEST_CASE("splits that are refused", "[data]") {
  auto const x = zeros<float, 3, 2>();
  using tests::error_of;
  for (double part : {0.0, 1.0, -1.0, std::nan("")})
    CHECK(error_of([&] { data::train_test_split(Key{1}, part, x); }) ==
          "train_test_split: a part between 0 and 1 required");
  CHECK(error_of([&] { data::train_test_split(Key{1}, 0.1, x); }) ==
        "train_test_split: of 3 rows none is left");
  CHECK(error_of([&] { data::train_test_split(Key{1}, 0.9, x); }) ==
        "train_test_split: of 3 rows none is left");
  CHECK(error_of([&] { data::train_test_split(Key{1}, 0.5, x, zeros<float, 4>()); }) ==
        "train_test_split: 3 and 4 rows");
  CHECK(error_of([&] { data::rows_of(x, {0, 3}); }) == "rows_of: row 3 of 3");
  CHECK(error_of([&] { data::rows_of(x, {-1}); }) == "rows_of: row -1 of 3");
  CHECK(data::rows_of(x, {}).shape() == make_shape(0, 2));
}

TEST_CASE("a permutation has every number once, in all orders alike", "[data]") {
  std::set<std::vector<index_t>> orders;
  for (std::uint64_t k = 0; k < 200; ++k) {
    auto p = data::permutation(Key{k}, 4);
    orders.insert(p);
    std::sort(p.begin(), p.end());
    CHECK(p == std::vector<index_t>{0, 1, 2, 3});
  }
  CHECK(orders.size() == 24);
}

}  // namespace tests::data_split
