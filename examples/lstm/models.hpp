// SPDX-License-Identifier: BSL-1.0
// The models to choose from. Each has a .cpp of its own, in which its programs are compiled.
#pragma once

#include "options.hpp"

namespace lstm {

void run_bidirectional(Options const& options);
void run_forward(Options const& options);

struct Choice {
  char const* name;
  void (*run)(Options const&);
};
inline constexpr Choice choices[] = {{"bidirectional", run_bidirectional}, {"forward", run_forward}};

}  // namespace lstm
