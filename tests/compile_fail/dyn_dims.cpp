// SPDX-License-Identifier: BSL-1.0
// error: raise
// shows: program: more than 5 dyn dims in its arguments
// max-lines: 34
#include <dfdx/dfdx.hpp>

using namespace dfdx;

constexpr auto sums = [](auto const& x, auto const& y) { return sum(x) + sum(y); };

#if DFDX_FAIL
using Cube = Tensor<float, dyn, dyn, dyn>;
#else
using Cube = Tensor<float, dyn, dyn, 4>;
#endif
auto both(Cube const& x, Cube const& y) { return compile(sums)(x, y); }
