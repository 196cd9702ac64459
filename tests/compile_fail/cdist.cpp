// SPDX-License-Identifier: BSL-1.0
// Points of different sizes have no distances.
// error: cdist: points \[3, 2\] do not fit points \[4, 5\]
// error[clang]: cdist: points \[3, 2\] do not .*fit points \[4, 5\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr std::size_t size = 5;
#else
constexpr std::size_t size = 2;
#endif

auto distances(Tensor<float, 3, 2> const& a, Tensor<float, 4, size> const& b) { return cdist(a, b); }
