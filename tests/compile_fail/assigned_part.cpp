// SPDX-License-Identifier: BSL-1.0
// error: deleted
// shows: \(0\).copy_\(x\), or index_put_\(a, x, 0\)
#include <dfdx/dfdx.hpp>

using namespace dfdx;

// A part is a view: assigned to, it alone would have other numbers, and be gone.
void first_row(Array& a, Array const& x) {
#if DFDX_FAIL
  a(0) = x;
#else
  a(0).copy_(x);
#endif
}
