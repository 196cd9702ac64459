// SPDX-License-Identifier: BSL-1.0
// error: scan: the carry becomes f32 \[6\], it was f32 \[3\]
// error[clang]: scan: the carry becomes f32 .*\[6\], it was f32 \[3\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

auto run(Tensor<float, 3> const& h, Tensor<float, 4, 3> const& xs) {
#if DFDX_FAIL
  return scan([](auto const& c, auto const& x) { return concat<0>(c, x); }, h, xs);
#else
  return scan([](auto const& c, auto const& x) { return c + x; }, h, xs);
#endif
}
