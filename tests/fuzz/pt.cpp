// SPDX-License-Identifier: BSL-1.0
// Fuzzes the reader of PyTorch files.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/pt.hpp>

static fuzz::Reader const pt("pt", fuzz::weights([](auto bytes) { return dfdx::pt_from(bytes); }));
