// SPDX-License-Identifier: BSL-1.0
#include "wavenet.hpp"

#include "models.hpp"
#include "run.hpp"

void words::run_wavenet(Options const& options) { run<Wavenet>(options); }
