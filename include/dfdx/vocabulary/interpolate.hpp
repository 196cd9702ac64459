// SPDX-License-Identifier: BSL-1.0
// Images at other places than their elements: interpolate makes a grid of another size, grid_sample looks where it
// is told.
#pragma once

#include <dfdx/ops/resample.hpp>
#include <dfdx/vocabulary/grid_rules.hpp>
#include <dfdx/vocabulary/windows.hpp>

namespace dfdx {

enum class InterpolateMode { nearest, nearest_exact, linear, bilinear, bicubic, trilinear, area };

/// Scales - factors of extents: one for all axes or one for each.
struct Scales {
  int n = 0;
  double v[3] = {};
  constexpr Scales() = default;
  template <class... D>
    requires(sizeof...(D) >= 1 && sizeof...(D) <= 3 && (std::is_arithmetic_v<D> && ...))
  constexpr Scales(D... each) : n(sizeof...(D)), v{static_cast<double>(each)...} {}
};

/// InterpolateOptions - the extents wanted, or by what factors they grow. With align_corners the corners of both
/// grids are the middles of their outermost elements, else those elements' outer edges.
struct InterpolateOptions {
  Extents size{};
  Scales scale_factor{};
  InterpolateMode mode = InterpolateMode::nearest;
  bool align_corners = false;
};

namespace detail {

struct Interpolate {
  InterpolateOptions o;

  template <int = 0>
  constexpr Meta infer(Meta const* in, Text* why) const {
    constexpr char const* names[] = {"nearest", "nearest_exact", "linear", "bilinear",
                                     "bicubic", "trilinear",     "area"};
    Shape const& x = in->shape;
    int const n = x.rank - 2;
    auto const* const mode = names[static_cast<int>(o.mode)];
    if (n < 1 || n > 3 || (axes_of_mode() != 0 && axes_of_mode() != n))
      return refuse(why, "interpolate: ", mode, " does not take input ", x);
    bool const elements = op::detail::takes_elements(sampling());
    if (elements ? in->dtype == DType::boolean : !is_floating(in->dtype))
      return refuse(why, "interpolate: ", elements ? "numeric" : "floating", " dtype required, got ",
                    in->dtype);
    if (o.align_corners && axes_of_mode() == 0)
      return refuse(why, "interpolate: ", mode, " does not align corners");
    bool const sized = o.size.shape.rank != 0;
    if (sized == (o.scale_factor.n != 0) || (sized ? !for_axes(o.size, n, 1) : !scales_fit(n)))
      return refuse(why, "interpolate: a size or a scale factor for ", n, " axes required, and not both");
    Meta y = *in;
    for (int i = 0; i < n; ++i) {
      if (x[2 + i] < 0) return refuse(why, "interpolate: axis ", 2 + i, " of ", x, " has no fixed extent");
      y.shape[2 + i] =
          sized ? for_axis(o.size, i) : static_cast<index_t>(static_cast<double>(x[2 + i]) * scale(i));
      if (x[2 + i] == 0 || y.shape[2 + i] == 0)
        return refuse(why, "interpolate: axis ", 2 + i, " of ", x, " or of ", y.shape, " is empty");
    }
    return y;
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x) const {
    auto const factor = [&](int axis) { return o.scale_factor.n == 0 ? 0 : scale(axis - 2); };
    auto const stays = [&](int axis) {
      return axis < 2 || (x.shape()[axis] == y.shape[axis] && (factor(axis) == 0 || factor(axis) == 1));
    };
    return resampled<T>(x, y.shape, stays, [&](int axis) {
      return Attrs{{axis, static_cast<index_t>(sampling())}, {factor(axis)}};
    });
  }

 private:
  constexpr double scale(int i) const { return o.scale_factor.v[o.scale_factor.n == 1 ? 0 : i]; }
  constexpr bool scales_fit(int n) const {
    bool ok = o.scale_factor.n == 1 || o.scale_factor.n == n;
    for (int i = 0; ok && i < n; ++i) ok = scale(i) > 0 && scale(i) < static_cast<double>(Window::limit);
    return ok;
  }
  constexpr int axes_of_mode() const {
    switch (o.mode) {
      case InterpolateMode::linear: return 1;
      case InterpolateMode::bilinear:
      case InterpolateMode::bicubic: return 2;
      case InterpolateMode::trilinear: return 3;
      default: return 0;
    }
  }
  constexpr op::Sampling sampling() const {
    using op::Sampling;
    switch (o.mode) {
      case InterpolateMode::nearest: return Sampling::nearest;
      case InterpolateMode::nearest_exact: return Sampling::nearest_exact;
      case InterpolateMode::bicubic: return o.align_corners ? Sampling::cubic_aligned : Sampling::cubic;
      case InterpolateMode::area: return Sampling::mean;
      default: return o.align_corners ? Sampling::linear_aligned : Sampling::linear;
    }
  }
};

struct GridSample {
  GridSampleOptions o;

  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const &x = in[0].shape, &grid = in[1].shape;
    if (x.rank != 4 || grid.rank != 4 || !op::extents_agree(x[0], grid[0]) || grid[3] != 2)
      return refuse(why, "grid_sample: images [N, C, Y, X] and places [N, P, Q, 2] required, got ", x,
                    " and ", grid);
    if (in[0].dtype != in[1].dtype || !is_floating(in[0].dtype))
      return refuse(why, "grid_sample: one floating dtype required, got ", in[0].dtype, " and ", in[1].dtype);
    for (int axis : {2, 3})
      if (x[axis] < 1)
        return refuse(why, "grid_sample: axis ", axis, " of ", x, " is empty or has no fixed extent");
    return Meta{in[0].dtype, make_shape(x[0], x[1], grid[1], grid[2])};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x, V const& grid) const {
    return bind_as<op::grid_sample>(y, Attrs{{op::detail::packed(o)}}, x, grid);
  }
};

}  // namespace detail

/// interpolate<InterpolateOptions{...}>(x), interpolate(x, {.size, .scale_factor, .mode, .align_corners}) - x over a
/// grid of another size.
///
/// Shapes    x: [N, C, S...] -> [N, C, P...]; linear takes one axis S, bilinear and bicubic two, trilinear three,
///           others any
/// Dtypes    floating, of nearest and nearest_exact all but bool; f16 and bf16 in f32
/// Errors    "interpolate: bilinear does not take input [2, 3, 4]"
/// Source    PyTorch's interpolate
template <InterpolateOptions O, operand X>
constexpr auto interpolate(X const& x) {
  return detail::call(detail::Fixed<detail::Interpolate{O}>{}, x);
}
template <operand X>
constexpr auto interpolate(X const& x, InterpolateOptions const& o) {
  return detail::call(detail::Interpolate{o}, x);
}

/// grid_sample<GridSampleOptions{...}>(x, grid), grid_sample(x, grid, {.mode, .padding_mode, .align_corners}) -
/// images at given places: pairs of a column and a row that both run from -1 to 1. With zeros around the
/// images a coordinate that is no number is beyond them.
///
/// Shapes    x: [N, C, Y, X], grid: [N, P, Q, 2] -> [N, C, P, Q]
/// Dtypes    x, grid: one, floating; f16 and bf16 in f32
/// Errors    "grid_sample: images [N, C, Y, X] and places [N, P, Q, 2] required, got [1, 2, 3] and [1, 4, 4, 2]"
/// Source    PyTorch's grid_sample
template <GridSampleOptions O = GridSampleOptions{}, operand X, operand G>
constexpr auto grid_sample(X const& x, G const& grid) {
  return detail::call(detail::Fixed<detail::GridSample{O}>{}, x, grid);
}
template <operand X, operand G>
constexpr auto grid_sample(X const& x, G const& grid, GridSampleOptions const& o) {
  return detail::call(detail::GridSample{o}, x, grid);
}

}  // namespace dfdx
