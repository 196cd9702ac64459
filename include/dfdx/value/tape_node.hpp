// SPDX-License-Identifier: BSL-1.0
// What a value knows of the run-time tape: TapeNode, one use of an op (or a leaf that gathers a gradient), linked to
// the nodes of its operands. Not here: recording (vocabulary/on_tape.hpp) and the backward pass (tape/).
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include <dfdx/core/pool.hpp>
#include <dfdx/value/node.hpp>

namespace dfdx {

class Array;

/// BackwardOptions - retain_graph: the values that rules need are kept, so that another pass may follow.
/// create_graph: the pass is recorded, so that gradients have gradients (implies retain_graph).
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};

/// TapeRule - the static descriptor of an op on the tape: the counterpart of OpInfo for values in memory.
class TapeRule {
 public:
  /// Cotangent of operand `which`, given the result's; an empty Array where nothing flows.
  using Vjp = Array (*)(Array const& ct, Site<Array> const&, int which);
  /// Of elementwise ops the same for scalars, all operands at once: `values` are the operands, then the result.
  using VjpOfNumbers = void (*)(double ct, double const* values, PlainNumber* cts);
  /// Of other ops the values that vjp reads for operand `which`: bit k for operand k, bit max_arity for the result.
  using Reads = unsigned (*)(int which);
  /// Of an op whose result is a part of its operand, the same part of another array of that shape; else null.
  using Part = Array (*)(Attrs const&, Meta const& result, Array const& whole);

  constexpr TapeRule(char const* n, int operands, Vjp rule, VjpOfNumbers of_numbers, Reads read, Part p)
      : name(n), arity(operands), vjp(rule), vjp_of_numbers(of_numbers), part(p), reads_(read) {}

  char const* name;
  int arity;
  Vjp vjp;
  VjpOfNumbers vjp_of_numbers;
  Part part;

  /// The values that vjp reads for operand `which`; PlainNumber::nothing if nothing flows to it.
  unsigned reads(int which) const {
    if (reads_ != nullptr) return reads_(which);
    unsigned r = known_[which].load(std::memory_order_relaxed);
    return r != 0 ? r & ~is_known : find_out(which);
  }

 private:
  // What an elementwise rule reads is what its answer is made of, whatever the numbers.
  static constexpr unsigned is_known = 1u << 30;
  unsigned find_out(int which) const {
    double const ones[max_arity + 1] = {1, 1, 1, 1, 1, 1};
    PlainNumber cts[max_arity];
    vjp_of_numbers(1, ones, cts);
    for (int k = 0; k < arity; ++k) known_[k].store(cts[k].made_of | is_known, std::memory_order_relaxed);
    return cts[which].made_of;
  }
  Reads reads_;
  mutable std::atomic<unsigned> known_[max_arity] = {};
};

namespace detail {
struct TapeExtras;  // gradient and hooks; defined in tape_saved.hpp, after Array
void discard(TapeExtras*);
}  // namespace detail

/// TapeNode - a node of the graph that backward() walks, counted: values hold their node, nodes hold their operands'.
/// What nobody can reach any more frees itself, so a tape needs no resetting. A node that is not a leaf belongs to the
/// thread that recorded it.
class TapeNode {
 public:
  /// What follows the node in memory: nothing, numbers (the operands and the result of an op on scalars), packed
  /// arrays, or a position and the operand that was read there (tape_saved.hpp).
  enum class Payload : std::uint8_t { none, numbers, arrays, position };

  static TapeNode* make(TapeRule const* rule, Payload payload = Payload::none, std::size_t bytes = 0) {
    auto* const n = ::new (take_packed(sizeof(TapeNode) + bytes)) TapeNode(rule);
    n->payload = payload;
    if (payload == Payload::arrays)
      for (int k = near; k < max_arity; ++k) ::new (static_cast<void*>(&n->in(k))) TapeNode* {};
    n->payload_bytes_ = static_cast<std::uint16_t>(bytes);
    return n;
  }

  void retain() { count_.up(); }
  // Not inline: every destructor of an array has a call.
  [[gnu::noinline]] void release() {
    if (count_.down()) destroy(this);
  }

  bool is_leaf() const { return rule == nullptr; }
  /// Of nodes whose payload are arrays it begins with the operands that the node itself has no room for.
  std::byte* payload_memory() { return reinterpret_cast<std::byte*>(this + 1); }
  double* numbers() { return reinterpret_cast<double*>(this + 1); }
  /// Gives up what only the backward pass needs.
  void drop_values();

  /// Operand k, null where no derivative flows. Three lie in the node, which so fills a cache line; others have more
  /// only if they are of arrays.
  TapeNode*& in(int k) {
    return k < near ? in_[k] : reinterpret_cast<TapeNode**>(payload_memory())[k - near];
  }
  static constexpr int near = 3;
  static constexpr std::size_t far_bytes = (max_arity - near) * sizeof(TapeNode*);

  /// Null for a leaf.
  TapeRule const* rule;
  detail::TapeExtras* extras = nullptr;
  /// Of the pass that visits it: who has still to send a cotangent, and its place in the pass's list.
  struct Visit {
    std::int32_t pending = 0;
    std::int32_t place = -1;
  };
  union {
    Visit visit{};
    TapeNode* next_dead;  // no pass visits what is being freed
  };
  /// The version of the memory that it describes (Storage::version).
  std::uint32_t version = 0;
  std::uint8_t arity = 0;
  Payload payload = Payload::none;
  /// The dtype, if its value is one f32 or f64; else boolean. What such nodes send and receive are numbers.
  DType number = DType::boolean;
  bool requires_grad = true;
  bool retains_grad : 1 = false;
  /// A backward pass has been here and has freed what it needs.
  bool spent : 1 = false;
  /// Where its value lies, and so its cotangent: the index of a CUDA device, -1 for the CPU.
  std::int8_t cuda_index = -1;

  Device device() const { return cuda_index < 0 ? Device{} : cuda(cuda_index); }
  void device(Device d) { cuda_index = static_cast<std::int8_t>(d.is_cpu() ? -1 : d.index); }

  bool is_number() const { return number != DType::boolean; }

 private:
  explicit TapeNode(TapeRule const* r) : rule(r) {}
  ~TapeNode() = default;
  static void destroy(TapeNode* node);

  std::uint16_t payload_bytes_ = 0;
  Count count_;
  TapeNode* in_[near] = {};
};

// A chain of a million nodes must not be a million calls deep: nodes to be freed are linked.
inline void TapeNode::destroy(TapeNode* node) {
  node->next_dead = nullptr;
  for (TapeNode *last = node, *n = node; n != nullptr;) {
    for (int k = 0; k < n->arity; ++k) {
      TapeNode* const o = n->in(k);
      if (o == nullptr || !o->count_.down()) continue;
      o->next_dead = nullptr;
      last->next_dead = o;
      last = o;
    }
    n->drop_values();
    if (n->extras != nullptr) detail::discard(n->extras);
    TapeNode* const next = n->next_dead;
    std::size_t const bytes = sizeof(TapeNode) + n->payload_bytes_;
    n->~TapeNode();
    give_packed(n, bytes);
    n = next;
  }
}

}  // namespace dfdx
