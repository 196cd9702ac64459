// SPDX-License-Identifier: BSL-1.0
// Parts of Arrays by integers, ranges and arrays, against what NumPy's rules say; iteration and methods.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace tests::vocabulary_indexing {

namespace {

using namespace dfdx;
using tests::error_of;

std::vector<double> numbers(Array const& a) {
  Array const dense = a.detach().contiguous();
  std::vector<double> r;
  for (index_t i = 0; i < dense.size(); ++i) r.push_back(read_real(dense.operand(), i));
  return r;
}
using List = std::vector<double>;

Array grid() { return arange(12).reshape({3, 4}); }

TEST_CASE("integers, ranges, new axes") {
  Array const a = grid();
  CHECK(a(1, 2).item() == 6);
  CHECK(a(-1, -4).item() == 8);
  CHECK(numbers(a(1)) == List{4, 5, 6, 7});
  CHECK(numbers(a(all(), 1)) == List{1, 5, 9});
  CHECK(numbers(a(ellipsis, -1)) == List{3, 7, 11});
  CHECK(numbers(a(range(1), range(0, 2))) == List{4, 5, 8, 9});
  CHECK(numbers(a(0, range(1, 4, 2))) == List{1, 3});
  CHECK(numbers(a(0, range(-3, -1))) == List{1, 2});
  CHECK(numbers(a(0, range(Range::open, Range::open, -1))) == List{3, 2, 1, 0});
  CHECK(numbers(a(0, range(-9, 2))) == List{0, 1});
  CHECK(a(0, range(-9, -6)).shape() == make_shape(0));
  CHECK(numbers(a(0, range(-2, -9, -1))) == List{2, 1, 0});
  CHECK(a(0, range(1, 3, -1)).shape() == make_shape(0));
  CHECK(a(0, range(-9, Range::open, -1)).shape() == make_shape(0));
  CHECK(numbers(a(0, range(9, 1, -1))) == List{3, 2});
  CHECK(numbers(a(0, range(2, 0, -1))) == List{2, 1});
  CHECK(numbers(a(0, range(-1, -10, -2))) == List{3, 1});
  CHECK(a(0, range(3, 1)).shape() == make_shape(0));
  CHECK(a(0, range(9)).shape() == make_shape(0));
  CHECK(a(newaxis, ellipsis, newaxis).shape() == make_shape(1, 3, 4, 1));
  CHECK(a(all(), newaxis, range(2)).shape() == make_shape(3, 1, 2));
  CHECK(a().shape() == a.shape());
  CHECK(a(1).bytes() == a.bytes() + 4 * sizeof(std::int64_t));  // a view
}

TEST_CASE("arrays of integers and of truths") {
  Array const a = grid();
  CHECK(numbers(a(from({2, 0}))) == List{8, 9, 10, 11, 0, 1, 2, 3});
  CHECK(numbers(a(from({-1}))) == List{8, 9, 10, 11});
  Array const columns = a(all(), from({3, 0, 0}, {3, 1}));
  CHECK(columns.shape() == make_shape(3, 3, 1));
  CHECK(numbers(columns) == List{3, 0, 0, 7, 4, 4, 11, 8, 8});
  CHECK(numbers(a(1, from({1, -1}))) == List{5, 7});
  CHECK(numbers(a(a > 8)) == List{9, 10, 11});
  CHECK(numbers(a(a(all(), 0) > 3, 1)) == List{5, 9});
  CHECK(a(all(), a(0) > 1).shape() == make_shape(3, 2));
  CHECK(numbers(a(all(), a(0) > 1)) == List{2, 3, 6, 7, 10, 11});
}

TEST_CASE("indices in 32 bits into an axis that is longer") {
  Array const one = full({1}, 7.0), large = expand(one, {3'000'000'000});
  CHECK(numbers(large(from<std::int32_t>({0, -1}))) == List{7, 7});
}

TEST_CASE("several arrays choose together") {
  Array const a = grid(), cube = arange(24).reshape({2, 3, 4});
  CHECK(numbers(a(from({0, 2, -1}), from({1, -1, 0}))) == List{1, 11, 8});
  Array const table = a(from({2, 0}, {2, 1}), from({3, 1, 1}));
  CHECK(table.shape() == make_shape(2, 3));
  CHECK(numbers(table) == List{11, 9, 9, 3, 1, 1});
  CHECK(numbers(a(from({1, 0}).to(DType::u8), from({2, 3}).to(DType::i32))) == List{6, 3});
  // Neighbours stay where they were, others come first.
  Array const within = cube(all(), from({0, 2, 1}), from({3, 0, 0}));
  CHECK(within.shape() == make_shape(2, 3));
  CHECK(numbers(within) == List{3, 8, 4, 15, 20, 16});
  Array const apart = cube(from({1, 0, 1, 1}), all(), from({0, 3, 1, 2}));
  CHECK(apart.shape() == make_shape(4, 3));
  CHECK(numbers(apart) == List{12, 16, 20, 3, 7, 11, 13, 17, 21, 14, 18, 22});
  CHECK(cube(from({0, 1}), newaxis, from({0, 1})).shape() == make_shape(2, 1, 4));
  CHECK(numbers(cube(1, from({0, 2}), from({1, 1}))) == List{13, 21});
  CHECK(numbers(cube(from({0, 1}), range(1), 2)) == List{6, 10, 18, 22});
  Array const four = arange(16).reshape({2, 2, 2, 2});
  CHECK(numbers(four(from({0, 1}), all(), from({1, 0}), from({1, 1}))) == List{3, 7, 9, 13});
  CHECK(four(all(), from({0}, {1, 1}), from({1, 0, 1}), from({1})).shape() == make_shape(2, 1, 3));
  // Truths among them count as the places where they hold.
  CHECK(numbers(a(a(all(), 0) > 3, from({3, 0}))) == List{7, 8});
  CHECK(numbers(cube(from({1}), cube(0) > 9)) == List{22, 23});
  CHECK(a(zeros({0}, DType::i64), from({1})).shape() == make_shape(0));
  Array x = cube.to(DType::f64);
  x.requires_grad(true);
  Array const weights = from<double>({1, 10, 100});
  sum(x(from({0, 1, 0}), all(), from({3, 2, 3})) * weights(all(), newaxis)).backward();
  List want(24);
  for (std::size_t r = 0; r < 3; ++r) want[r * 4 + 3] = 101, want[12 + r * 4 + 2] = 10;
  CHECK(numbers(x.grad()) == want);
}

TEST_CASE("several arrays in a graph") {
  Array const x = arange(24).reshape({2, 3, 4}), i = from<std::int64_t>({1, 0, -1}),
              j = from<std::int64_t>({3, -2, 0});
  std::vector<Meta> const metas = {x.meta(), i.meta(), j.meta()};
  Graph const g = testing::record(
      [](std::span<Array const> v) { return std::vector<Array>{v[0](v[1], all(), v[2])}; }, metas);
  CHECK(array_equal(testing::interpret(g, std::vector<Array>{x, i, j})[0], x(i, all(), j)));
  for (std::int64_t beyond : {4, -5, 1 << 30})
    CHECK_THROWS_AS(
        testing::interpret(g, std::vector<Array>{x, i, full({3}, static_cast<double>(beyond), DType::i64)}),
        error);
}

TEST_CASE("places are assigned to") {
  Array a = grid();
  index_put_(a, -1, a > 8);
  CHECK(numbers(a) == List{0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1});
  index_put_(a, from({50, 60}), from({0, 1}), from({1, -1}));
  CHECK(numbers(a) == List{0, 50, 2, 3, 4, 5, 6, 60, 8, -1, -1, -1});
  index_put_(a, from({7, 8}), all(), from({0, 2}));
  CHECK(numbers(a) == List{7, 50, 8, 3, 7, 5, 8, 60, 7, -1, 8, -1});
  index_put_(a, 0, 1, range(1, 3));
  CHECK(numbers(a) == List{7, 50, 8, 3, 7, 0, 0, 60, 7, -1, 8, -1});
  Array b = grid().to(DType::f32), view = b(all(), range(0, 4, 2));
  index_put_(view, from({0.5, 1.5, 2.5, 3.5}), view > 2);  // seen through the view
  CHECK(numbers(b) == List{0, 1, 2, 3, 0.5, 5, 1.5, 7, 2.5, 9, 3.5, 11});
  CHECK(error_of([&] { index_put_(a, from({1, 2, 3}), from({0, 1}), 0); }) ==
        "index_put_: a value of shape [3] does not fit places of shape [2]");
  Array truths = a > 7;
  index_put_(truths, true, 0, 0);
  CHECK(numbers(truths) == List{1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0});
  masked_fill_(a, a < 5, 9);
  CHECK(numbers(a) == List{7, 50, 8, 9, 7, 9, 9, 60, 7, 9, 8, 9});
  // On the tape what was there has no gradient, what came has.
  Array x = grid().to(DType::f64), v = from<double>({1, 2, 3});
  x.requires_grad(true), v.requires_grad(true);
  Array y = x * 1.0;
  index_put_(y, v, y > 8);
  masked_fill_(y, y == 0, 5);
  sum(y * y).backward();
  CHECK(numbers(x.grad()) == List{0, 2, 4, 6, 8, 10, 12, 14, 16, 0, 0, 0});
  CHECK(numbers(v.grad()) == List{2, 4, 6});
}

TEST_CASE("gradients go to the places that were read") {
  Array x = grid().to(DType::f64);
  x.requires_grad(true);
  (sum(x(all(), from({1, 1, -1}))) + sum(x(x > 9.5)) * 10.0 + x(0, range(2, 0, -1)).sum() * 100.0).backward();
  CHECK(numbers(x.grad()) == List{0, 102, 100, 1, 0, 2, 0, 1, 0, 2, 10, 11});
}

TEST_CASE("what does not fit is refused") {
  Array const a = grid();
  CHECK(error_of([&] { a(0, 4); }) == "at: index 4 out of range for axis 1 of [3, 4]");
  CHECK(error_of([&] { a(-4); }) == "at: index -4 out of range for axis 0 of [3, 4]");
  CHECK(error_of([&] { a(0, 0, 0); }) == "at: 3 indices for shape [3, 4]");
  Array const cube = arange(24).reshape({2, 3, 4});
  CHECK(error_of([&] { cube(cube(all(), all(), 0) > 3, 9); }) ==
        "at: index 9 out of range for axis 2 of [2, 3, 4]");
  CHECK(error_of([&] { a(range(0, 2, 0)); }) == "at: a range with step 0");
  CHECK(error_of([&] { a(from({1, -7})); }) == "at: index -7 out of range for axis 0 of [3, 4]");
  CHECK(error_of([&] { a(all(), from({4})); }) == "at: index 4 out of range for axis 1 of [3, 4]");
  CHECK(error_of([&] { a(from({3})); }) == "at: index 3 out of range for axis 0 of [3, 4]");
  CHECK(error_of([&] { a(from({0.5})); }) == "at: indices of i32, i64, u8 or bool required, got f64");
  CHECK(error_of([&] { a(from({true, false})); }) == "at: truths of shape [2] do not fit axis 0 of [3, 4]");
  CHECK(error_of([&] { a(from({0, 3}), from({0, 1})); }) == "at: index 3 out of range for axis 0 of [3, 4]");
  CHECK(error_of([&] { a(from({0, 1}), from({0, -5})); }) ==
        "at: index -5 out of range for axis 1 of [3, 4]");
  CHECK(error_of([&] { a(from({0, 1}), from({0, 1, 2})); }) == "at: shapes do not broadcast: [2] x [3]");
}

TEST_CASE("iteration, length and methods") {
  Array const a = grid();
  CHECK(a.len() == 3);
  double total = 0;
  for (Array const& row : a) total += row(1).item();
  CHECK(total == 1 + 5 + 9);
  CHECK(error_of([&] { full({}, 1).len(); }) == "len: a scalar has no axes");
  CHECK(a.T().shape() == make_shape(4, 3));
  CHECK(a.sum().item() == 66);
  CHECK(numbers(a.sum(0)) == List{12, 15, 18, 21});
  CHECK(a.max(1, true).shape() == make_shape(3, 1));
  CHECK(a.argmax().item() == 11);
  CHECK(a.to(DType::f32).mean().item() == 5.5);
  CHECK(a.flatten().shape() == make_shape(12));
  CHECK(a.unsqueeze(0).squeeze(0).shape() == a.shape());
  CHECK(a.T().contiguous().contiguous_memory());
  CHECK(a.clone().bytes() != a.bytes());
  CHECK(numbers(a.to(DType::f64).pow(2)(0)) == List{0, 1, 4, 9});
  CHECK(a.matmul(a.T()).shape() == make_shape(3, 3));
}

}  // namespace

}  // namespace tests::vocabulary_indexing
