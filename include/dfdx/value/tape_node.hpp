// SPDX-License-Identifier: BSL-1.0
// What a value knows of the run-time tape: TapeNode, one use of an op (or a leaf that gathers a gradient), linked to
// the nodes of its operands. Not here: recording (vocabulary/bind.hpp) and the backward pass (tape/).
#pragma once

#include <cstdint>
#include <utility>

#include <dfdx/core/pool.hpp>
#include <dfdx/value/node.hpp>

namespace dfdx {

class Array;
class TapeNode;

/// BackwardOptions - retain_graph: the values that rules need are kept, so that another pass may follow. create_graph: the
/// pass is recorded, so that gradients have gradients (implies retain_graph).
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};

/// TapeRule - the static descriptor of an op on the tape: the counterpart of OpInfo for values in memory.
struct TapeRule {
  char const* name = "";
  /// Cotangent of operand `which`, given the result's; an empty Array where nothing flows.
  Array (*vjp)(Array const& ct, Site<Array> const&, int which) = nullptr;
  /// The values that vjp reads for operand `which`: bit k for operand k, bit max_arity for the result.
  unsigned reads[max_arity] = {};
  /// Of an op whose result is a part of its operand, the same part of another array of that shape; else null.
  Array (*part)(Attrs const&, Meta const& result, Array const& whole) = nullptr;
};

namespace detail {
// The values that a rule will read; a gradient and its hooks. Defined in tape_saved.hpp, after Array.
struct TapeSaved;
struct TapeExtras;
void discard(TapeSaved*);
void discard(TapeExtras*);
}  // namespace detail

/// TapeNode - a node of the graph that backward() walks, counted: values hold their node, nodes hold their operands'.
/// What nobody can reach any more frees itself, so a tape needs no resetting. A node that is not a leaf belongs to the
/// thread that recorded it.
class TapeNode {
 public:
  static TapeNode* make(TapeRule const* rule) {
    return ::new (take_block(sizeof(TapeNode))) TapeNode(rule);
  }

  void retain() { count_.up(); }
  void release() {
    if (count_.down()) destroy(this);
  }

  bool is_leaf() const { return rule == nullptr; }

  /// Null for a leaf.
  TapeRule const* rule;
  TapeNode* in[max_arity] = {};
  detail::TapeSaved* saved = nullptr;
  detail::TapeExtras* extras = nullptr;
  /// The version of the memory that it describes (Storage::version).
  std::uint32_t version = 0;
  bool requires_grad = true;
  bool retains_grad = false;
  /// A backward pass has been here and has freed what it needs.
  bool spent = false;
  /// Of the pass that visits it: who has still to send a cotangent, and its place in the pass's list.
  int pending = 0;
  std::int32_t place = -1;

 private:
  explicit TapeNode(TapeRule const* r) : rule(r) {}
  ~TapeNode() = default;

  // A chain of a million nodes must not be a million calls deep: nodes to be freed are linked through in[0].
  [[gnu::noinline]] static void destroy(TapeNode* node) {
    node->next_dead_ = nullptr;
    for (TapeNode *last = node, *n = node; n != nullptr;) {
      for (TapeNode*& operand : n->in) {
        TapeNode* const o = std::exchange(operand, nullptr);
        if (o == nullptr || !o->count_.down()) continue;
        o->next_dead_ = nullptr;
        last->next_dead_ = o;
        last = o;
      }
      if (n->saved != nullptr) detail::discard(n->saved);
      if (n->extras != nullptr) detail::discard(n->extras);
      TapeNode* const next = n->next_dead_;
      n->~TapeNode();
      give_block(n, sizeof(TapeNode));
      n = next;
    }
  }
  TapeNode* next_dead_ = nullptr;
  Count count_;
};

}  // namespace dfdx
