// SPDX-License-Identifier: BSL-1.0
#include "batchnorm.hpp"

#include "models.hpp"
#include "run.hpp"

void words::run_batchnorm(Options const& options) { run<NormedMlp>(options); }
