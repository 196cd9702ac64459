// SPDX-License-Identifier: BSL-1.0
// Pooling as modules without parameters, for Sequential. Elsewhere call max_pool2d, avg_pool2d, ... directly.
#pragma once

#include <dfdx/nn/activation.hpp>
#include <dfdx/vocabulary/pool.hpp>

namespace dfdx::nn {

/// MaxPool1d - the largest element of each window; windows lie side by side unless a stride is given.
///
/// Math      that of max_pool1d
/// Shapes    x: [B, C, X] -> y: [B, C, P]
/// Dtypes    all but bool
/// Errors    those of max_pool1d
/// Source    torch.nn.MaxPool1d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0},
          Extents Dilation = Extents{1}, bool CeilMode = false>
struct MaxPool1d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const {
    return max_pool1d<MaxPoolOptions{Kernel, Stride, Padding, Dilation, CeilMode}>(x);
  }
};

/// MaxPool2d - the largest element of each window: MaxPool2d<2>, MaxPool2d<3, 2, 1>, MaxPool2d<Extents{3, 2}>.
///
/// Math      that of max_pool2d
/// Shapes    x: [B, C, Y, X] -> y: [B, C, P, Q]
/// Dtypes    all but bool
/// Errors    "max_pool2d: windows do not fit axis 2 of [2, 3, 2, 9]"
/// Source    torch.nn.MaxPool2d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0},
          Extents Dilation = Extents{1}, bool CeilMode = false>
struct MaxPool2d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const {
    return max_pool2d<MaxPoolOptions{Kernel, Stride, Padding, Dilation, CeilMode}>(x);
  }
};

/// MaxPool3d - the largest element of each window of a volume.
///
/// Math      that of max_pool3d
/// Shapes    x: [B, C, Z, Y, X] -> y: [B, C, O, P, Q]
/// Dtypes    all but bool
/// Errors    those of max_pool3d
/// Source    torch.nn.MaxPool3d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0},
          Extents Dilation = Extents{1}, bool CeilMode = false>
struct MaxPool3d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const {
    return max_pool3d<MaxPoolOptions{Kernel, Stride, Padding, Dilation, CeilMode}>(x);
  }
};

/// AvgPool1d - the mean of each window.
///
/// Math      that of avg_pool1d
/// Shapes    x: [B, C, X] -> y: [B, C, P]
/// Dtypes    floating
/// Errors    those of avg_pool1d
/// Source    torch.nn.AvgPool1d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, bool CeilMode = false,
          bool CountIncludePad = true>
struct AvgPool1d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const {
    return avg_pool1d<AvgPoolOptions{Kernel, Stride, Padding, CeilMode, CountIncludePad}>(x);
  }
};

/// AvgPool2d - the mean of each window.
///
/// Math      that of avg_pool2d
/// Shapes    x: [B, C, Y, X] -> y: [B, C, P, Q]
/// Dtypes    floating
/// Errors    "avg_pool2d: windows do not fit axis 2 of [2, 3, 2, 9]"
/// Source    torch.nn.AvgPool2d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, bool CeilMode = false,
          bool CountIncludePad = true, index_t DivisorOverride = 0>
struct AvgPool2d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const {
    return avg_pool2d<AvgPoolOptions{Kernel, Stride, Padding, CeilMode, CountIncludePad, DivisorOverride}>(x);
  }
};

/// AvgPool3d - the mean of each window of a volume.
///
/// Math      that of avg_pool3d
/// Shapes    x: [B, C, Z, Y, X] -> y: [B, C, O, P, Q]
/// Dtypes    floating
/// Errors    those of avg_pool3d
/// Source    torch.nn.AvgPool3d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, bool CeilMode = false,
          bool CountIncludePad = true, index_t DivisorOverride = 0>
struct AvgPool3d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const {
    return avg_pool3d<AvgPoolOptions{Kernel, Stride, Padding, CeilMode, CountIncludePad, DivisorOverride}>(x);
  }
};

/// AdaptiveAvgPool1d - means of parts of nearly equal size.
///
/// Math      that of adaptive_avg_pool1d
/// Shapes    x: [B, C, X] -> y: [B, C, P]
/// Dtypes    floating
/// Errors    those of adaptive_avg_pool1d
/// Source    torch.nn.AdaptiveAvgPool1d
template <index_t Size>
struct AdaptiveAvgPool1d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return adaptive_avg_pool1d<Size>(x); }
};

/// AdaptiveMaxPool1d - the largest of each of P parts of nearly equal size.
///
/// Math      that of adaptive_max_pool1d
/// Shapes    x: [B, C, X] -> y: [B, C, P]
/// Dtypes    all but bool
/// Errors    those of adaptive_max_pool1d
/// Source    torch.nn.AdaptiveMaxPool1d
template <index_t Size>
struct AdaptiveMaxPool1d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return adaptive_max_pool1d<Size>(x); }
};

/// AdaptiveMaxPool2d - the largest of each of P x Q parts of nearly equal size.
///
/// Math      that of adaptive_max_pool2d
/// Shapes    x: [B, C, Y, X] -> y: [B, C, P, Q]
/// Dtypes    all but bool
/// Errors    those of adaptive_max_pool2d
/// Source    torch.nn.AdaptiveMaxPool2d
template <index_t... Sizes>
struct AdaptiveMaxPool2d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return adaptive_max_pool2d<Sizes...>(x); }
};

/// AdaptiveAvgPool2d - means of P x Q parts of nearly equal size; AdaptiveAvgPool2d<1> for one mean of all.
///
/// Math      that of adaptive_avg_pool2d
/// Shapes    x: [B, C, Y, X] -> y: [B, C, P, Q]
/// Dtypes    floating
/// Errors    those of adaptive_avg_pool2d
/// Source    torch.nn.AdaptiveAvgPool2d
template <index_t... Sizes>
struct AdaptiveAvgPool2d {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return adaptive_avg_pool2d<Sizes...>(x); }
};

}  // namespace dfdx::nn
