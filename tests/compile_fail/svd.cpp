// SPDX-License-Identifier: BSL-1.0
// Singular values are those of matrices, not of integers.
// error: svd: floating dtype required, got i32
// error[clang]: svd: floating dtype required, .*got i32
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
using T = std::int32_t;
#else
using T = float;
#endif

auto factors(Tensor<T, 3, 2> const& a) { return svd(a); }
