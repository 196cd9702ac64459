// SPDX-License-Identifier: BSL-1.0
// Fuzzes the reader of files of llama2.c.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/llama2c.hpp>

static fuzz::Reader const llama2c("llama2c",
                                  fuzz::weights([](auto bytes) { return dfdx::llama2c_from(bytes); }));
