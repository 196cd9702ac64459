// SPDX-License-Identifier: BSL-1.0
// Fuzzes the reader of GGUF files.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/gguf.hpp>

static fuzz::Reader const gguf("gguf", fuzz::weights([](auto bytes) { return dfdx::gguf_from(bytes); }));
