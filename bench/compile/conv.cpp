// SPDX-License-Identifier: BSL-1.0
// One convolution: compiled for its shapes; with -DEAGER called on its own, which may also be recorded on the tape.
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr auto f = [](auto const& x, auto const& w) { return conv2d<ConvOptions{.padding = 1}>(x, w); };

int main() {
  auto const x = ones<float, 4, 8, 16, 16>();
  auto const w = ones<float, 8, 8, 3, 3>();
#ifdef EAGER
  auto const y = f(x, w);
#else
  auto const y = compile(f)(x, w);
#endif
  std::printf("%g\n", static_cast<double>(y.data()[0]));
}
