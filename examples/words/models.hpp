// SPDX-License-Identifier: BSL-1.0
// The models to choose from. Each has a .cpp of its own, in which its programs are compiled.
#pragma once

#include "options.hpp"

namespace words {

void run_mlp(Options const& options);
void run_batchnorm(Options const& options);
void run_wavenet(Options const& options);

struct Choice {
  char const* name;
  void (*run)(Options const&);
};
inline constexpr Choice choices[] = {
    {"mlp", run_mlp}, {"batchnorm", run_batchnorm}, {"wavenet", run_wavenet}};

}  // namespace words
