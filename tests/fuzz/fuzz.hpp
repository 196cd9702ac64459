// SPDX-License-Identifier: BSL-1.0
// What the fuzzers of readers share: a file is refused with dfdx::error, or every tensor of it can be read.
#pragma once

#include "fuzz/accepted.hpp"

#include <dfdx/io/weights.hpp>

#include <cstdint>

namespace fuzz {

using namespace dfdx;

/// Calls read(bytes), which returns Weights, and reads their numbers.
template <class Read>
int run(std::uint8_t const* data, std::size_t size, Read const& read) {
  try {
    Weights const w = read(std::span<std::byte const>(reinterpret_cast<std::byte const*>(data), size));
    for (Weight const& x : w) {
      try {
        x.array();
        x.array(DType::f64);
      } catch (error const&) {  // a type that is not supported
      }
    }
    ++accepted;
  } catch (error const&) {
  }
  return 0;
}

}  // namespace fuzz
