// SPDX-License-Identifier: BSL-1.0
// Device kernels that add up what has the same key, in its order: places are sorted by their keys, and what each group
// comes to is one thread's, so that results do not depend on which is first. The cost is that of sorting.
#pragma once

#include <dfdx/kernels/cuda/sort.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// Grouped - lines of n places, each with a key that is not negative, or -1 for none; in a workspace, and after `sort`
/// in the order of keys, equal ones in theirs.
class Grouped {
 public:
  using Key = std::int32_t;
  static constexpr index_t bytes(index_t lines, index_t n) {
    index_t slots[OwnArguments::most_slots] = {};
    put(slots, lines, n);
    return lines * n * 8 + (lines * n * 4 + 7) / 8 * 8 + Sort::workspace(slots);
  }
  DFDX_INLINE Grouped(void* workspace, index_t lines, index_t n)
      : order_(static_cast<std::int64_t*>(workspace)),
        keys_(reinterpret_cast<Key*>(order_ + lines * n)),
        lines_(lines),
        n_(n) {}
  DFDX_INLINE Key& key(index_t line, index_t place) const { return keys_[line * n_ + place]; }
  /// Queues what puts them in order.
  cudaError_t sort(cudaStream_t stream) const {
    OwnArguments x;
    put(x.symbols, lines_, n_);
    x.base[0] = keys_, x.base[1] = order_;
    x.workspace = keys_ + (lines_ * n_ + 1) / 2 * 2;
    return Sort::start_all(x, stream);
  }
  /// Whether a group begins at position `at` of a line; its key.
  DFDX_INLINE bool begins(index_t line, index_t at, Key& key_of) const {
    key_of = sorted_key(line, at);
    return key_of >= 0 && (at == 0 || sorted_key(line, at - 1) != key_of);
  }
  /// The sum of term(place) over a group that begins at `at`, in order; several are asked for before they are added.
  template <class S, class Term>
  DFDX_INLINE S sum(index_t line, index_t at, Term const& term) const {
    constexpr int some = 8;
    Key const mine = sorted_key(line, at);
    S total{};
    for (bool more = true; more; at += some) {
      S part[some];
      int count = 0;
      DFDX_UNROLL for (int i = 0; i < some; ++i) {
        bool const is_mine = at + i < n_ && sorted_key(line, at + i) == mine;
        part[i] = is_mine ? term(order_[line * n_ + at + i]) : S{};
        count += is_mine ? 1 : 0;
      }
      DFDX_UNROLL for (int i = 0; i < some; ++i) {
        if (i < count) total = static_cast<S>(total + part[i]);
      }
      more = count == some;
    }
    return total;
  }

 private:
  using Sort = SortKernel<AnyWalks<2, 2>, Key, 1, false>;
  static constexpr void put(index_t* slots, index_t lines, index_t n) {
    for (int k = 0; k < 8; k += 4) slots[k] = lines, slots[k + 1] = n, slots[k + 2] = n, slots[k + 3] = 1;
  }
  DFDX_INLINE Key sorted_key(index_t line, index_t at) const { return key(line, order_[line * n_ + at]); }

  std::int64_t* order_;
  Key* keys_;
  index_t lines_, n_;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
