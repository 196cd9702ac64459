// SPDX-License-Identifier: BSL-1.0
// A stable sort of numbers with their positions, digit by digit.
#pragma once

#include <algorithm>
#include <utility>

#include <dfdx/core/order.hpp>
#include <dfdx/core/shape.hpp>

namespace dfdx::op::detail {

/// Keyed - a key and where it was.
template <class Key>
struct Keyed {
  Key key, place;
};

/// sort_keyed - n of them, in the order of their places at first, by their keys; `spare` is as long. The sorted ones
/// are where the result points to, one of both. Least significant byte first (Knuth, The Art of Computer Programming
/// 3, 5.2.5); bytes that all keys share cost nothing.
template <class Key>
Keyed<Key>* sort_keyed(Keyed<Key>* x, Keyed<Key>* spare, index_t n) {
  if (n <= 64) {
    std::sort(x, x + n, [](Keyed<Key> const& a, Keyed<Key> const& b) {
      return a.key < b.key || (a.key == b.key && a.place < b.place);
    });
    return x;
  }
  constexpr int digits = sizeof(Key);
  index_t counts[digits][256] = {};
  for (index_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++counts[d][x[i].key >> (8 * d) & 255];
  for (int d = 0; d < digits; ++d) {
    index_t* const count = counts[d];
    if (count[x[0].key >> (8 * d) & 255] == n) continue;
    index_t before = 0;
    for (int v = 0; v < 256; ++v) before += std::exchange(count[v], before);
    for (index_t i = 0; i < n; ++i) spare[count[x[i].key >> (8 * d) & 255]++] = x[i];
    std::swap(x, spare);
  }
  return x;
}

}  // namespace dfdx::op::detail
