// SPDX-License-Identifier: BSL-1.0
// error: program: the function returned a std::vector: return a std::array or a tuple
// max-lines: 20
#include <dfdx/dfdx.hpp>

using namespace dfdx;

auto twice(Tensor<float, 8, 5> const& x) {
  return compile([](Tensor<float, 8, 5> const& v) {
#if DFDX_FAIL
    return std::vector{v, v + v};
#else
    return std::array{v, v + v};
#endif
  })(x);
}
