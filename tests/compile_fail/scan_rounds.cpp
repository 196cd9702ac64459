// SPDX-License-Identifier: BSL-1.0
// error: a function of the carry alone required; scan\(f, init, arange<float, N>\(\)\) gives it the number
// max-lines: 10
#include <dfdx/dfdx.hpp>

using namespace dfdx;

void run(Tensor<float, 3> const& h) {
#if DFDX_FAIL
  static_cast<void>(scan<8>([](auto const& c, auto const& i) { return c + i; }, h));
#else
  static_cast<void>(scan<8>([](auto const& c) { return c + 1.0f; }, h));
#endif
}
