// SPDX-License-Identifier: BSL-1.0
// Pooling by numbers alone, as it is mostly called: max_pool2d<2>(x) for max_pool2d<MaxPoolOptions{2}>(x).
#pragma once

#include <concepts>

#include <dfdx/vocabulary/pool.hpp>

namespace dfdx {

/// max_pool2d<Kernel, Stride, Padding>(x), max_pool2d(x, kernel, stride, padding) - max_pool2d with these options: the
/// largest of each window, max_pool2d<2>(x), max_pool2d<3, 2, 1>(x), max_pool2d<Extents{3, 2}>(x). Without a stride
/// windows lie side by side. The same of max_pool1d and 3d, avg_pool1d, 2d and 3d.
///
/// Shapes    x: [N, C, Y, X] -> [N, C, P, Q]; N may be missing
/// Dtypes    those of max_pool2d and avg_pool2d
/// Errors    "max_pool2d: windows do not fit axis 2 of [2, 3, 2, 9]"
/// Source    PyTorch's max_pool2d and avg_pool2d
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, operand X>
constexpr auto max_pool1d(X const& x) {
  return max_pool1d<MaxPoolOptions{Kernel, Stride, Padding}>(x);
}
template <operand X, std::integral K>
constexpr auto max_pool1d(X const& x, K kernel, Extents const& stride = {}, Extents const& padding = 0) {
  return max_pool1d(x, MaxPoolOptions{static_cast<index_t>(kernel), stride, padding});
}
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, operand X>
constexpr auto max_pool2d(X const& x) {
  return max_pool2d<MaxPoolOptions{Kernel, Stride, Padding}>(x);
}
template <operand X, std::integral K>
constexpr auto max_pool2d(X const& x, K kernel, Extents const& stride = {}, Extents const& padding = 0) {
  return max_pool2d(x, MaxPoolOptions{static_cast<index_t>(kernel), stride, padding});
}
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, operand X>
constexpr auto max_pool3d(X const& x) {
  return max_pool3d<MaxPoolOptions{Kernel, Stride, Padding}>(x);
}
template <operand X, std::integral K>
constexpr auto max_pool3d(X const& x, K kernel, Extents const& stride = {}, Extents const& padding = 0) {
  return max_pool3d(x, MaxPoolOptions{static_cast<index_t>(kernel), stride, padding});
}
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, operand X>
constexpr auto avg_pool1d(X const& x) {
  return avg_pool1d<AvgPoolOptions{Kernel, Stride, Padding}>(x);
}
template <operand X, std::integral K>
constexpr auto avg_pool1d(X const& x, K kernel, Extents const& stride = {}, Extents const& padding = 0) {
  return avg_pool1d(x, AvgPoolOptions{static_cast<index_t>(kernel), stride, padding});
}
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, operand X>
constexpr auto avg_pool2d(X const& x) {
  return avg_pool2d<AvgPoolOptions{Kernel, Stride, Padding}>(x);
}
template <operand X, std::integral K>
constexpr auto avg_pool2d(X const& x, K kernel, Extents const& stride = {}, Extents const& padding = 0) {
  return avg_pool2d(x, AvgPoolOptions{static_cast<index_t>(kernel), stride, padding});
}
template <Extents Kernel, Extents Stride = Extents{}, Extents Padding = Extents{0}, operand X>
constexpr auto avg_pool3d(X const& x) {
  return avg_pool3d<AvgPoolOptions{Kernel, Stride, Padding}>(x);
}
template <operand X, std::integral K>
constexpr auto avg_pool3d(X const& x, K kernel, Extents const& stride = {}, Extents const& padding = 0) {
  return avg_pool3d(x, AvgPoolOptions{static_cast<index_t>(kernel), stride, padding});
}

}  // namespace dfdx
