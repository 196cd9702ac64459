// SPDX-License-Identifier: BSL-1.0
#include "mlp.hpp"

#include "models.hpp"
#include "run.hpp"

void words::run_mlp(Options const& options) { run<Mlp>(options); }
