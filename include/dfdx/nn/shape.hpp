// SPDX-License-Identifier: BSL-1.0
// Modules without parameters that arrange, for Sequential: nn::Flatten, nn::Unflatten, nn::PixelShuffle,
// nn::PixelUnshuffle, nn::Upsample. Elsewhere call flatten, interpolate, ... directly.
#pragma once

#include <dfdx/nn/activation.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/parts.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace dfdx::nn {

/// Flatten - the axes from Start to End as one.
///
/// Math      that of flatten
/// Shapes    x: [B, S...] -> y: [B, product of S]
/// Dtypes    all
/// Errors    those of flatten
/// Source    torch.nn.Flatten
template <int Start = 1, int End = -1>
struct Flatten {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return flatten<Start, End>(x); }
};

/// Unflatten - one axis as several.
///
/// Math      that of unflatten
/// Shapes    x: [..., product of Sizes, ...] -> y: [..., Sizes..., ...]
/// Dtypes    all
/// Errors    those of unflatten
/// Source    torch.nn.Unflatten
template <int Axis, index_t... Sizes>
struct Unflatten {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return unflatten<Axis, Sizes...>(x); }
};

/// PixelShuffle - channels become pixels: an image R times as high and as wide.
///
/// Math      that of pixel_shuffle
/// Shapes    x: [..., C R^2, Y, X] -> y: [..., C, Y R, X R]
/// Dtypes    all
/// Errors    those of pixel_shuffle
/// Source    Shi et al., CVPR 2016; torch.nn.PixelShuffle
template <index_t R>
struct PixelShuffle {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return pixel_shuffle<R>(x); }
};

/// PixelUnshuffle - pixels become channels.
///
/// Math      that of pixel_unshuffle
/// Shapes    x: [..., C, Y R, X R] -> y: [..., C R^2, Y, X]
/// Dtypes    all
/// Errors    those of pixel_unshuffle
/// Source    torch.nn.PixelUnshuffle
template <index_t R>
struct PixelUnshuffle {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return pixel_unshuffle<R>(x); }
};

/// Upsample - x over a finer grid: Upsample<InterpolateOptions{.scale_factor = 2}>.
///
/// Math      that of interpolate
/// Shapes    x: [N, C, S...] -> y: [N, C, P...]
/// Dtypes    floating
/// Errors    those of interpolate
/// Source    torch.nn.Upsample
template <InterpolateOptions O>
struct Upsample {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return interpolate<O>(x); }
};

}  // namespace dfdx::nn
