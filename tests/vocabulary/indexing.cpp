// SPDX-License-Identifier: BSL-1.0
// Parts of Arrays by integers, ranges and arrays, against what NumPy's rules say; iteration and methods.
#include "support.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

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
  CHECK(error_of([&] { a(range(0, 2, 0)); }) == "at: a range with step 0");
  CHECK(error_of([&] { a(from({3})); }) == "take: index 3 out of range for axis 0 of [3, 4]");
  CHECK(error_of([&] { a(from({0.5})); }) == "at: indices of i32, i64, u8 or bool required, got f64");
  CHECK(error_of([&] { a(from({true, false})); }) == "at: truths of shape [2] do not fit axis 0 of [3, 4]");
  CHECK(error_of([&] { a(from({0}), from({0})); }) ==
        "at: one array of indices or truths at a time, for [3, 4]");
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
