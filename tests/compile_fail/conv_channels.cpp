// SPDX-License-Identifier: BSL-1.0
// Channels that do not fit are found by the compiler, options and all.
// error: conv2d: input \[2, 4, 9, 9\] does not fit weight \[8, 3, 3, 3\], groups = 1
// error[clang]: conv2d: input \[2, 4, 9, 9\] .*does not fit weight
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr std::size_t channels = 4;
#else
constexpr std::size_t channels = 3;
#endif

auto layer(Tensor<float, 2, channels, 9, 9> const& x, Tensor<float, 8, 3, 3, 3> const& w,
           Tensor<float, 8> const& b) {
  return conv2d<ConvOptions{.stride = 2, .padding = {1, 1}}>(x, w, b);
}
