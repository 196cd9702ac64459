// SPDX-License-Identifier: BSL-1.0
// error: vmap: axis 0 of \[4, 3\] must have the extent mapped over, 5
// error[clang]: vmap: axis 0 of \[4, 3\] must .*have the extent mapped over, 5
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr auto product = [](Tensor<float, 3> const& x, Tensor<float, 3> const& y) { return sum(x * y); };
#if DFDX_FAIL
auto run(Tensor<float, 5, 3> const& x, Tensor<float, 4, 3> const& y) { return vmap(product)(x, y); }
#else
auto run(Tensor<float, 5, 3> const& x, Tensor<float, 5, 3> const& y) { return vmap(product)(x, y); }
#endif
