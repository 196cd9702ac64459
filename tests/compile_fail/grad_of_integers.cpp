// SPDX-License-Identifier: BSL-1.0
// error: grad: floating arguments required, got i32
// error[clang]: grad: floating arguments .*required, got i32
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
using X = Tensor<std::int32_t, 3>;
#else
using X = Tensor<double, 3>;
#endif
constexpr auto f = [](X const& x) { return sum(x * 1.5); };

auto slope(X const& x) { return grad(f)(x); }
