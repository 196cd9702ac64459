// SPDX-License-Identifier: BSL-1.0
// Fuzzes the reader of GGUF files.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/gguf.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  return fuzz::run(data, size, [](auto bytes) { return dfdx::gguf_from(bytes); });
}
