// SPDX-License-Identifier: BSL-1.0
// Translation units compiled for different instruction sets link to a program in which each runs kernels of its own.
#include <cassert>
#include <cstdio>

#include "targets.hpp"

int main() {
  Outcome const a = in_sse2(), b = in_avx512();
  for (Outcome const& o : {a, b})
    std::printf("%d lanes, %d bytes, relative error %g\n", static_cast<int>(o.lanes),
                static_cast<int>(o.arena), o.worst);
  assert(a.lanes == 4 && b.lanes == 16);
  assert(a.arena != b.arena);  // products pack their operands for their registers
  assert(a.worst < 1e-4 && b.worst < 1e-4);
  assert(a.run != b.run);
  assert(a.loop != nullptr && a.loop != b.loop);
}
