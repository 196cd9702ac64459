// SPDX-License-Identifier: BSL-1.0
// From a leaf of the tape to its place in a pass. Leaves may be shared by threads that each run a pass, so a pass
// must not write into them.
#pragma once

#include <cstdint>
#include <vector>

#include <dfdx/value/tape_node.hpp>

namespace dfdx::tape {

/// LeafIndex - a hash table with linear probing, at most half full. (A template, as Pass is.)
template <int Lazy>
class LeafIndex {
 public:
  /// The place of a leaf, -1 if it has none.
  int find(TapeNode const* leaf) {
    // A loop over the elements of a leaf asks for nothing else.
    if (leaf != last_.leaf) last_ = Slot{leaf, slots_.empty() ? -1 : slots_[probe(leaf)].place};
    return last_.place;
  }
  void insert(TapeNode const* leaf, int place) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    slots_[probe(leaf)] = last_ = Slot{leaf, place};
    ++used_;
  }
  void clear() {
    // After a pass over a million leaves, the next over a few must not wipe a million slots.
    if (slots_.size() > 1024 && used_ * 16 < slots_.size()) std::vector<Slot>().swap(slots_);
    else if (used_ != 0) slots_.assign(slots_.size(), Slot{});
    used_ = 0;
    last_ = Slot{};
  }

 private:
  struct Slot {
    TapeNode const* leaf = nullptr;
    int place = -1;
  };

  // The slot of a leaf, or the free one where it belongs. Nodes are aligned, so the low bits of addresses say nothing.
  std::size_t probe(TapeNode const* leaf) const {
    std::uint64_t const hash = (reinterpret_cast<std::uintptr_t>(leaf) >> 6) * 0x9e3779b97f4a7c15u;
    std::size_t const mask = slots_.size() - 1;
    std::size_t i = static_cast<std::size_t>(hash >> 32) & mask;
    while (slots_[i].leaf != nullptr && slots_[i].leaf != leaf) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (Slot const& s : old)
      if (s.leaf != nullptr) slots_[probe(s.leaf)] = s;
  }

  std::vector<Slot> slots_;
  Slot last_{};
  std::size_t used_ = 0;
};

}  // namespace dfdx::tape
