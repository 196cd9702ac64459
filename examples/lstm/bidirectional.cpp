// SPDX-License-Identifier: BSL-1.0
#include "models.hpp"
#include "run.hpp"

void lstm::run_bidirectional(Options const& options) { run<Tagger<true>>(options); }
