// SPDX-License-Identifier: BSL-1.0
// error: scaled_dot_product_attention: \[2, 4, 8, 8\], \[2, 3, 6, 8\] and \[2, 3, 6, 8\] do not fit
// error[clang]: scaled_dot_product_attention: .*\[2, 4, 8, 8\].*\[2, 3, 6, 8\].* do not fit
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr std::size_t heads = 3;
#else
constexpr std::size_t heads = 2;
#endif

auto attend(Tensor<float, 2, 4, 8, 8> const& q, Tensor<float, 2, heads, 6, 8> const& k) {
  return sum(scaled_dot_product_attention(q, k, k, {.causal = true}));
}
