// SPDX-License-Identifier: BSL-1.0
// error: deleted
// shows: select<0, 0>\(a\).copy_\(x\)
#include <dfdx/dfdx.hpp>

using namespace dfdx;

void first_columns(Tensor<float, 2, 3>& a, Tensor<float, 2, 2> const& x) {
#if DFDX_FAIL
  slice<1, 0, 2>(a) = x;
#else
  slice<1, 0, 2>(a).copy_(x);
#endif
}
