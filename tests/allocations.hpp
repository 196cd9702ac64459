// SPDX-License-Identifier: BSL-1.0
// How often a program asked for memory: a program that calls this gets allocators that count (allocations.cpp).
#pragma once

#include <cstdint>

namespace tests {

/// Calls of operator new since the program began, by all threads.
std::int64_t allocations();

}  // namespace tests
