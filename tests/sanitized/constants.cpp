// SPDX-License-Identifier: BSL-1.0
// What compilers evaluate of programs, compiled with -fsanitize=undefined and never run: g++ takes no comparison of an
// address with null for a constant then.
#include <dfdx/dfdx.hpp>

using namespace dfdx;

namespace {

// Forward mode asks each op for its rule, as jacobian does before it chooses a mode.
constexpr auto wave = [](auto const& x, auto const& y) { return sin(matmul(x, y)); };
// Kernels for floats alone; of attention of long sequences one step for two ops.
constexpr auto attention = [](auto const& q, auto const& k, auto const& v) {
  return sum(square(scaled_dot_product_attention(q, k, v)));
};
constexpr auto filtered = [](auto const& x, auto const& w) {
  return sum(square(conv2d<ConvOptions{}>(x, w)));
};

}  // namespace

int main() {
  Tensor<float, 2, 3> const x;
  Tensor<float, 3> const y;
  (void)jvp(wave)(x, y, x, y);
  (void)jacobian(wave)(x, y);
  Tensor<float, 1, 150, 16> const q;
  (void)grad(attention, Wrt<0, 1, 2>{})(q, q, q);
  Tensor<float, 1, 1, 8, 8> const image;
  Tensor<float, 1, 1, 3, 3> const filter;
  (void)grad(filtered, Wrt<0, 1>{})(image, filter);
}
