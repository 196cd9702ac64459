// SPDX-License-Identifier: BSL-1.0
// error: layer_norm: \[6\] are not the last axes of \[4, 5\]
// error[clang]: layer_norm: \[6\] are not the .*last axes of \[4, 5\]
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr std::size_t size = 6;
#else
constexpr std::size_t size = 5;
#endif

auto normalized(Tensor<float, 4, 5> const& x, Tensor<float, size> const& w) {
  return sum(layer_norm(x, w, w));
}
