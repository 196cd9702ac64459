// SPDX-License-Identifier: BSL-1.0
// Making values: contents, shapes, the two spellings, and random numbers that are the same everywhere.
#include "support.hpp"

#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/shape.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace tests::vocabulary_create {

using namespace dfdx;
using tests::error_of;

TEST_CASE("constants, typed and untyped", "[create]") {
  auto const a = zeros<Tensor<float, 2, 3>>();
  auto const b = zeros<float, 2, 3>();
  static_assert(std::is_same_v<decltype(a), decltype(b)>);
  CHECK(array_equal(a, zeros({2, 3})));
  CHECK(zeros({2, 3}).dtype() == DType::f32);
  std::size_t const batch = 4;
  short const time = 5;
  CHECK(ones({batch, time, 3}, DType::i32).shape() == make_shape(4, 5, 3));
  CHECK(ones({}).ndim() == 0);
  CHECK(full<float16, 2>(1.5)(1) == 1.5f);
  CHECK(full({2}, 3, DType::boolean).at<bool>({0}));
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
  CHECK(full<std::int64_t, 2>(odd)(1) == odd);
  CHECK(full({2}, odd, DType::i64).at<std::int64_t>({1}) == odd);
  CHECK(full_like(full<std::int64_t, 2>(1), odd)(1) == odd);
  auto const like = compile([](auto const& x) { return full_like(x, (std::int64_t{1} << 53) + 1); });
  CHECK(like(full<std::int64_t, 2>(1))(1) == odd);
  CHECK(empty<Tensor<float, dyn, 2>>({3, 2}).shape() == make_shape(3, 2));
  auto const e = eye<double, 2, 3>();
  CHECK(e(0, 0) == 1);
  CHECK(e(0, 2) == 0);
  CHECK(e(1, 1) == 1);
  CHECK(array_equal(eye(2, 3), e));
  auto const square = eye<std::int32_t, 3>();
  STATIC_REQUIRE(std::is_same_v<decltype(square), Tensor<std::int32_t, 3, 3> const>);
  CHECK(array_equal(square, Tensor<std::int32_t, 3, 3>::from({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}})));
  CHECK(array_equal(from({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2}), Tensor<float, 2, 2>::from({{1, 2}, {3, 4}})));
}

TEST_CASE("arange", "[create]") {
  CHECK(array_equal(arange(4), from<std::int64_t>({0, 1, 2, 3})));
  CHECK(arange(4).dtype() == DType::i64);
  CHECK(allclose(arange(0, 1, 0.25), from({0.0f, 0.25f, 0.5f, 0.75f})));
  CHECK(arange(0.0, 1.0, 0.1).size() == 10);
  CHECK(array_equal(arange(5, 0, -2), from<std::int64_t>({5, 3, 1})));
  CHECK(arange(3, 3).size() == 0);
  CHECK(array_equal(arange<Tensor<std::int32_t, 3>>(2, 3), from({2, 5, 8})));
  CHECK(error_of([] { arange(0, 3, 0); }) == "arange: step is zero");
  // All digits of integers that no double holds.
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
  CHECK(array_equal(arange(odd, odd + 3), from<std::int64_t>({odd, odd + 1, odd + 2})));
  CHECK(array_equal(arange<std::int64_t, 2>(odd, -2), from<std::int64_t>({odd, odd - 2})));
  CHECK(array_equal(arange(INT64_MIN, INT64_MAX, INT64_MAX),
                    from<std::int64_t>({INT64_MIN, -1, INT64_MAX - 1})));
  CHECK(arange(INT64_MAX, INT64_MIN, INT64_MIN).size() == 2);
  CHECK(error_of([] { arange(INT64_MIN, INT64_MAX); }) == "arange: too many elements");
  CHECK(error_of([] { arange(0.0, INFINITY); }) == "arange: too many elements");
}

TEST_CASE("linspace", "[create]") {
  CHECK(array_equal(linspace(-1, 2, 4, DType::f64), from<double>({-1, 0, 1, 2})));
  CHECK(array_equal(linspace<double, 4>(-1, 2), from<double>({-1, 0, 1, 2})));
  CHECK(linspace(0, 1, 11)[10].item() == 1);
  CHECK(linspace(0.1, 0.3, 1, DType::f64).item() == 0.1);
  CHECK(linspace(0, 1, 0).shape() == make_shape(0));
  CHECK_THROWS_WITH(linspace(0, 1, -1),
                    "linspace: a number of elements that is not negative required, got -1");
}

TEST_CASE("sizes must be known", "[create]") {
  CHECK(error_of([] { zeros<Tensor<float, dyn, 3>>(); }) ==
        "zeros: every extent must be known and not negative, got [dyn, 3]");
  CHECK(error_of([] { zeros<Tensor<float, dyn, 3>>({2, 4}); }) ==
        "tensor: f32 [dyn, 3] required, got f32 [2, 4]");
  CHECK(error_of([] { empty({2, -3}); }) ==
        "empty: every extent must be known and not negative, got [2, -3]");
  CHECK(error_of([] { ones({-1}); }) == "ones: every extent must be known and not negative, got [-1]");
}

TEST_CASE("random numbers are known ones", "[create]") {
  // Element i is drawn at counter i, whatever the shape; fixed here so that a change shows.
  auto const n = randn<double, 4>(Key{1});
  CHECK(array_equal(n, randn({2, 2}, Key{1}, DType::f64).view(make_shape(4), make_shape(1))));
  for (int i = 0; i < 4; ++i) CHECK(n(i) == normal_at(Key{1}, static_cast<std::uint64_t>(i)));
  auto const u = uniform<float, 3>(Key{1}, -2, 2);
  for (int i = 0; i < 3; ++i)
    CHECK(u(i) == static_cast<float>(-2 + 4 * uniform_at(Key{1}, static_cast<std::uint64_t>(i))));
  CHECK(!array_equal(randn({8}, Key{1}), randn({8}, Key{2})));
  CHECK(error_of([] { randn({2}, Key{1}, DType::i32); }) == "randn: floating dtype required, got i32");
}

TEST_CASE("random numbers are distributed as they should", "[create]") {
  index_t const n = 100000;
  Array const x = randn({n}, Key{7}, DType::f64), y = uniform({n}, Key{7}, -1, 3);
  double mean = 0, square = 0, fourth = 0, sum = 0, low = 9, high = -9;
  for (index_t i = 0; i < n; ++i) {
    double const v = x.data<double>()[i], w = static_cast<double>(y.data<float>()[i]);
    mean += v / static_cast<double>(n);
    square += v * v / static_cast<double>(n);
    fourth += v * v * v * v / static_cast<double>(n);
    sum += w / static_cast<double>(n);
    low = std::min(low, w);
    high = std::max(high, w);
  }
  CHECK(std::fabs(mean) < 0.02);
  CHECK(std::fabs(square - 1) < 0.02);
  CHECK(std::fabs(fourth - 3) < 0.15);
  CHECK(std::fabs(sum - 1) < 0.02);
  CHECK((low >= -1 && low < -0.99));
  CHECK((high < 3 && high > 2.99));
  // Rounding must not reach the open end.
  Array const h = uniform({n}, Key{3}, 0, 1, DType::bf16);
  for (index_t i = 0; i < n; ++i)
    if (!(h.data<bfloat16>()[i] < 1.0f)) FAIL("1 drawn from [0, 1)");
}

TEST_CASE("integers and permutations", "[create]") {
  Array const r = randint({10000}, Key{1}, -3, 4);
  std::set<std::int64_t> seen(r.data<std::int64_t>(), r.data<std::int64_t>() + r.size());
  CHECK(seen == std::set<std::int64_t>{-3, -2, -1, 0, 1, 2, 3});
  CHECK(array_equal((randint<std::int32_t, 100>(Key{1}, -3, 4)), randint({100}, Key{1}, -3, 4)));
  CHECK(error_of([] { randint({1}, Key{1}, 2, 2); }) == "randint: low must be below high");
  CHECK(error_of([] { randint({1}, Key{1}, 0, std::int64_t{1} << 40); }) ==
        "randint: more than 2^32 different values");

  Array const p = permutation(1000, Key{1});
  std::set<std::int64_t> all(p.data<std::int64_t>(), p.data<std::int64_t>() + 1000);
  CHECK((all.size() == 1000 && *all.begin() == 0 && *all.rbegin() == 999));
  CHECK(!array_equal(p, arange(1000)));
  CHECK(array_equal((permutation<std::int32_t, 1000>(Key{1})), p));
  CHECK(permutation(0, Key{1}).size() == 0);
  CHECK(error_of([] { permutation(-1, Key{1}); }) == "permutation: of -1 numbers");
  CHECK(error_of([] { randint({1}, Key{1}, 0, 257, DType::u8); }) ==
        "randint: u8 does not hold all of [0, 257)");
  CHECK(randint({99}, Key{1}, 0, 256, DType::u8).size() == 99);
  CHECK(error_of([] { uniform({1}, Key{1}, 2, 1); }) == "uniform: low must not be above high");
}

TEST_CASE("comparison of whole arrays", "[create]") {
  CHECK(allclose(ones({2, 3}), ones({3}, DType::f64)));
  CHECK(!allclose(from({1.0f}), from({1.1f})));
  CHECK(allclose(from({1.0f}), from({1.1f}), 0.1));
  CHECK(!allclose(from({NAN}), from({NAN})));
  CHECK(allclose(from({NAN}), from({NAN}), 0, 0, true));
  CHECK(allclose(from({INFINITY}), from({INFINITY})));
  CHECK(!allclose(from({1.0f}), from({INFINITY})));
  CHECK(error_of([] { allclose(ones({2, 3}), ones({4})); }) ==
        "allclose: shapes [2, 3] and [4] do not broadcast");
  CHECK(array_equal(ones({3}), ones({3}, DType::i32)));
  CHECK(!array_equal(ones({3}), ones({1, 3})));
  CHECK(!array_equal(from({std::int64_t{9007199254740993}}), from({std::int64_t{9007199254740992}})));
}

TEST_CASE("tensors from lists of numbers", "[create]") {
  Tensor<float, 3> v{1, 2, 3};
  CHECK(array_equal(v, from({1.0f, 2.0f, 3.0f})));
  Tensor<double, 2, 3> const m{{1, 2, 3}, {4, 5, 6}};
  CHECK(array_equal(m, Tensor<double, 2, 3>::from({1, 2, 3, 4, 5, 6})));
  Tensor<std::int32_t, 1, 2, 2> const k{{{1, 2}, {3, 4}}};
  CHECK(array_equal(k, Tensor<std::int32_t, 1, 2, 2>::from({1, 2, 3, 4})));
  Tensor<float, dyn, dyn> const any{{1, 2}, {3, 4}, {5, 6}};
  CHECK(any.shape() == make_shape(3, 2));
  CHECK(Tensor<float, dyn>{7}.shape() == make_shape(1));
  v = {4, 5, 6};
  CHECK(v(2) == 6);
  auto const length = [](Tensor<float, 2> const& x) { return x(0) * x(0) + x(1) * x(1); };
  CHECK(length({3, 4}) == 25);
  // What is no list of numbers is as ever: no memory, a copy, a checked view.
  CHECK(Tensor<float, 3>{}.empty());
  Tensor<float, 3> const same{v}, view{Array(v)};
  CHECK((same.data() == v.data() && view.data() == v.data()));
  CHECK(error_of([] { Tensor<float, 3>{1, 2}; }) == "from: 2 elements for shape [3]");
  CHECK(error_of([] { Tensor<float, 2, 2>{{1, 2}, {3}}; }) == "from: rows of different lengths");
  CHECK(error_of([] { Tensor<float, 2, 2>{{1, 2, 3}, {4, 5, 6}}; }).starts_with("tensor: f32 [2, 2]"));
}

TEST_CASE("integers drawn many at a time are those drawn one by one", "[create]") {
  Key const key{11};
  for (index_t n : {0, 1, 2, 63, 64, 65, 200}) {
    for (std::int64_t range : {std::int64_t{1}, std::int64_t{10}, std::int64_t{1} << 32}) {
      Array const drawn = randint({n}, key, -3, range - 3);
      for (index_t i = 0; i < n; ++i)
        REQUIRE(drawn.at<std::int64_t>({i}) == integer_at(key, static_cast<std::uint64_t>(i), range) - 3);
    }
    // Fisher and Yates, number by number.
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
    for (index_t i = n - 1; i > 0; --i)
      std::swap(order[static_cast<std::size_t>(i)],
                order[static_cast<std::size_t>(integer_at(key, static_cast<std::uint64_t>(i), i + 1))]);
    Array const p = permutation(n, key);
    CHECK(std::equal(order.begin(), order.end(), p.data<std::int64_t>()));
  }
}

}  // namespace tests::vocabulary_create
