// SPDX-License-Identifier: BSL-1.0
// The table of readers that are fuzzed, and what those of tensors share: a file is refused with dfdx::error, or every
// tensor of it can be read.
#pragma once

#include <dfdx/io/weights.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>

namespace fuzz {

using Bytes = std::span<std::byte const>;

/// Reads one file; says whether it was taken.
using Read = std::function<bool(Bytes)>;

inline std::map<std::string, Read>& readers() {
  static std::map<std::string, Read> r;
  return r;
}

/// Enters a reader into the table.
struct Reader {
  Reader(char const* name, Read read) { readers()[name] = std::move(read); }
};

/// Calls parse(bytes), which returns Weights, and reads their numbers.
template <class Parse>
Read weights(Parse parse) {
  return [parse](Bytes bytes) {
    try {
      dfdx::Weights const w = parse(bytes);
      for (dfdx::Weight const& x : w) {
        try {
          x.array();
          x.array(dfdx::DType::f64);
        } catch (dfdx::error const&) {  // a type that is not supported
        }
      }
      return true;
    } catch (dfdx::error const&) {
      return false;
    }
  };
}

}  // namespace fuzz
