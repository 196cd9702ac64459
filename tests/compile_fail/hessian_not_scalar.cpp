// SPDX-License-Identifier: BSL-1.0
// error: grad: the function must return a scalar, got \[3\]
// error[clang]: grad: the function must return .*a scalar, got \[3\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
constexpr auto f = [](Tensor<float, 3> const& x) { return x * x; };
#else
constexpr auto f = [](Tensor<float, 3> const& x) { return sum(x * x * x); };
#endif
auto run(Tensor<float, 3> const& x) { return hessian(f)(x); }
