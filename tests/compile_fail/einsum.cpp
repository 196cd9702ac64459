// SPDX-License-Identifier: BSL-1.0
// error: einsum: one axis of extents 3 and 5
// error[clang]: einsum: one axis of extents 3 .*and 5
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto product(Tensor<float, 4, 3> const& x, Tensor<float, 5, 2> const& y) { return einsum<"ij,jk->ik">(x, y); }
#else
auto product(Tensor<float, 4, 3> const& x, Tensor<float, 3, 2> const& y) { return einsum<"ij,jk->ik">(x, y); }
#endif
