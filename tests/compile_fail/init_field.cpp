// SPDX-License-Identifier: BSL-1.0
// error: visit: a field must be a Tensor, a struct with DFDX_FIELDS, or an array, tuple or pair of these
// max-lines: 26
// max-lines[clang]: 28
#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Counting {
  nn::Linear<2, 2> layer;
#if DFDX_FAIL
  int steps;
#else
  Buffer<std::int32_t> steps;
#endif
  DFDX_FIELDS(layer, steps)
};

auto drawn() { return init<Counting>(1); }
