// SPDX-License-Identifier: BSL-1.0
// Pooling against plain loops over windows; ties, edges, refusals.
#include "ops/places.hpp"

#include <dfdx/program/transforms.hpp>
#include <dfdx/testing/gradcheck.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/pool_by_size.hpp>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_pool {

namespace {

using namespace suite;

// Windows of one axis: where the p-th begins and ends, and how far its elements are apart.
struct Ends {
  index_t from, to, step;
};
using Axis = std::function<Ends(index_t p, index_t n)>;

Axis windows(index_t size, index_t stride, index_t before = 0, index_t step = 1) {
  return [=](index_t p, index_t) {
    index_t const from = p * stride - before;
    return Ends{from, from + step * (size - 1) + 1, step};
  };
}
Axis bins(index_t m) {
  return [=](index_t p, index_t n) {
    return Ends{static_cast<index_t>(std::floor(static_cast<double>(p * n) / static_cast<double>(m))),
                static_cast<index_t>(std::ceil(static_cast<double>((p + 1) * n) / static_cast<double>(m))),
                1};
  };
}

// y[.., p] = f(the elements that window p has, how many it would have with `before` and as many behind counted in)
// over the last two axes.
template <class F>
auto over_windows(Axis rows, Axis columns, index_t m, index_t k, index_t row_pad, index_t column_pad, F f) {
  return [=](V v) {
    Array const x = v[0];
    Shape s = x.shape();
    int const r = s.rank;
    index_t const height = s[r - 2], width = s[r - 1];
    s[r - 2] = m;
    s[r - 1] = k;
    Array const y = doubles(s);
    for_indices(s, [&](index_t const* p) {
      Ends const a = rows(p[r - 2], height), b = columns(p[r - 1], width);
      std::vector<double> inside;
      index_t j[max_rank] = {};
      std::copy(p, p + max_rank, j);
      int counted = 0;
      for (index_t i = a.from; i < a.to; i += a.step)
        for (index_t l = b.from; l < b.to; l += b.step) {
          counted += i < height + row_pad && l < width + column_pad;
          if (i < 0 || i >= height || l < 0 || l >= width) continue;
          j[r - 2] = i;
          j[r - 1] = l;
          inside.push_back(value_at(x, j));
        }
      cell(y, p) = f(inside, counted);
    });
    return y;
  };
}

double largest_of(std::vector<double> const& v, int) { return *std::max_element(v.begin(), v.end()); }
double sum_of(std::vector<double> const& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
double mean_of(std::vector<double> const& v, int) { return sum_of(v) / static_cast<double>(v.size()); }
double padded_mean(std::vector<double> const& v, int counted) { return sum_of(v) / counted; }

// Elements that are not close to one another, so that differences do not change which is the largest.
Array apart(Extents const& shape, std::uint64_t key) {
  Array const order = cast_to(permutation(shape.shape.numel(), Key{key}), DType::f64);
  return reshape(order * 0.125 - 2.0, shape);
}

}  // namespace

TEST_CASE("max_pool", "[ops]") {
  check_op(
      "max_pool2d", [](V v) { return max_pool2d(v[0], {.kernel = {2, 3}}); },
      over_windows(windows(2, 2), windows(3, 3), 2, 2, 0, 0, largest_of), {apart({2, 1, 5, 6}, 1)}, true,
      true);
  check_op(
      "max_pool2d, options",
      [](V v) {
        return max_pool2d(v[0], {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
      },
      over_windows(windows(3, 2, 1), windows(2, 1, 0, 2), 2, 3, 1, 0, largest_of), {apart({2, 4, 5}, 2)},
      true, true);
  check_op(
      "max_pool2d, ceil", [](V v) { return max_pool2d(v[0], {2, 2, 0, 1, true}); },
      over_windows(windows(2, 2), windows(2, 2), 3, 2, 0, 0, largest_of), {apart({1, 1, 5, 4}, 3)}, true,
      true);
  check_op(
      "max_pool1d", [](V v) { return max_pool1d(v[0], {3, 1, 1}); },
      over_windows(windows(1, 1), windows(3, 1, 1), 2, 5, 0, 1, largest_of), {apart({1, 2, 5}, 4)}, true,
      true);
  check_op(
      "max_pool3d", [](V v) { return max_pool3d(v[0], {.kernel = {1, 2, 2}}); },
      over_windows(windows(2, 2), windows(2, 2), 1, 2, 0, 0, largest_of), {apart({1, 2, 2, 3, 4}, 5)}, true,
      true);
  check_op(
      "adaptive_max_pool2d", [](V v) { return adaptive_max_pool2d(v[0], {3, 2}); },
      over_windows(bins(3), bins(2), 3, 2, 0, 0, largest_of), {apart({1, 2, 4, 5}, 6)}, true, true);
  check_op(
      "adaptive_max_pool1d", [](V v) { return adaptive_max_pool1d(v[0], 2); },
      over_windows(windows(1, 1), bins(2), 2, 2, 0, 0, largest_of), {apart({1, 2, 5}, 6)}, true, true);

  // The first of several; a NaN; nothing but -infinity; all three axes count in a place.
  Array const x = from<float>({1, 3, 3, -INFINITY, -INFINITY, 2, NAN, 9}, {1, 1, 8});
  auto const [y, places] = max_pool1d_with_indices(x, {.kernel = 2});
  CHECK(array_equal(places, from<std::int64_t>({1, 2, 5, 6}, {1, 1, 4})));
  CHECK(std::isnan(suite::at(y, 3)));
  CHECK(array_equal(std::get<1>(max_pool1d_with_indices(full({1, 4}, -HUGE_VAL), {.kernel = 2})),
                    from<std::int64_t>({0, 2}, {1, 2})));
  CHECK(array_equal(
      std::get<1>(max_pool3d_with_indices(reshape(arange(24.0), {1, 2, 3, 4}), {.kernel = {2, 3, 2}})),
      from<std::int64_t>({21, 23}, {1, 1, 1, 2})));
  CHECK(array_equal(std::get<1>(adaptive_max_pool2d_with_indices(reshape(arange(6.0), {1, 2, 3}), {-1, 1})),
                    from<std::int64_t>({2, 5}, {1, 2, 1})));
  // No window begins behind the elements.
  CHECK(max_pool1d(zeros({1, 1, 3}), {.kernel = 1, .stride = 3, .ceil_mode = true}).shape() ==
        make_shape(1, 1, 1));
  CHECK(max_pool2d(zeros({0, 3, 4, 4}), {2}).shape() == make_shape(0, 3, 2, 2));
}

// The kernel for floats against plain loops: more windows than a block of its holds, windows at edges, NaNs.
TEST_CASE("max_pool of many windows", "[ops]") {
  auto const [shape, o] = GENERATE(table<Shape, MaxPoolOptions>({
      {make_shape(2, 3, 41, 50), {.kernel = 2}},
      {make_shape(1, 2, 70, 33), {.kernel = {3, 5}, .stride = {2, 1}, .padding = {1, 2}}},
      {make_shape(2, 1, 37, 90), {.kernel = 3, .stride = 2, .padding = 1, .dilation = {2, 4}}},
      {make_shape(1, 1, 3, 9000), {.kernel = {1, 2}, .stride = {2, 1}, .ceil_mode = true}},
  }));
  for (DType d : {DType::f32, DType::f64}) {
    // Few different values, so that there are ties.
    Array x = cast_to(draw(shape, {-4, 4}, 7, DType::f64), DType::i32);
    x = cast_to(x, d);
    dispatch(d, [&](auto type) {
      using T = typename decltype(type)::type;
      for (index_t i : {index_t{6}, index_t{7}, index_t{700}, x.size() - 1})
        x.data<T>()[i] = static_cast<T>(NAN);
    });
    auto const places = std::get<1>(max_pool2d_with_indices(x, o));
    // A transposed view has no kernel.
    Array const turned = transpose(transpose(x, -1, -2).contiguous(), -1, -2);
    CHECK(array_equal(places, std::get<1>(max_pool2d_with_indices(turned, o))));
  }
}

TEST_CASE("avg_pool", "[ops]") {
  Array const x = draw(make_shape(2, 1, 5, 6), {-2, 2}, 1, DType::f64);
  check_op(
      "avg_pool2d", [](V v) { return avg_pool2d(v[0], {.kernel = {2, 3}}); },
      over_windows(windows(2, 2), windows(3, 3), 2, 2, 0, 0, mean_of), {x}, false, true);
  check_op(
      "avg_pool2d, padded", [](V v) { return avg_pool2d(v[0], {3, 2, {1, 1}, true}); },
      over_windows(windows(3, 2, 1), windows(3, 2, 1), 3, 4, 1, 1, padded_mean), {x}, false, true);
  check_op(
      "avg_pool2d, not padded",
      [](V v) {
        return avg_pool2d(v[0], {.kernel = 3, .stride = {2, 1}, .padding = 1, .count_include_pad = false});
      },
      over_windows(windows(3, 2, 1), windows(3, 1, 1), 3, 6, 0, 0, mean_of), {x}, false, true);
  check_op(
      "avg_pool2d, divisor",
      [](V v) { return avg_pool2d(v[0], {.kernel = 2, .padding = 1, .divisor_override = 3}); },
      over_windows(windows(2, 2, 1), windows(2, 2, 1), 3, 4, 0, 0,
                   [](std::vector<double> const& v, int) { return sum_of(v) / 3; }),
      {x}, false, true);
  check_op(
      "avg_pool1d", [](V v) { return avg_pool1d(select(v[0], 1, 0), {.kernel = 2, .stride = 1}); },
      [&](V v) {
        Array const row[] = {select(v[0], 1, 0)};
        return over_windows(windows(1, 1), windows(2, 1), 5, 5, 0, 0, mean_of)(row);
      },
      {x}, false, true);
  check_op(
      "avg_pool3d", [](V v) { return avg_pool3d(reshape(v[0], {1, 2, 5, 6}), {.kernel = {2, 2, 3}}); },
      [&](V v) {
        Array const both[] = {mean(v[0], 0, true)};
        return over_windows(windows(2, 2), windows(3, 3), 2, 2, 0, 0, mean_of)(both);
      },
      {x}, false, true);
  check_op(
      "adaptive_avg_pool2d", [](V v) { return adaptive_avg_pool2d(v[0], {3, 4}); },
      over_windows(bins(3), bins(4), 3, 4, 0, 0, mean_of), {x}, false, true);
  check_op(
      "adaptive_avg_pool1d", [](V v) { return adaptive_avg_pool1d(select(v[0], 1, 0), 7); },
      [&](V v) {
        Array const row[] = {select(v[0], 1, 0)};
        return over_windows(windows(1, 1), bins(7), 5, 7, 0, 0, mean_of)(row);
      },
      {x}, false, true);
  check_op(
      "lp_pool2d", [](V v) { return lp_pool2d(v[0], 2, {.kernel = 2, .stride = {1, 2}}); },
      over_windows(windows(2, 1), windows(2, 2), 4, 3, 0, 0,
                   [](std::vector<double> const& v, int) {
                     double s = 0;
                     for (double a : v) s += a * a;
                     return std::sqrt(s);
                   }),
      {x}, false, true);
  check_op(
      "lp_pool1d", [](V v) { return lp_pool1d(select(abs(v[0]), 1, 0), 3, {.kernel = 2}); },
      [&](V v) {
        Array const row[] = {select(abs(v[0]), 1, 0)};
        return over_windows(windows(1, 1), windows(2, 2), 5, 3, 0, 0, [](std::vector<double> const& v, int) {
          return std::cbrt(v[0] * v[0] * v[0] + v[1] * v[1] * v[1]);
        })(row);
      },
      {x}, false, true);
  CHECK(testing::gradcheck([](V v) { return avg_pool2d(v[0], {3, 2, 1}); }, {x}));
  CHECK(
      testing::gradgradcheck([](V v) { return square(max_pool2d(v[0], {3, 2, 1})); }, {apart({2, 5, 5}, 1)}));
  CHECK(array_equal(adaptive_avg_pool2d(x, -1), x));
  CHECK(avg_pool2d(zeros({0, 3, 4, 4}), {2}).shape() == make_shape(0, 3, 2, 2));
}

TEST_CASE("what pooling refuses", "[ops]") {
  Array const x = zeros({2, 3, 2, 9});
  CHECK_THROWS_WITH(max_pool2d(x, {3}), "max_pool2d: windows do not fit axis 2 of [2, 3, 2, 9]");
  CHECK_THROWS_WITH(max_pool2d(x, {.kernel = 2, .padding = 2}),
                    "max_pool2d: windows do not fit axis 2 of [2, 3, 2, 9]");
  CHECK_THROWS_WITH(max_pool1d(zeros({1, 1, 1}), {.kernel = 2, .padding = 1, .dilation = 2}),
                    "max_pool1d: windows do not fit axis 2 of [1, 1, 1]");
  CHECK_THROWS_WITH(max_pool1d(x, {3}), "max_pool1d: input of 3 axes required, got [2, 3, 2, 9]");
  CHECK_THROWS_WITH(max_pool2d(x, {{2, 2, 2}}),
                    "max_pool2d: kernel, stride, padding, dilation or sizes out of range or not for 2 axes");
  CHECK_THROWS_WITH(max_pool2d(x, {0}),
                    "max_pool2d: kernel, stride, padding, dilation or sizes out of range or not for 2 axes");
  CHECK_THROWS_WITH(max_pool2d(zeros({1, 4, 4}, DType::boolean), {2}),
                    "max_pool2d: numeric dtype required, got bool");
  CHECK_THROWS_WITH(avg_pool2d(zeros({1, 4, 4}, DType::i32), {2}),
                    "avg_pool2d: floating dtype required, got i32");
  CHECK_THROWS_WITH(avg_pool2d(x, {.kernel = 1, .divisor_override = -1}),
                    "avg_pool2d: a positive divisor required");
  CHECK_THROWS_WITH(adaptive_avg_pool2d(zeros({1, 0, 4}), 2),
                    "adaptive_avg_pool2d: windows do not fit axis 1 of [1, 0, 4]");
  CHECK_THROWS_WITH(
      adaptive_max_pool2d(x, {1, 2, 3}),
      "adaptive_max_pool2d: kernel, stride, padding, dilation or sizes out of range or not for 2 axes");
}

TEST_CASE("windows by numbers alone are those of the options", "[ops]") {
  auto const x = randn<float, 2, 3, 8, 9>(Key{1});
  auto const line = randn<float, 2, 3, 9>(Key{2});
  auto const volume = randn<float, 1, 2, 6, 5, 6>(Key{3});
  static_assert(std::is_same_v<decltype(max_pool2d<2>(x)), Tensor<float, 2, 3, 4, 4>>);
  static_assert(std::is_same_v<decltype(avg_pool2d<3, 2, 1>(x)), Tensor<float, 2, 3, 4, 5>>);
  CHECK(array_equal(max_pool2d<3, 2, 1>(x), max_pool2d<MaxPoolOptions{3, 2, 1}>(x)));
  CHECK(array_equal(max_pool2d(x, 3, 2, 1), max_pool2d<MaxPoolOptions{3, 2, 1}>(x)));
  CHECK(array_equal(max_pool2d(x, 2), max_pool2d(x, {2})));
  CHECK(array_equal(max_pool2d<Extents{3, 2}>(x), max_pool2d(x, {{3, 2}})));
  CHECK(array_equal(avg_pool2d<3, 2, 1>(x), avg_pool2d<AvgPoolOptions{3, 2, 1}>(x)));
  CHECK(array_equal(avg_pool2d(x, 2, Extents{1, 2}), avg_pool2d(x, {2, {1, 2}})));
  CHECK(array_equal(max_pool1d<4>(line), max_pool1d(line, {4})));
  CHECK(array_equal(max_pool1d(line, 3, 1), max_pool1d(line, {3, 1})));
  CHECK(array_equal(avg_pool1d<4, 1>(line), avg_pool1d(line, {4, 1})));
  CHECK(array_equal(avg_pool1d(line, 2), avg_pool1d(line, {2})));
  CHECK(array_equal(max_pool3d<2>(volume), max_pool3d(volume, {2})));
  CHECK(array_equal(max_pool3d(volume, 2, 1), max_pool3d(volume, {2, 1})));
  CHECK(array_equal(avg_pool3d<2, 1>(volume), avg_pool3d(volume, {2, 1})));
  CHECK(array_equal(avg_pool3d(volume, 3), avg_pool3d(volume, {3})));
}

TEST_CASE("along several axes 16 bits are rounded once", "[ops]") {
  using F = std::function<Array(Array const&)>;
  std::vector<F> const all = {
      [](Array const& x) {
        return avg_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true});
      },
      [](Array const& x) { return avg_pool2d(x, {.kernel = Extents(3, 1), .divisor_override = 7}); },
      [](Array const& x) { return adaptive_avg_pool2d(x, {3, 5}); },
      [](Array const& x) { return avg_pool3d(unsqueeze(x, 0), {.kernel = 2}); },
      [](Array const& x) {
        return interpolate(x, {.size = {5, 9}, .mode = InterpolateMode::bilinear, .align_corners = true});
      },
      [](Array const& x) { return interpolate(x, {.size = {5, 9}, .mode = InterpolateMode::bicubic}); },
  };
  for (DType d : {DType::f16, DType::bf16})
    for (std::size_t k = 0; k < all.size(); ++k) {
      INFO(name_of(d) << " " << k);
      auto const run = [&](DType as) {
        Array x = randn({2, 3, 8, 7}, Key{4}).to(d).to(as);
        x.requires_grad(true);
        Array const y = all[k](x);
        y.backward(randn(Extents(y.shape()), Key{5}).to(d).to(as));
        return std::array{y.detach(), x.grad()};
      };
      auto const got = run(d), want = run(DType::f32);
      CHECK(array_equal(got[0], want[0].to(d)));
      CHECK(array_equal(got[1], want[1].to(d)));
    }
  auto const x = cast<bfloat16>(randn<float, 1, 2, 6, 6>(Key{6}));
  auto const f = [](auto const& v) { return avg_pool2d<3, 2>(v); };
  CHECK(array_equal(f(x), cast<bfloat16>(f(cast<float>(x)))));
  CHECK(array_equal(f(x), compile(f)(x)));
}

}  // namespace tests::ops_pool
