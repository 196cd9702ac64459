// SPDX-License-Identifier: BSL-1.0
// Batches: every row once a pass, rows of the tensors together, the same order for the same key, no allocation.
#include "support.hpp"

#include <dfdx/data/loader.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/create.hpp>
#include <dfdx/vocabulary/shape.hpp>

#include <catch2/catch_test_macros.hpp>

#include <set>

namespace tests::data_loader {

using namespace dfdx;

namespace {

auto const x = reshape<10, 2>(arange<Tensor<float, 20>>());
auto const y = arange<Tensor<std::int32_t, dyn>>(0, 1, {10});

std::vector<int> rows_of_a_pass(auto& loader) {
  std::vector<int> rows;
  for (auto const& [a, b] : loader) {
    static_assert(std::is_same_v<decltype(a), Tensor<float, 4, 2> const>);
    static_assert(std::is_same_v<decltype(b), Tensor<std::int32_t, 4> const>);
    for (int i = 0; i < 4; ++i) {
      CHECK(a(i, 0) == 2.0f * static_cast<float>(b(i)));
      CHECK(a(i, 1) == 2.0f * static_cast<float>(b(i)) + 1);
      rows.push_back(b(i));
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("a pass without a key is in order and drops the rest", "[data]") {
  auto loader = data::loader<4>(x, y);
  CHECK(loader.size() == 2);
  CHECK(rows_of_a_pass(loader) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(rows_of_a_pass(loader) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("a loop starts a pass whatever was left of the last", "[data]") {
  auto loader = data::loader<4>(x, y);
  loader.next();
  CHECK(rows_of_a_pass(loader) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("shuffled passes differ, hold no row twice and repeat with the key", "[data]") {
  auto loader = data::loader<4>(Key{1}, x, y), again = data::loader<4>(Key{1}, x, y),
       other = data::loader<4>(Key{2}, x, y);
  auto const first = rows_of_a_pass(loader), second = rows_of_a_pass(loader);
  CHECK(std::set<int>(first.begin(), first.end()).size() == 8);
  CHECK(first != second);
  CHECK(first != rows_of_a_pass(other));
  std::vector<int> rows;
  for (int i = 0; i < 4; ++i) {
    auto const& [a, b] = again.next();
    for (int k = 0; k < 4; ++k) rows.push_back(b(k));
  }
  CHECK(std::vector<int>(rows.begin(), rows.begin() + 8) == first);
  CHECK(std::vector<int>(rows.begin() + 8, rows.end()) == second);
}

TEST_CASE("batches reuse one memory", "[data]") {
  auto loader = data::loader<4>(Key{1}, x, y);
  auto const* const data = std::get<0>(loader.next()).data();
  for (int i = 0; i < 5; ++i) CHECK(std::get<0>(loader.next()).data() == data);
}

TEST_CASE("a strided tensor is gathered by rows", "[data]") {
  auto const t = transpose(reshape<2, 10>(arange<Tensor<float, 20>>()));
  auto loader = data::loader<10>(t);
  CHECK(array_equal(std::get<0>(loader.next()), t));
}

TEST_CASE("a loader refuses what does not fit", "[data]") {
  CHECK(tests::error_of([] { data::loader<64>(x, y); }) == "loader: 10 rows do not fill a batch of 64");
  CHECK(tests::error_of([] { data::loader<2>(x, zeros<float, 9>()); }) == "loader: 10 and 9 rows");
}

}  // namespace tests::data_loader
