// SPDX-License-Identifier: BSL-1.0
// How often numbers occur, against counting them one by one; remainders by %.
#include "support.hpp"

#include <dfdx/program/transforms.hpp>
#include <dfdx/tape/backward.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/counts.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/methods.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <vector>

namespace tests::vocabulary_counts {

using namespace dfdx;
using tests::error_of;

TEST_CASE("bincount", "[counts]") {
  for (DType d : {DType::i64, DType::i32, DType::u8})
    for (index_t n : {0, 1, 7, 1000}) {
      Array const x = cast_to(randint({n}, Key{3}, 0, 11), d), w = randn({n}, Key{4}, DType::f64);
      std::vector<std::int64_t> number(20, 0);
      std::vector<double> sum(20, 0);
      std::int64_t most = -1;
      for (index_t i = 0; i < n; ++i) {
        auto const v = static_cast<std::size_t>(cast_to(x, DType::i64).at<std::int64_t>({i}));
        ++number[v], sum[v] += w.at<double>({i});
        most = std::max(most, static_cast<std::int64_t>(v));
      }
      Array const all = from(std::span<std::int64_t const>(number), {20}),
                  sums = from(std::span<double const>(sum), {20});
      CHECK(array_equal(bincount<20>(x), all));
      CHECK(array_equal(bincount(x, 20), all));
      CHECK(array_equal(bincount(x), slice(all, 0, 0, most + 1)));
      CHECK(allclose(bincount<20>(x, w), sums, 1e-13, 1e-13));
      CHECK(allclose(bincount(x, w, 3), slice(sums, 0, 0, std::max<index_t>(most + 1, 3)), 1e-13, 1e-13));
    }
  CHECK(array_equal(bincount(arange(3)), ones({3}, DType::i64)));  // each is one above the places so far
  Tensor<std::int32_t, 6> const x{0, 2, 2, 5, 1, 2};
  static_assert(std::is_same_v<decltype(bincount<6>(x)), Tensor<std::int64_t, 6>>);
  Tensor<float, 6> const w{1, 2, 3, 4, 5, 6};
  auto const g = grad([](auto const& v, auto const& at) { return sum(square(bincount<6>(at, v))); })(w, x);
  CHECK(array_equal(g, from({2.0f, 22.0f, 22.0f, 8.0f, 10.0f, 22.0f})));
  Array taped = w.clone();
  taped.requires_grad(true);
  sum(square(bincount(x, taped))).backward();
  CHECK(array_equal(taped.grad(), g));
  auto const count = compile([](Tensor<std::int32_t, 6> const& at) { return bincount<6>(at); });
  CHECK(array_equal(count(x), bincount(x)));
  CHECK(error_of([&] { count(Tensor<std::int32_t, 6>{0, 1, 2, 3, 4, 6}); }) ==
        "bincount: index 6 out of range for axis 0 of [6]");
  CHECK(error_of([&] { bincount<5>(x); }) == "bincount: index 5 out of range for axis 0 of [5]");
  CHECK(error_of([] { bincount(from({1, -2})); }) == "bincount: numbers from 0 on required, got -2");
  CHECK(error_of([] { bincount(ones({2})); }) == "bincount: a list of integers required, got f32 [2]");
  CHECK(error_of([&] { bincount(Array(x), ones({3})); }) == "bincount: weights [3] do not fit [6]");
  CHECK(error_of([&] { bincount(x, -1); }) == "bincount: a number of places required, got -1");
}

TEST_CASE("histc", "[counts]") {
  Tensor<float, 8> const x{-1, 0, 0.5f, 1, 2, 2.5f, NAN, INFINITY};
  auto const y = histc<4>(x, 0, 2);
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, Tensor<float, 4>>);
  CHECK(array_equal(y, ones({4})));
  Array const many = randn({10, 100}, Key{1}, DType::f64);
  std::vector<double> number(7, 0);
  for (index_t i = 0; i < 1000; ++i) {
    double const v = many.at<double>({i / 100, i % 100});
    if (v >= -1.5 && v <= 2)
      ++number[std::min<std::size_t>(6, static_cast<std::size_t>((v + 1.5) * 7 / 3.5))];
  }
  Array const want = from(std::span<double const>(number), {7});
  CHECK(array_equal(histc(many, 7, -1.5, 2), want));
  CHECK(array_equal(histc<7>(many, -1.5, 2), want));
  CHECK(histc(ones({3}, DType::bf16), 2, 0, 1).dtype() == DType::bf16);
  CHECK(array_equal(histc(zeros({0}), 3, 0, 1), zeros({3})));
  CHECK(error_of([] { histc(ones({2}), 3, 2, 1); }) == "histc: low must be below high");
  CHECK(error_of([] { histc(ones({2}), 0, 0, 1); }) == "histc: a positive number of parts required, got 0");
  CHECK(error_of([] { histc(arange(3), 2, 0, 1); }) == "histc: floating dtype required, got i64");
}

TEST_CASE("remainders by %", "[counts]") {
  Tensor<std::int32_t, 4> const i{5, -5, 7, 0};
  CHECK(array_equal(i % 3, remainder(i, 3)));
  CHECK(array_equal(i % 3, Tensor<std::int32_t, 4>{2, 1, 1, 0}));
  Array const x = from({5.5f, -5.5f, 7.0f});
  CHECK(array_equal(x % -2.0, remainder(x, -2.0)));
  CHECK(array_equal(7.5 % x, remainder(7.5, x)));
  CHECK(array_equal(x % x, zeros({3})));
}

}  // namespace tests::vocabulary_counts
