// SPDX-License-Identifier: BSL-1.0
// Fuzzes the reader of files of llama2.c.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/llama2c.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  return fuzz::run(data, size, [](auto bytes) { return dfdx::llama2c_from(bytes); });
}
