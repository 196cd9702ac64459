// SPDX-License-Identifier: BSL-1.0
// Which of many numbers come first in order, and which one stands at a rank, without sorting the others.
#pragma once

#include <climits>

#include <dfdx/ops/radix_sort.hpp>

namespace dfdx::op::detail {

/// key_at - the key that stands at `rank` among n in order; `spare` is as long. Those before it are counted in
/// `before`. Most significant digit first: the keys that share the digits of the one wanted are kept and looked at
/// again; of the last few it is found bit by bit.
template <class Key>
Key key_at(Key const* keys, index_t n, index_t rank, Key* spare, index_t& before) {
  constexpr int bits = 11, values = 1 << bits;
  constexpr index_t few = 256, block = 32;
  int known = static_cast<int>(sizeof(Key)) * CHAR_BIT;
  before = 0;
  while (n > few && known > 0) {
    known = std::max(known - bits, 0);
    auto const digit = [&](Key k) { return static_cast<index_t>(k >> known) & (values - 1); };
    // Two lists, so that equal neighbours need not wait for each other.
    Key counts[2][values] = {};
    for (index_t i = 0; i < n; ++i) ++counts[i & 1][digit(keys[i])];
    index_t wanted = 0;
    for (;; ++wanted) {
      auto const here = static_cast<index_t>(counts[0][wanted]) + static_cast<index_t>(counts[1][wanted]);
      if (rank < here) break;
      rank -= here;
      before += here;
    }
    index_t kept = 0;
    for (index_t i = 0; i < n; ++i) {
      Key const k = keys[i];
      spare[kept] = k;
      kept += digit(k) == wanted ? 1 : 0;
    }
    keys = spare;
    n = kept;
  }
  if (known == 0 || n == 1) return keys[0];
  Key last[few];
  std::fill(std::copy_n(keys, n, last), last + few, ~Key(0));
  auto const count_before = [&](Key k) {
    Key in_column[block] = {};
    for (index_t i = 0; i < n; i += block)
      for (index_t j = 0; j < block; ++j) in_column[j] += static_cast<Key>(last[i + j] < k);
    Key all = 0;
    for (Key c : in_column) all += c;
    return static_cast<index_t>(all);
  };
  // The bits from `known` on are those of the one wanted; `low` keys are before them, `high` before what follows them.
  bool const is_whole = known == static_cast<int>(sizeof(Key)) * CHAR_BIT;
  Key found = is_whole ? Key(0) : static_cast<Key>(last[0] >> known << known);
  index_t low = 0, high = n;
  while (known > 0 && high - low > 1) {
    Key const half = static_cast<Key>(found | Key(1) << --known);
    index_t const count = count_before(half);
    if (count <= rank) found = half, low = count;
    else high = count;
  }
  before += low;
  for (index_t i = 0; known > 0; ++i)  // one key alone has those bits
    if ((last[i] ^ found) >> known == 0) return last[i];
  return found;
}

/// keep_first - the k first in order among those that at(i) gives, in the order of i; `last` is the key of the last of
/// them, and `before` keys are before it. `to` may be where they come from.
template <class Key, class At>
void keep_first(index_t k, Key last, index_t before, At const& at, Keyed<Key>* to) {
  index_t equal = k - before;  // so many that equal the last are among the first
  for (index_t i = 0, kept = 0; kept < k; ++i) {
    Keyed<Key> const x = at(i);
    bool const is_equal = x.key == last && equal > 0;
    to[kept] = x;
    kept += x.key < last || is_equal ? 1 : 0;
    equal -= is_equal ? 1 : 0;
  }
}

/// first_keyed - the k first in order among n keys with their places, where k is far below n; `room` has place for 2 n.
/// A key is looked at again only if it comes before k that are known; whenever 2 k have come together, half of them go.
template <class Key>
Keyed<Key> const* first_keyed(Key const* keys, index_t n, index_t k, Keyed<Key>* room) {
  constexpr index_t block = 32;
  index_t const most = 2 * k + block;
  auto* const kept_keys = reinterpret_cast<Key*>(room + n);
  index_t kept = 0;
  Key limit = 0;
  auto const shrink = [&] {
    for (index_t i = 0; i < kept; ++i) kept_keys[i] = room[i].key;
    index_t before;
    limit = key_at(kept_keys, kept, k - 1, kept_keys + kept, before);
    keep_first(k, limit, before, [&](index_t i) { return room[i]; }, room);
    kept = k;
  };
  auto const add = [&](index_t i) {
    room[kept++] = {keys[i], static_cast<Key>(i)};
    if (kept == most) shrink();
  };
  index_t i = 0;
  while (i < most) add(i++);
  for (; i + block <= n; i += block) {
    Key any = 0;
    for (index_t j = 0; j < block; ++j) any |= static_cast<Key>(keys[i + j] < limit);
    if (any == 0) continue;
    for (index_t j = 0; j < block; ++j)
      if (keys[i + j] < limit) add(i + j);
  }
  for (; i < n; ++i)
    if (keys[i] < limit) add(i);
  if (kept > k) shrink();
  return sort_keyed(room, room + k, k);
}

/// keyed_in_order - the keys at ranks `first` to `end` - 1 with their places, equal keys in the order of those; `room`
/// has place for 2 n.
template <class Key>
Keyed<Key> const* keyed_in_order(Key const* keys, index_t n, index_t first, index_t end, Keyed<Key>* room) {
  if (first == 0 && n > 256 && end <= n / 8) return first_keyed(keys, n, end, room);
  auto const at = [&](index_t i) { return Keyed<Key>{keys[i], static_cast<Key>(i)}; };
  if (end - first > n / 2) {
    for (index_t i = 0; i < n; ++i) room[i] = at(i);
    return sort_keyed(room, room + n, n) + first;
  }
  index_t before;
  Key const last = key_at(keys, n, end - 1, reinterpret_cast<Key*>(room), before);
  if (first == 0) {
    keep_first(end, last, before, at, room);
    return sort_keyed(room, room + end, end);
  }
  index_t i = 0;
  for (index_t equal = end - before; equal > 0; ++i) equal -= keys[i] == last ? 1 : 0;
  room[0] = at(i - 1);
  return room;
}

}  // namespace dfdx::op::detail
