// SPDX-License-Identifier: BSL-1.0
// interpolate and grid_sample against plain formulas, point by point.
#include "ops/places.hpp"

#include <dfdx/testing/gradcheck.hpp>
#include <dfdx/vocabulary/arrange.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/methods.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_interpolate {

namespace {

using namespace suite;

index_t within(index_t i, index_t n) { return std::clamp<index_t>(i, 0, n - 1); }

// The value between the elements of a line at a place in elements, of which the first is 0.
double linear_at(std::vector<double> const& v, double at) {
  auto const n = static_cast<double>(v.size());
  double const place = std::fmin(std::fmax(at, 0), n - 1), low = std::floor(place);
  double const high = std::fmin(low + 1, n - 1);
  return v[static_cast<std::size_t>(low)] * (1 - (place - low)) +
         v[static_cast<std::size_t>(high)] * (place - low);
}
// Keys' kernel by distance, all elements tried, those beyond the ends being those at the ends.
double cubic_at(std::vector<double> const& v, double at) {
  double r = 0;
  auto const n = static_cast<index_t>(v.size());
  for (index_t i = -3; i < n + 3; ++i) {
    double const d = std::fabs(at - static_cast<double>(i)), a = -0.75;
    double const k = d < 1   ? (a + 2) * d * d * d - (a + 3) * d * d + 1
                     : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a
                             : 0;
    r += k * v[static_cast<std::size_t>(within(i, n))];
  }
  return r;
}

using Line = std::function<double(std::vector<double> const&, index_t p, index_t m)>;

// The last axes, one after another.
auto by_lines(Shape const& to, Line const& f) {
  return [=](V v) {
    Array x = v[0];
    for (int axis = 2; axis < x.ndim(); ++axis) {
      Shape s = x.shape();
      s[axis] = to[axis - 2];
      Array const y = doubles(s);
      for_indices(s, [&](index_t const* i) {
        std::vector<double> line;
        index_t j[max_rank] = {};
        std::copy(i, i + max_rank, j);
        for (j[axis] = 0; j[axis] < x.shape()[axis]; ++j[axis]) line.push_back(value_at(x, j));
        cell(y, i) = f(line, i[axis], s[axis]);
      });
      x = y;
    }
    return x;
  };
}
double half_pixel(std::vector<double> const& v, index_t p, index_t m) {
  return (static_cast<double>(p) + 0.5) * static_cast<double>(v.size()) / static_cast<double>(m) - 0.5;
}
double aligned(std::vector<double> const& v, index_t p, index_t m) {
  return m == 1 ? 0 : static_cast<double>(p) * static_cast<double>(v.size() - 1) / static_cast<double>(m - 1);
}

Array drawn(Extents const& shape, std::uint64_t key) { return draw(shape.shape, {-2, 2}, key, DType::f64); }

}  // namespace

TEST_CASE("interpolate", "[ops]") {
  using enum InterpolateMode;
  auto const check = [](char const* name, InterpolateOptions const& o, Shape const& to, Line const& line,
                        Array const& x, bool integers = false) {
    check_op(name, [&](V v) { return interpolate(v[0], o); }, by_lines(to, line), {x}, integers, true);
  };
  Array const image = drawn({1, 2, 3, 4}, 1), row = drawn({2, 1, 5}, 2), cube = drawn({1, 1, 2, 3, 2}, 3);
  auto const nearest_line = [](std::vector<double> const& v, index_t p, index_t m) {
    return v[static_cast<std::size_t>(p * static_cast<index_t>(v.size()) / m)];
  };
  auto const exact_line = [](std::vector<double> const& v, index_t p, index_t m) {
    return v[static_cast<std::size_t>((static_cast<double>(p) + 0.5) * static_cast<double>(v.size()) /
                                      static_cast<double>(m))];
  };
  check("nearest", {.size = {5, 7}}, make_shape(5, 7), nearest_line, image, true);
  check("nearest, smaller", {.size = 2}, make_shape(2), nearest_line, row, true);
  check("nearest_exact", {.size = {2, 7}, .mode = nearest_exact}, make_shape(2, 7), exact_line, image, true);
  check("nearest of cubes", {.scale_factor = 2}, make_shape(4, 6, 4), nearest_line, cube, true);
  auto const with = [](auto const& value, auto const& place) {
    return [=](std::vector<double> const& v, index_t p, index_t m) { return value(v, place(v, p, m)); };
  };
  check("linear", {.size = 8, .mode = linear}, make_shape(8), with(linear_at, half_pixel), row);
  check("linear aligned", {.size = 3, .mode = linear, .align_corners = true}, make_shape(3),
        with(linear_at, aligned), row);
  check("bilinear", {.size = {5, 2}, .mode = bilinear}, make_shape(5, 2), with(linear_at, half_pixel), image);
  check("bilinear aligned", {.size = {1, 6}, .mode = bilinear, .align_corners = true}, make_shape(1, 6),
        with(linear_at, aligned), image);
  check("bicubic", {.size = {5, 3}, .mode = bicubic}, make_shape(5, 3), with(cubic_at, half_pixel), image);
  check("bicubic aligned", {.size = {2, 7}, .mode = bicubic, .align_corners = true}, make_shape(2, 7),
        with(cubic_at, aligned), image);
  check("trilinear", {.size = {3, 2, 4}, .mode = trilinear}, make_shape(3, 2, 4), with(linear_at, half_pixel),
        cube);
  check(
      "area", {.size = {2, 3}, .mode = area}, make_shape(2, 3),
      [](std::vector<double> const& v, index_t p, index_t m) {
        auto const n = static_cast<index_t>(v.size());
        index_t const from = p * n / m, to = ((p + 1) * n + m - 1) / m;
        double s = 0;
        for (index_t i = from; i < to; ++i) s += v[static_cast<std::size_t>(i)];
        return s / static_cast<double>(to - from);
      },
      image);
  // A given factor also sets the distance of neighbours: 5 * 1.5 = 7 elements, 1 / 1.5 apart.
  check(
      "linear by a factor", {.scale_factor = 1.5, .mode = linear}, make_shape(7),
      [](std::vector<double> const& v, index_t p, index_t) {
        return linear_at(v, (static_cast<double>(p) + 0.5) / 1.5 - 0.5);
      },
      row);
  check(
      "nearest by factors", {.scale_factor = {0.7, 1.3}}, make_shape(2, 5),
      [](std::vector<double> const& v, index_t p, index_t m) {
        return v[static_cast<std::size_t>(static_cast<double>(p) / (m == 2 ? 0.7 : 1.3))];
      },
      image, true);
  // Each element so many times, also where the reciprocal of the factor is rounded down; 39 / 2.6 is 15.
  Array const places = cast_to(positions(zeros({1, 1, 70}), 2, 70), DType::f32);
  for (index_t by : {49, 98, 103})
    for (InterpolateMode const mode : {InterpolateMode::nearest, InterpolateMode::nearest_exact})
      CHECK(array_equal(interpolate(places, {.scale_factor = by, .mode = mode}),
                        repeat_interleave(places, by, 2)));
  CHECK(interpolate(places, {.scale_factor = 2.6})(0, 0, 39).item() == 15);
  CHECK(array_equal(interpolate(image, {.size = {3, 4}, .mode = bicubic}), image));
  CHECK(interpolate(zeros({0, 2, 3, 4}), {.size = 7}).shape() == make_shape(0, 2, 7, 7));

  CHECK_THROWS_WITH(interpolate(row, {.size = 3, .mode = bilinear}),
                    "interpolate: bilinear does not take input [2, 1, 5]");
  CHECK_THROWS_WITH(interpolate(image, {.size = {5, 7}, .scale_factor = 2}),
                    "interpolate: a size or a scale factor for 2 axes required, and not both");
  CHECK_THROWS_WITH(interpolate(image, {.size = {5, 7, 8}}),
                    "interpolate: a size or a scale factor for 2 axes required, and not both");
  CHECK_THROWS_WITH(interpolate(image, {.size = 5, .align_corners = true}),
                    "interpolate: nearest does not align corners");
  CHECK_THROWS_WITH(interpolate(cast_to(image, DType::i32), {.size = 5, .mode = bilinear}),
                    "interpolate: floating dtype required, got i32");
  CHECK_THROWS_WITH(interpolate(zeros({1, 1, 0}), {.size = 5}),
                    "interpolate: axis 2 of [1, 1, 0] or of [1, 1, 5] is empty");
}

namespace {

// A place from -1 .. 1 to elements, and back into the image.
double place_of(double u, index_t n, GridSampleOptions const& o) {
  auto const size = static_cast<double>(n);
  double at = o.align_corners ? (u + 1) / 2 * (size - 1) : ((u + 1) * size - 1) / 2;
  double const low = o.align_corners ? 0 : -0.5, high = o.align_corners ? size - 1 : size - 0.5;
  if (o.padding_mode == GridPadding::reflection)
    for (int turn = 0; turn < 100 && low < high && (at < low || at > high); ++turn)
      at = at < low ? 2 * low - at : 2 * high - at;
  return o.padding_mode == GridPadding::zeros ? at : std::fmin(std::fmax(at, 0), size - 1);
}

auto plain_samples(GridSampleOptions const& o) {
  return [=](V v) {
    Array const x = v[0], grid = v[1];
    Array const y = doubles(make_shape(x.shape()[0], x.shape()[1], grid.shape()[1], grid.shape()[2]));
    for_indices(y.shape(), [&](index_t const* i) {
      index_t g[max_rank] = {i[0], i[2], i[3], 0};
      double const column = place_of(value_at(grid, g), x.shape()[3], o);
      g[3] = 1;
      double const row = place_of(value_at(grid, g), x.shape()[2], o);
      // A tent, or a box, over all elements.
      for (index_t a = 0; a < x.shape()[2]; ++a)
        for (index_t b = 0; b < x.shape()[3]; ++b) {
          auto const weight = [&](double at, index_t k) {
            double const d = std::fabs(at - static_cast<double>(k));
            if (o.mode == GridMode::nearest) return std::nearbyint(at) == static_cast<double>(k) ? 1.0 : 0.0;
            return std::fmax(0, 1 - d);
          };
          index_t const j[max_rank] = {i[0], i[1], a, b};
          cell(y, i) += weight(row, a) * weight(column, b) * value_at(x, j);
        }
    });
    return y;
  };
}

// The four nearest rows and columns, each taken from where the padding has it.
auto plain_cubic(GridSampleOptions const& o) {
  return [=](V v) {
    Array const x = v[0], grid = v[1];
    Array const y = doubles(make_shape(x.shape()[0], x.shape()[1], grid.shape()[1], grid.shape()[2]));
    auto const weight = [](double d) {
      d = std::fabs(d);
      if (d <= 1) return 1.25 * d * d * d - 2.25 * d * d + 1;
      return d < 2 ? -0.75 * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
    };
    // The element that a whole number names, or -1; place_of takes what lies between -1 and 1.
    auto const element = [&](double k, index_t n) {
      auto const m = static_cast<double>(n);
      double const u = o.align_corners ? 2 * k / (m - 1) - 1 : (2 * k + 1) / m - 1;
      double const at_x = std::nearbyint(place_of(u, n, o));
      return at_x < 0 || at_x >= m ? index_t{-1} : static_cast<index_t>(at_x);
    };
    for_indices(y.shape(), [&](index_t const* i) {
      index_t g[max_rank] = {i[0], i[2], i[3], 0};
      GridSampleOptions plain = o;
      plain.padding_mode = GridPadding::zeros;
      double const column = place_of(value_at(grid, g), x.shape()[3], plain);
      g[3] = 1;
      double const row = place_of(value_at(grid, g), x.shape()[2], plain);
      for (int a = -1; a <= 2; ++a)
        for (int b = -1; b <= 2; ++b) {
          double const r = std::floor(row) + a, c = std::floor(column) + b;
          index_t const j[max_rank] = {i[0], i[1], element(r, x.shape()[2]), element(c, x.shape()[3])};
          if (j[2] >= 0 && j[3] >= 0) cell(y, i) += weight(row - r) * weight(column - c) * value_at(x, j);
        }
    });
    return y;
  };
}

}  // namespace

TEST_CASE("images interpolated across many columns are those interpolated along rows", "[ops]") {
  using enum InterpolateMode;
  Array const x = drawn({2, 1, 23, 300}, 4), turned = transpose(x).contiguous();
  for (InterpolateMode const mode : {nearest, nearest_exact, bilinear, bicubic, area})
    for (index_t const n : {7, 23, 60}) {
      INFO(static_cast<int>(mode) << " " << n);
      Array const y = interpolate(x, {.size = {n, 300}, .mode = mode}),
                  z = interpolate(turned, {.size = {300, n}, .mode = mode});
      CHECK(allclose(y, transpose(z), 1e-6, 1e-7));
    }
}

TEST_CASE("grid_sample", "[ops]") {
  Array const x = drawn({2, 2, 3, 4}, 1);
  // Some places lie far outside; multiples of 1/32 are exact in all dtypes but bf16, none is on an element.
  Array const grid = from<double>({-0.90625, -0.71875, 0.28125, 0.59375, 1.21875, -1.34375, 2.84375, -3.15625,
                                   0.03125, 0.96875, -5.46875, 0.40625},
                                  {2, 1, 3, 2});
  for (bool align : {false, true})
    for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection}) {
      GridSampleOptions const o{GridMode::bilinear, padding, align};
      INFO("padding " << static_cast<int>(padding) << ", align " << align);
      check_op(
          "grid_sample", [&](V v) { return grid_sample(v[0], v[1], o); }, plain_samples(o), {x, grid}, false,
          true);
      GridSampleOptions const cubic{GridMode::bicubic, padding, align};
      check_op(
          "bicubic grid_sample", [&](V v) { return grid_sample(v[0], v[1], cubic); }, plain_cubic(cubic),
          {x, grid}, false, true);
      GridSampleOptions const nearest{GridMode::nearest, padding, align};
      std::vector<Array> const both = {x, grid};
      require_close(grid_sample(x, grid, nearest), plain_samples(nearest)(both), {1e-12, 1e-12});
      CHECK(testing::gradcheck([&](V v) { return grid_sample(v[0], grid, nearest); }, {x}));
      CHECK(testing::gradcheck([&](V v) { return grid_sample(v[0], v[1], o); }, {x, grid}));
    }
  // The corners themselves; an axis of one element; places that are no numbers.
  Array const corners = from<double>({-1, -1, 1, 1, -1, 1, 1, -1}, {1, 2, 2, 2});
  Array const one = slice_axis(x, 0, 0, 1);
  Array const seen = grid_sample(one, corners, {.align_corners = true});
  for (auto const& [place, element] : {std::pair{4, 12}, {5, 23}, {6, 20}, {7, 15}})
    CHECK(suite::at(seen, place) == suite::at(x, element));
  // Where the border begins a place has no gradient any more, at either end.
  Array places = from<double>({-1, 0, 1, 0, 0, -1, 0, 1, 0.25, 0.25}, {1, 1, 5, 2});
  places.requires_grad(true);
  sum(grid_sample(one, places, {GridMode::bilinear, GridPadding::border, true})).backward();
  for (int k : {0, 2, 5, 7}) CHECK(suite::at(places.grad(), k) == 0);
  for (int k : {1, 3, 4, 6, 8, 9}) CHECK(suite::at(places.grad(), k) != 0);
  CHECK(array_equal(grid_sample(ones({1, 1, 1, 1}), full({1, 1, 1, 2}, 7),
                                {GridMode::bilinear, GridPadding::reflection, true}),
                    ones({1, 1, 1, 1})));
  CHECK(array_equal(grid_sample(ones({1, 1, 2, 2}), full({1, 1, 1, 2}, NAN)), zeros({1, 1, 1, 1})));
  CHECK_THROWS_WITH(
      grid_sample(zeros({1, 2, 3}), zeros({1, 4, 4, 2})),
      "grid_sample: images [N, C, Y, X] and places [N, P, Q, 2] required, got [1, 2, 3] and [1, 4, 4, 2]");
  CHECK_THROWS_WITH(grid_sample(x, zeros({2, 4, 4, 2})),
                    "grid_sample: one floating dtype required, got f64 and f32");
  CHECK_THROWS_WITH(grid_sample(zeros({1, 1, 0, 2}), zeros({1, 4, 4, 2})),
                    "grid_sample: axis 2 of [1, 1, 0, 2] is empty or has no fixed extent");
}

TEST_CASE("grid_sample and its gradients are libtorch's", "[ops]") {
  // By mode, padding and alignment: the values, and gradients with respect to image and grid, each times the cosines of
  // 0, 0.7, 1.4, ... (libtorch 2.11, f64).
  constexpr double known[][3] = {
      {0.924653094576, 0.166478881022, 1.8253245474},
      {2.12175276298, 0.0551119613552, -0.752962807267},
      {3.97584830853, -0.161535024905, 2.02846206104},
      {3.5656922991, -0.12529041216, 0.702651244471},
      {4.34170235812, 0.299312225093, 0.38989896598},
      {3.76375794315, 0.298021491548, -2.05475485967},
      {0.718062077525, 0.399468352982, 0},
      {2.74702859775, 0.536469681001, 0},
      {4.10266375946, 0.455649656911, 0},
      {3.62891390237, 0.278593550235, 0},
      {5.05396519768, 1.0954061108, 0},
      {4.58021534059, 0.918350004122, 0},
      {1.15623341637, 0.102068100295, 0.52321903084},
      {2.74975033587, 0.128135943011, -0.687280713266},
      {4.33266343487, -0.0851829912144, 2.50331070748},
      {3.97547876237, 0.031686463763, 1.27372465656},
      {4.91037344257, 0.309911901104, 0.966201680011},
      {4.53024899041, 0.464209237536, -0.630321632867},
  };
  Array const image = sin(arange(24, DType::f64) * 1.7 + 0.3).view(make_shape(1, 2, 3, 4));
  Array const grid = from<double>(
      {-1.3, 0.2, -0.97, -1.08, 0.31, 0.45, 0.83, 1.21, 1000.1, 0.1, 4.3, -3.7, -0.12, 0.66}, {1, 1, 7, 2});
  auto const sum_of = [](Array const& y) {
    return sum(flatten(y) * cos(arange(y.size(), DType::f64) * 0.7)).item<double>();
  };
  auto const* want = known;
  for (GridMode const mode : {GridMode::bilinear, GridMode::nearest, GridMode::bicubic})
    for (GridPadding const padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (bool const align : {false, true}) {
        CAPTURE(static_cast<int>(mode), static_cast<int>(padding), align);
        Array x = image.detach(), places = grid.detach();
        x.requires_grad(true), places.requires_grad(true);
        Array const y = grid_sample(x, places, {mode, padding, align});
        Array ct(y.meta());
        for (index_t i = 0; i < y.size(); ++i) ct.data<double>()[i] = 0.25 * static_cast<double>(i % 7 - 3);
        sum(y * ct).backward();
        CHECK(std::fabs(sum_of(y.detach()) - (*want)[0]) < 1e-9);
        CHECK(std::fabs(sum_of(x.grad()) - (*want)[1]) < 1e-9);
        if (mode != GridMode::nearest) CHECK(std::fabs(sum_of(places.grad()) - (*want)[2]) < 1e-9);
        CHECK(array_equal(y.detach(), grid_sample(image, grid, {mode, padding, align})));
        ++want;
      }
}

TEST_CASE("grid_sample looks nowhere but at its images", "[ops]") {
  constexpr double inf = HUGE_VAL, much = 1e38;
  Array const wild = from<double>(
      {NAN, 0, inf, -inf, -much, much, 1e9, -1e9, 3e9, 0, NAN, NAN, -1e19, 1e19, 0.5, NAN}, {1, 2, 4, 2});
  for (Shape const& s :
       {make_shape(1, 2, 1, 1), make_shape(1, 3, 5, 1), make_shape(1, 1, 2, 3), make_shape(1, 0, 2, 2)})
    for (GridMode const mode : {GridMode::bilinear, GridMode::nearest, GridMode::bicubic})
      for (GridPadding const padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
        for (bool const align : {false, true})
          for (DType const d : {DType::f32, DType::f64, DType::f16}) {
            Array x = cast_to(ones(s), d), grid = cast_to(wild, d);
            x.requires_grad(true), grid.requires_grad(true);
            Array const y = grid_sample(x, grid, {mode, padding, align});
            sum(y).backward();
            // Beyond the ends there is nothing (of a single element, aligned, all finite places are); else 1.
            bool const all_on_it = align && (s[2] == 1 || s[3] == 1);
            if (padding == GridPadding::zeros && !all_on_it)
              CHECK(array_equal(y.detach(), zeros_like(y.detach())));
            else if (padding != GridPadding::zeros && mode != GridMode::bicubic)
              CHECK(array_equal(y.detach(), ones_like(y.detach())));
          }
  // What is beyond the ends takes no part, whatever the element beside it is; what has no weight but is there does.
  Array const image = from<double>({inf, NAN, 2, 1}, {1, 1, 1, 4});
  Array const places = from<double>({-1.1, 0, -1.5, 0, 1.1, 0, 0.25, 0, -0.75, 0, -2, 0}, {1, 1, 6, 2});
  Array const seen = grid_sample(image, places);
  CHECK(suite::at(seen, 0) == inf);
  CHECK(std::isnan(suite::at(seen, 4)));
  CHECK(suite::at(seen, 5) == 0);
  CHECK(std::fabs(suite::at(seen, 2) - 0.3) < 1e-12);
  CHECK(suite::at(seen, 3) == 2);
  // None at all.
  for (auto const& [x, grid] : {std::pair{zeros({0, 2, 3, 4}), zeros({0, 5, 6, 2})},
                                std::pair{zeros({2, 2, 3, 4}), zeros({2, 0, 6, 2})},
                                std::pair{zeros({2, 0, 3, 4}), zeros({2, 5, 6, 2})}}) {
    Array a = x.detach(), b = grid.detach();
    a.requires_grad(true), b.requires_grad(true);
    Array const y = grid_sample(a, b);
    sum(y).backward();
    CHECK(y.shape() == make_shape(x.shape()[0], x.shape()[1], grid.shape()[1], grid.shape()[2]));
    CHECK(array_equal(a.grad(), zeros_like(x)));
    CHECK(array_equal(b.grad(), zeros_like(grid)));
  }
}

TEST_CASE("grid_sample of operands with any strides, and of many channels", "[ops]") {
  Array const x = drawn({2, 5, 9, 37}, 1), grid = drawn({2, 2, 13, 11}, 2);
  for (GridMode const mode : {GridMode::bilinear, GridMode::nearest, GridMode::bicubic}) {
    GridSampleOptions const o{mode, GridPadding::zeros, false};
    Array const channels_last = transpose(x, 1, 3), places = movedim(grid, 1, 3);
    CHECK(array_equal(grid_sample(channels_last, places, o),
                      grid_sample(channels_last.contiguous(), places.contiguous(), o)));
    // A channel at a time.
    Array const all = grid_sample(channels_last, places, o);
    for (index_t c : {0, 15, 16, 36})
      CHECK(
          array_equal(slice_axis(all, 1, c, 1), grid_sample(slice_axis(channels_last, 1, c, 1), places, o)));
  }
}

}  // namespace tests::ops_interpolate
