// SPDX-License-Identifier: BSL-1.0
// One backward pass over the tape: finds the nodes below a value, and hands cotangents down in an order in which each node
// is reached when all that it passes on is known. Nothing here recurses, so a chain may be of any length.
#pragma once

#include <span>
#include <vector>

#include <dfdx/tape/leaf_index.hpp>
#include <dfdx/vocabulary/elementwise.hpp>
#include <dfdx/vocabulary/shape.hpp>

namespace dfdx::tape {

namespace detail {

/// What passes of a thread use one after another, so that in the steady state they allocate nothing.
struct Entry {
  TapeNode* node = nullptr;  // retained while its turn has not come
  Array* ct = nullptr;
  bool wanted = false;
};
struct Lists {
  std::vector<Entry> entries;
  std::vector<int> ready;
  LeafIndex leaves;
};
inline Lists& spare_lists() {
  static thread_local Lists lists;
  return lists;
}

inline bool is_ours(Array const& x) {
  return x.storage() != nullptr && !x.storage()->shared() && !x.storage()->is_adopted() && x.contiguous_memory();
}

// Memory that nobody else reads, of these numbers.
inline void make_ours(Array& x) {
  if (is_ours(x)) return;
  Array y(x.meta(), x.device());
  copy_elements(x.operand(), y.operand());
  x = std::move(y);
}

}  // namespace detail

/// Pass - a backward pass: made for a value and its cotangent, run once.
///
/// Math      ct_x += rule(ct_y) for each use y of x, when ct_y is complete
/// Source    Linnainmaa 1976; the order is Kahn's, CACM 5, 1962
class Pass {
 public:
  Pass(Array const& root, Array const& ct, BackwardOptions options)
      : root_(root), ct_(ct), create_(options.create_graph), keep_(create_ || options.retain_graph) {
    std::swap(lists_, detail::spare_lists());
  }
  Pass(Pass const&) = delete;
  Pass& operator=(Pass const&) = delete;
  ~Pass() {
    for (detail::Entry& e : lists_.entries) drop(e);
    lists_.entries.clear();
    lists_.ready.clear();
    lists_.leaves.clear();
    std::swap(lists_, detail::spare_lists());
  }

  /// run - adds to the `grad` of all leaves.
  void run() {
    find_nodes();
    propagate();
    for (detail::Entry& e : lists_.entries)
      if (e.node != nullptr && e.ct != nullptr) {
        run_hooks(*e.node, *e.ct);
        add_to_grad(*e.node, std::move(*e.ct));
      }
  }
  /// run - leaves the leaves alone, and returns the gradients of some values; an empty one where none arrived.
  std::vector<Array> run(std::span<Array const> wanted) {
    find_nodes();
    std::vector<int> places;
    for (Array const& x : wanted) {
      places.push_back(x.requires_grad() ? known_place(*x.tape()) : -1);
      if (places.back() >= 0) entry(places.back()).wanted = true;
    }
    capturing_ = true;
    propagate();
    std::vector<Array> r;
    for (int at : places) {
      r.emplace_back();
      if (at < 0 || entry(at).ct == nullptr) continue;
      detail::Entry& e = entry(at);
      if (e.node != nullptr) run_hooks(*e.node, *e.ct);
      r.back() = *e.ct;
    }
    return r;
  }

 private:
  detail::Entry& entry(int at) { return lists_.entries[static_cast<std::size_t>(at)]; }

  // Nodes know their place; leaves are looked up.
  int known_place(TapeNode const& n) const { return n.is_leaf() ? lists_.leaves.find(&n) : n.place; }
  int place_of(TapeNode& n) {
    if (int const at = known_place(n); at >= 0) return at;
    int const at = static_cast<int>(lists_.entries.size());
    n.retain();
    lists_.entries.push_back(detail::Entry{&n});
    if (n.is_leaf()) lists_.leaves.insert(&n, at);
    else n.place = at;
    return at;
  }
  static void drop_ct(detail::Entry& e) {
    if (e.ct == nullptr) return;
    e.ct->~Array();
    give_block(std::exchange(e.ct, nullptr), sizeof(Array));
  }
  static void drop_node(detail::Entry& e) {
    TapeNode* const n = std::exchange(e.node, nullptr);
    if (n == nullptr) return;
    if (!n->is_leaf()) n->place = -1, n->pending = 0;
    n->release();
  }
  static void drop(detail::Entry& e) {
    drop_ct(e);
    drop_node(e);
  }

  // The list is also the queue of the search.
  void find_nodes() {
    receive(place_of(*root_.tape()), ct_);
    for (std::size_t i = 0; i < lists_.entries.size(); ++i) find_operands(*lists_.entries[i].node);
  }
  void find_operands(TapeNode& n) {
    if (n.spent)
      raise("backward: through ", n.rule->name,
            ", whose values an earlier pass has freed; give that pass {.retain_graph = true}");
    for (TapeNode* operand : n.in)
      if (operand != nullptr && operand->requires_grad) {
        place_of(*operand);
        if (!operand->is_leaf()) ++operand->pending;
      }
  }

  void propagate() {
    no_grad const mode(create_);
    for (std::size_t i = 0; i < lists_.entries.size(); ++i) {
      TapeNode const& n = *lists_.entries[i].node;
      if (!n.is_leaf() && n.pending == 0) lists_.ready.push_back(static_cast<int>(i));
    }
    while (!lists_.ready.empty()) {
      detail::Entry& e = entry(lists_.ready.back());
      lists_.ready.pop_back();
      TapeNode& n = *e.node;
      if (e.ct != nullptr) {
        run_hooks(n, *e.ct);
        if (n.retains_grad && !capturing_) add_to_grad(n, *e.ct);
      }
      pass_on(n, e.ct);
      for (TapeNode* operand : n.in)
        if (operand != nullptr && operand->requires_grad && !operand->is_leaf() && --operand->pending == 0)
          lists_.ready.push_back(operand->place);
      if (!keep_) free_values(n);
      if (!e.wanted) drop_ct(e);
      drop_node(e);
    }
  }

  // What nobody will ask for again.
  static void free_values(TapeNode& n) {
    n.spent = true;
    if (n.saved != nullptr) dfdx::detail::discard(std::exchange(n.saved, nullptr));
    for (TapeNode*& operand : n.in)
      if (TapeNode* const o = std::exchange(operand, nullptr)) o->release();
  }

  void pass_on(TapeNode& n, Array const* ct) {
    if (ct == nullptr) return;
    dfdx::detail::TapeSaved& saved = *n.saved;
    Array operands[max_arity];
    Site<Array> site{saved.values(), saved.values()[saved.arity], saved.attrs};
    if (create_) {
      for (int k = 0; k < saved.arity; ++k) operands[k] = on_tape(saved.values()[k], n.in[k]);
      site.x = operands;
      site.y = on_tape(site.y, &n);
    }
    for (int k = 0; k < saved.arity; ++k) {
      TapeNode* const to = n.in[k];
      if (to == nullptr || !to->requires_grad) continue;
      if (n.rule->part != nullptr && !create_) {
        receive_part(known_place(*to), n, *ct);
        continue;
      }
      check_versions(n, k);
      Array c = n.rule->vjp(*ct, site, k);
      if (c.empty()) continue;
      if (detect_anomaly::is_enabled() && dfdx::detail::has_nan(c) && !dfdx::detail::has_nan(*ct))
        raise("backward of ", n.rule->name, ": made NaN of numbers, in the gradient of operand ", k, " of shape ",
              c.shape());
      receive(known_place(*to), std::move(c));
    }
  }
  static Array on_tape(Array const& x, TapeNode* node) {
    Array r = x;
    if (node == nullptr || x.empty()) return r;
    node->retain();
    r.put_on_tape(node);
    return r;
  }
  static void check_versions(TapeNode const& n, int which) {
    dfdx::detail::TapeSaved& saved = *n.saved;
    for (int k = 0; k <= saved.arity; ++k) {
      unsigned const bit = k < saved.arity ? 1u << k : dfdx::detail::reads_result;
      Array const& v = saved.values()[k];
      if ((n.rule->reads[which] & bit) == 0 || v.storage() == nullptr) continue;
      if (v.storage()->version() == saved.version[k]) continue;
      if (k == saved.arity)
        raise("backward of ", n.rule->name, ": its result of shape ", v.shape(), " was changed in place since");
      raise("backward of ", n.rule->name, ": its operand ", k, " of shape ", v.shape(),
            " was changed in place since");
    }
  }

  void receive(int at, Array ct) {
    detail::Entry& e = entry(at);
    if (e.ct == nullptr) e.ct = ::new (take_block(sizeof(Array))) Array(std::move(ct));
    else add(*e.ct, ct);
  }
  // Of an op that reads a part of its operand: only that part of the operand's cotangent is touched, so that a loop over
  // the elements of an array costs what the elements cost.
  void receive_part(int at, TapeNode& n, Array const& ct) {
    detail::Entry& e = entry(at);
    Meta const& whole = n.saved->values()[0].meta();
    if (e.ct == nullptr) {
      e.ct = ::new (take_block(sizeof(Array))) Array(whole, ct.device());
      op::detail::set_zero(e.ct->operand());
    } else {
      detail::make_ours(*e.ct);
    }
    Array const part = n.rule->part(n.saved->attrs, ct.meta(), *e.ct);
    op::detail::add_elements(ct.operand(), part.operand());
  }
  void add(Array& total, Array const& x) const {
    if (create_) {
      total = apply<op::add>(total, x);
      return;
    }
    detail::make_ours(total);
    op::detail::add_elements(x.operand(), total.operand());
  }

  static void run_hooks(TapeNode& n, Array& ct) {
    if (n.extras == nullptr) return;
    for (dfdx::detail::TapeHook* h = n.extras->hooks; h != nullptr; h = h->next) {
      Array changed = h->call(ct);
      if (!(changed.meta() == ct.meta()))
        raise("register_hook: gradient of ", ct.dtype(), " ", ct.shape(), " required, got ", changed.dtype(), " ",
              changed.shape());
      ct = std::move(changed);
    }
  }
  void add_to_grad(TapeNode& n, Array ct) const {
    dfdx::detail::TapeExtras& extras = dfdx::detail::extras_of(n);
    dfdx::detail::TapeExtras::Lock const lock(extras);
    no_grad const mode(create_);
    if (!extras.grad.empty()) return add(extras.grad, ct);
    if (!create_) detail::make_ours(ct);
    extras.grad = std::move(ct);
  }

  Array const &root_, &ct_;
  detail::Lists lists_;
  bool create_, keep_, capturing_ = false;
};

}  // namespace dfdx::tape
