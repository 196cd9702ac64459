// SPDX-License-Identifier: BSL-1.0
// Compiled programs of functions of windows and of images: convolutions, pooling, interpolation.
#include "ops/compiled.hpp"

#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/pool.hpp>

namespace tests::ops_compiled_windows {

namespace {

using namespace compiled;

constexpr auto convolutions = [](auto const& x, auto const& w, auto const& b) {
  auto const y = conv2d<ConvOptions{.stride = {2, 1}, .padding = 1}>(x * 2.0, w, b);
  auto const z =
      conv2d<ConvOptions{.padding = "same", .dilation = 2, .groups = 2}>(tanh(x), slice<1, 0, 1>(w));
  return std::tuple(
      relu(y) * y, conv_transpose2d<ConvTransposeOptions{.stride = 2, .output_padding = {0, 1}}>(y, w), z,
      conv1d(select<2, 0>(x), select<2, 1>(w), b), conv_transpose1d(select<2, 0>(y), select<3, 0>(w)));
};
constexpr auto pools = [](auto const& x) {
  auto const [values, places] =
      max_pool2d_with_indices<MaxPoolOptions{.kernel = 2, .ceil_mode = true}>(x * 2.0);
  return std::tuple(values, cast<double>(places) * 0.0, max_pool1d<MaxPoolOptions{3, 1, 1}>(select<2, 0>(x)),
                    avg_pool2d<AvgPoolOptions{{3, 2}, 2, 1, true, false}>(tanh(x)),
                    avg_pool1d<AvgPoolOptions{.kernel = 2, .divisor_override = 3}>(select<2, 1>(x)),
                    max_pool3d<MaxPoolOptions{2}>(x), avg_pool3d<AvgPoolOptions{2}>(x),
                    lp_pool2d<LpPoolOptions{2}>(x, 2), lp_pool1d<LpPoolOptions{2}>(select<2, 1>(x * x), 3),
                    adaptive_avg_pool2d<2, 3>(x), adaptive_max_pool2d<3, 2>(x) * 2.0,
                    adaptive_avg_pool1d<2>(select<2, 2>(x)), adaptive_max_pool1d<3>(select<3, 1>(x)));
};
constexpr auto images = [](auto const& x, auto const& grid) {
  using enum InterpolateMode;
  constexpr GridSampleOptions mirrored{.padding_mode = GridPadding::reflection, .align_corners = true};
  return std::tuple(
      interpolate<InterpolateOptions{.size = {5, 7}}>(x * 2.0),
      interpolate<InterpolateOptions{.scale_factor = {1.5, 0.5}, .mode = bilinear}>(x),
      interpolate<InterpolateOptions{.size = 6, .mode = bicubic, .align_corners = true}>(tanh(x)),
      interpolate<InterpolateOptions{.scale_factor = 2, .mode = linear}>(select<2, 0>(x)),
      grid_sample(x, grid * 0.5), grid_sample<mirrored>(x, grid),
      grid_sample<GridSampleOptions{.mode = GridMode::nearest}>(x, grid));
};
constexpr auto cubic_images = [](auto const& x, auto const& grid) {
  constexpr GridSampleOptions cubic{.mode = GridMode::bicubic, .padding_mode = GridPadding::border};
  return std::tuple(grid_sample<cubic>(x * 2.0, grid), x);
};

}  // namespace

TEST_CASE("compiled convolutions", "[ops]") {
  check(convolutions, uniform<float, 2, 2, 5, 4>(Key{1}, -1, 1), uniform<float, 4, 2, 3, 3>(Key{2}, -1, 1),
        uniform<float, 4>(Key{3}, -1, 1));
  check_vjp(convolutions, uniform<double, 2, 2, 5, 4>(Key{1}, -1, 1),
            uniform<double, 4, 2, 3, 3>(Key{2}, -1, 1), uniform<double, 4>(Key{3}, -1, 1));
}

TEST_CASE("compiled convolutions with extents known when they are called", "[ops]") {
  using Images = Tensor<double, dyn, 2, dyn, 4>;
  auto const w = uniform<double, 3, 2, 3, 3>(Key{2}, -1, 1);
  constexpr auto f = [](auto const& x, auto const& w) { return conv2d<ConvOptions{.padding = 1}>(x, w); };
  auto program = compile(f);
  for (index_t n : {1, 3}) {
    Images const x(uniform({n, 2, n + 2, 4}, Key{9}, -1, 1, DType::f64));
    require_same(leaves(program(x, w)), leaves(f(x, w)), "dyn");
  }
}

TEST_CASE("compiled pooling", "[ops]") {
  check(pools, uniform<float, 2, 2, 5, 4>(Key{1}, -1, 1));
  check_vjp(pools, uniform<double, 2, 2, 5, 4>(Key{1}, -1, 1));
}

TEST_CASE("compiled interpolation", "[ops]") {
  check(images, uniform<float, 2, 2, 3, 4>(Key{1}, -1, 1), uniform<float, 2, 2, 3, 2>(Key{2}, -3, 3));
  auto const x = uniform<double, 2, 2, 3, 4>(Key{1}, -1, 1);
  auto const grid = uniform<double, 2, 2, 3, 2>(Key{2}, -3, 3);
  check_vjp(images, x, grid);
  check_vjp(cubic_images, x, grid * 0.25);
}

}  // namespace tests::ops_compiled_windows
