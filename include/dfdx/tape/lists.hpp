// SPDX-License-Identifier: BSL-1.0
// What a backward pass keeps of each node, in lists that its thread keeps for the next one.
#pragma once

#include <utility>
#include <vector>

#include <dfdx/core/config.hpp>
#include <dfdx/tape/leaf_index.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/device_ops.hpp>

namespace dfdx::tape::detail {

/// What passes of a thread use one after another, so that in the steady state they allocate nothing.
struct Entry {
  TapeNode* node = nullptr;  // retained while its turn has not come
  Array* ct = nullptr;
  double number = 0;  // the cotangent of a scalar, instead
  bool has_number = false;
  bool is_ours = false;  // ct was made here, dense; only copies that were given out may share its memory
  bool wanted = false, leads = false;  // is asked for; is or leads to such a one
  TapeNode::Visit before{};            // of the pass inside of which this one runs

  bool has_ct() const { return has_number || ct != nullptr; }
};
template <int Lazy>
struct Lists {
  std::vector<Entry> entries;
  std::vector<int> ready;
  LeafIndex<Lazy> leaves;
  bool in_use = false, is_extra = false;
};
// Those of this thread, or extra ones for a pass that a hook runs inside of another.
template <int Lazy>
Lists<Lazy>& take_lists() {
  static DFDX_THREAD_LOCAL Lists<Lazy> lists;
  Lists<Lazy>* const r = lists.in_use ? new Lists<Lazy> : &lists;
  r->is_extra = r != &lists;
  r->in_use = true;
  return *r;
}
template <int Lazy>
void give_back(Lists<Lazy>& lists) {
  lists.entries.clear();
  lists.ready.clear();
  lists.leaves.clear();
  lists.in_use = false;
  if (lists.is_extra) delete &lists;
}

// Whether nobody else reads its memory.
inline bool is_ours(Array const& x) {
  return x.storage() != nullptr && !x.storage()->shared() && !x.storage()->is_adopted() &&
         x.contiguous_memory();
}

// Memory that nobody else reads, of these numbers.
inline void make_ours(Array& x) {
  if (is_ours(x)) return;
  x = dfdx::detail::moved(x.device(), x);
}

}  // namespace dfdx::tape::detail
