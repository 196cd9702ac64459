// SPDX-License-Identifier: BSL-1.0
// error: exp: floating dtype required, got i32
// error[clang]: exp: floating dtype required, .*got i32
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto grow(Tensor<std::int32_t, 3> const& x) { return exp(x); }
#else
auto grow(Tensor<float, 3> const& x) { return exp(x); }
#endif
