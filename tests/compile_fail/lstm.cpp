// SPDX-License-Identifier: BSL-1.0
// Weights of another layer, though there are three results and two are used.
// error: lstm: w_ih of shape \[20, 4\] required, got \[15, 4\]
// error[clang]: lstm: w_ih of shape \[20, 4\] .*required, got \[15, 4\]
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr std::size_t rows = 15;
#else
constexpr std::size_t rows = 20;
#endif

auto total(Tensor<float, 3, 2, 4> const& x, Tensor<float, 2, 5> const& h, Tensor<float, rows, 4> const& w_ih,
           Tensor<float, 20, 5> const& w_hh, Tensor<float, 20> const& b) {
  auto const [y, h_last, c_last] = lstm(x, h, h, w_ih, w_hh, b, b);
  return sum(y) + sum(c_last);
}
