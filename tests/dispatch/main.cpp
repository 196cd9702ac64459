// SPDX-License-Identifier: BSL-1.0
// Calls functions that are compiled for several levels of x86-64; prints how long the vectors of those that run are:
// as long as the argument says, or as this processor's. Exceptions pass from them.
#include "model.hpp"

#include <dfdx/core/error.hpp>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  double const loss = trained_loss();
  std::printf("vectors of %d bytes, loss %.6f\n", vector_bytes(), loss);
  int const best = __builtin_cpu_supports("x86-64-v4") ? 64 : __builtin_cpu_supports("x86-64-v3") ? 32 : 16;
  assert(vector_bytes() == (argc > 1 ? std::atoi(argv[1]) : best));
  assert(std::fabs(loss - 0.005525) < 2e-6);  // whatever the level
  try {
    refuse();
    assert(false);
  } catch (dfdx::error const& e) {
    assert(std::string(e.what()) == "model: refused");
  }
}
