// SPDX-License-Identifier: BSL-1.0
// What tests of the emulated device say of it, on one that is no emulation: nothing is counted there, so that whatever
// is asked of counts is answered as the test expects, and orders of threads are the device's own.
#pragma once

#include <concepts>
#include <type_traits>

namespace cuda_fake {

/// Unknown - a count that nobody knows, and what is said of it: true, and not false either.
struct Unknown {
  template <class T>
    requires std::integral<T>
  constexpr operator T() const {
    return T{1};
  }
  constexpr Unknown operator!() const { return {}; }
};
template <class T>
concept Count = std::integral<T> || std::is_enum_v<T> || std::same_as<T, Unknown>;
template <Count T>
constexpr Unknown operator+(Unknown, T) {
  return {};
}
template <Count T>
constexpr Unknown operator>(Unknown, T) {
  return {};
}
template <Count T>
constexpr Unknown operator<(Unknown, T) {
  return {};
}
template <Count T>
constexpr Unknown operator==(Unknown, T) {
  return {};
}

enum class Turns { forward, backward, shuffled };
struct Machine {
  struct {
    Turns turns = Turns::forward;
    bool drop_barriers = false, drop_cluster_barriers = false;
  } fibers;
  Unknown replays, launches, captures, cluster_launches;
  bool has_warpgroups = true;
  int dynamic_limit = 0;
};
inline Machine& machine() {
  static Machine one;
  return one;
}
inline struct {
  Unknown products, choices, biases, addends, compute, descriptors;
  bool refuse = false, refuse_bias = false;
} products;
inline struct {
  Unknown convolutions, choices, parts, engine;
  bool refuse = false, fail = false;
} convolutions;
inline constexpr int plain_engine = 0, rounding_engine = 0;
inline bool is_stranger = false;
inline constexpr Unknown tensor_products, wide_copies, line_copies, warpgroup_products;

}  // namespace cuda_fake
