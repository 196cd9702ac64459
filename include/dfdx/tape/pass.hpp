// SPDX-License-Identifier: BSL-1.0
// One backward pass over the tape: finds the nodes below a value, and hands cotangents down in an order in which
// each node is reached when all that it passes on is known. Nothing here recurses, so a chain may be of any length.
#pragma once

#include <span>
#include <vector>

#include <dfdx/tape/add_to.hpp>
#include <dfdx/tape/lists.hpp>
#include <dfdx/vocabulary/elementwise.hpp>
#include <dfdx/vocabulary/reduce.hpp>
#include <dfdx/vocabulary/shape.hpp>

namespace dfdx::tape {

/// Pass - a backward pass: made for a value and its cotangent, run once.
///
/// Math      ct_x += rule(ct_y) for each use y of x, when ct_y is complete
/// Source    Linnainmaa 1976; the order is Kahn's, CACM 5, 1962
///
/// (A template, so that programs that run no pass compile none, nor the additions of gradients.)
template <int Lazy = 0>
class Pass {
 public:
  Pass(Array const& root, Array const& ct, BackwardOptions options)
      : root_(dfdx::detail::known_node(root)),
        ct_(ct),
        create_(options.create_graph),
        keep_(create_ || options.retain_graph) {}
  Pass(Pass const&) = delete;
  Pass& operator=(Pass const&) = delete;
  ~Pass() {
    for (detail::Entry& e : lists_.entries) drop(e);
    detail::give_back(lists_);
  }

  /// run - adds to the `grad` of all leaves.
  void run() {
    find_nodes();
    propagate();
    for (detail::Entry& e : lists_.entries)
      if (e.node != nullptr && e.has_ct()) {
        run_hooks(e);
        add_to_grad(e);
      }
  }
  /// run - leaves the leaves alone, and returns the gradients of some values; an empty one where none arrived.
  std::vector<Array> run(std::span<Array const> wanted) {
    find_nodes();
    std::vector<int> places;
    for (Array const& x : wanted) {
      places.push_back(x.requires_grad() ? known_place(dfdx::detail::known_node(x)) : -1);
      if (places.back() >= 0) entry(places.back()).wanted = true;
    }
    capturing_ = true;
    drop_what_leads_nowhere();
    propagate();
    std::vector<Array> r;
    for (int at : places) {
      r.emplace_back();
      if (at < 0 || !entry(at).has_ct()) continue;
      detail::Entry& e = entry(at);
      if (e.node != nullptr) run_hooks(e);
      r.back() = as_array(e, wanted[r.size() - 1].dtype());
    }
    return r;
  }

 private:
  detail::Entry& entry(int at) { return lists_.entries[static_cast<std::size_t>(at)]; }

  // Nodes know their place; leaves are looked up. A pass that a rule or a hook runs inside of another may meet nodes of
  // that one, whose place is none of its own.
  int known_place(TapeNode const& n) {
    if (n.is_leaf()) return lists_.leaves.find(&n);
    int const at = n.visit.place;
    if (!lists_.is_extra || at < 0) return at;
    return static_cast<std::size_t>(at) < lists_.entries.size() && entry(at).node == &n ? at : -1;
  }
  // The place of an operand to which something flows, else -1.
  int place_below(TapeNode const* operand) {
    if (operand == nullptr || !operand->requires_grad) return -1;
    int const at = known_place(*operand);
    return capturing_ && at >= 0 && entry(at).node == nullptr ? -1 : at;
  }
  int place_of(TapeNode& n) {
    if (int const at = known_place(n); at >= 0) return at;
    int const at = static_cast<int>(lists_.entries.size());
    n.retain();
    lists_.entries.push_back(detail::Entry{&n});
    if (n.is_leaf()) lists_.leaves.insert(&n, at);
    else entry(at).before = std::exchange(n.visit, {0, at});
    return at;
  }
  static void drop_ct(detail::Entry& e) {
    if (e.ct == nullptr) return;
    e.ct->~Array();
    give_packed(std::exchange(e.ct, nullptr), sizeof(Array));
  }
  static void drop_node(detail::Entry& e) {
    TapeNode* const n = std::exchange(e.node, nullptr);
    if (n == nullptr) return;
    if (!n->is_leaf()) n->visit = e.before;
    n->release();
  }
  static void drop(detail::Entry& e) {
    drop_ct(e);
    drop_node(e);
  }

  // The list is also the queue of the search.
  void find_nodes() {
    receive(place_of(root_), Array(ct_));
    for (std::size_t i = 0; i < lists_.entries.size(); ++i) find_operands(*lists_.entries[i].node);
  }
  void find_operands(TapeNode& n) {
    if (n.spent)
      raise("backward: through ", n.rule->name,
            ", whose values an earlier pass has freed; give that pass {.retain_graph = true}");
    for (int k = 0; k < n.arity; ++k)
      if (TapeNode* const operand = n.in(k); operand != nullptr && operand->requires_grad) {
        place_of(*operand);
        if (!operand->is_leaf()) ++operand->visit.pending;
      }
  }

  // Leaves only what is between the value and those that are wanted. A rule of one's own that takes gradients has all
  // of the graph around it above its operands, and would record all of it once more.
  void drop_what_leads_nowhere() {
    std::vector<int>& order = lists_.ready;  // users before their operands
    order.push_back(0);
    for (std::size_t i = 0; i < order.size(); ++i)
      for_operands(order[i], [&](int at) {
        if (!entry(at).node->is_leaf() && --entry(at).node->visit.pending == 0) order.push_back(at);
      });
    for (detail::Entry& e : lists_.entries) e.leads = e.wanted;
    for (std::size_t i = order.size(); i-- > 0;)
      for_operands(order[i], [&](int at) { entry(order[i]).leads |= entry(at).leads; });
    order.clear();
    for (detail::Entry& e : lists_.entries)
      if (!e.leads) drop_node(e);
    for (std::size_t i = 0; i < lists_.entries.size(); ++i)
      for_operands(static_cast<int>(i), [&](int at) {
        if (!entry(at).node->is_leaf()) ++entry(at).node->visit.pending;
      });
  }
  template <class F>
  void for_operands(int at, F const& f) {
    TapeNode* const n = entry(at).node;
    for (int k = 0; n != nullptr && k < n->arity; ++k)
      if (int const below = place_below(n->in(k)); below >= 0) f(below);
  }

  void propagate() {
    no_grad const mode(create_);
    if (!root_.is_leaf() && entry(0).node != nullptr)
      lists_.ready.push_back(0);  // all others wait for somebody
    while (!lists_.ready.empty()) {
      detail::Entry& e = entry(lists_.ready.back());
      lists_.ready.pop_back();
      TapeNode& n = *e.node;
      if (e.has_ct()) {
        if (n.extras != nullptr) {
          run_hooks(e);
          if (n.retains_grad && !capturing_) add_to_grad(e);
        }
        if (create_) pass_on(e);
        else if (n.payload == TapeNode::Payload::numbers) pass_numbers_on(n, number_of(e));
        else if (n.payload == TapeNode::Payload::position) pass_position_on(e);
        else if (n.rule->part != nullptr) pass_part_on(e);
        else pass_on(e);
      }
      leave(n);
      if (!e.wanted) drop_ct(e);
      drop_node(e);
    }
  }
  // The node has sent what it had to: its operands may be ready, and nobody will ask for its values again. They are
  // held by the pass, so that none is freed here.
  void leave(TapeNode& n) {
    for (int k = 0; k < n.arity; ++k) {
      TapeNode* const operand = n.in(k);
      if (operand == nullptr) continue;
      if (!operand->is_leaf() && place_below(operand) >= 0 && --operand->visit.pending == 0)
        lists_.ready.push_back(operand->visit.place);
      if (!keep_) n.in(k) = nullptr, operand->release();
    }
    if (keep_) return;
    n.spent = true;
    n.drop_values();
  }

  // By the rule for arrays.
  [[gnu::noinline]] void pass_on(detail::Entry& e) {
    TapeNode& n = *e.node;
    if (e.ct != nullptr) apply_rule(n, *e.ct);
    else apply_rule(n, from_number(e.number, n.number));
  }
  void apply_rule(TapeNode& n, Array const& ct) {
    dfdx::detail::Operands values;
    if (n.payload == TapeNode::Payload::numbers) {
      for (int k = 0; k < n.arity; ++k) values.add([&] { return from_number(n.numbers()[k], n.number); });
      Site<Array> site{values.data(), from_number(n.numbers()[n.arity], n.number), {}};
      send(n, ct, values.data(), site);
    } else if (n.payload == TapeNode::Payload::position) {
      dfdx::detail::PackedPosition& p = dfdx::detail::position_of(n);
      values.add([&] { return p.whole.unpack(); });
      Site<Array> site{values.data(), {}, Attrs{{p.at}}};
      send(n, ct, values.data(), site);
    } else {
      dfdx::detail::PackedArray* p = dfdx::detail::arrays_of(n);
      for (int k = 0; k < n.arity; ++k, p = p->next()) values.add([&] { return p->unpack(); });
      Site<Array> site{values.data(), p->unpack(), dfdx::detail::attrs_of(n)};
      send(n, ct, values.data(), site);
    }
  }
  void send(TapeNode& n, Array const& ct, Array* values, Site<Array>& site) {
    if (create_) {
      for (int k = 0; k < n.arity; ++k) link(values[k], n.in(k));
      link(site.y, &n);
    }
    Vec<Array> common;
    site.common = &common;
    for (int k = 0; k < n.arity; ++k) {
      int const to = place_below(n.in(k));
      if (to < 0) continue;
      if (n.payload == TapeNode::Payload::arrays) check_versions(n, k);
      Array c = n.rule->vjp(ct, site, k);
      if (c.empty()) continue;
      if (anomaly_ && dfdx::detail::has_nan(c) && !dfdx::detail::has_nan(ct)) raise_anomaly(n, k, c.shape());
      receive(to, std::move(c));
    }
  }
  void pass_numbers_on(TapeNode& n, double ct) {
    PlainNumber cts[max_arity];
    n.rule->vjp_of_numbers(ct, n.numbers(), cts);
    for (int k = 0; k < n.arity; ++k) {
      int const to = place_below(n.in(k));
      if (to < 0) continue;
      if (anomaly_ && cts[k].value != cts[k].value && ct == ct) raise_anomaly(n, k, {});
      receive(to, cts[k].value, n.number);
    }
  }
  // Of an op that reads a part of its operand: only that part of the operand's cotangent is touched, so that a loop
  // over the elements of an array costs what the elements cost.
  void pass_position_on(detail::Entry& e) {
    TapeNode& n = *e.node;
    int const to = place_below(n.in(0));
    if (to < 0) return;
    dfdx::detail::PackedPosition& p = dfdx::detail::position_of(n);
    Array& total = total_of(to, p.whole);
    if (!e.has_number) return detail::add_to<Lazy>(total.part(p.at), *e.ct);
    index_t const at = p.at * total.strides()[0];
    if (n.number == DType::f64) reinterpret_cast<double*>(total.bytes())[at] += e.number;
    else reinterpret_cast<float*>(total.bytes())[at] += static_cast<float>(e.number);
  }
  void pass_part_on(detail::Entry& e) {
    TapeNode& n = *e.node;
    int const to = place_below(n.in(0));
    if (to < 0) return;
    Array& total = total_of(to, *dfdx::detail::arrays_of(n));
    Array const ct = as_array(e, n.number);
    detail::add_to<Lazy>(n.rule->part(dfdx::detail::attrs_of(n), ct.meta(), total), ct);
  }
  // The cotangent that an entry has so far, in memory that may be written to; zeros if none.
  Array& total_of(int at, dfdx::detail::PackedArray& like) {
    detail::Entry& e = entry(at);
    if (e.ct == nullptr) {
      Device const device = e.node->device();
      set_ct(e, Array(like.unpack().meta(), device));
      if (device.is_cpu()) op::detail::set_zero(e.ct->operand());
      else dfdx::detail::device_memory->zero(e.ct->bytes(), e.ct->storage()->bytes(), device);
      e.is_ours = true;
    } else if (!e.is_ours || e.ct->storage()->shared()) {
      detail::make_ours(*e.ct);
      e.is_ours = true;
    }
    return *e.ct;
  }
  [[noreturn, gnu::noinline]] static void raise_anomaly(TapeNode const& n, int k, Shape const& s) {
    raise("backward of ", n.rule->name, ": made NaN of numbers, in the gradient of operand ", k, " of shape ",
          s);
  }

  static void link(Array& x, TapeNode* node) {
    if (node == nullptr || x.empty()) return;
    node->retain();
    x.put_on_tape(node);
    if (x.ndim() == 0 && detail::is_ours(x)) x.storage()->version(node->version);
  }
  static void check_versions(TapeNode& n, int which) {
    dfdx::detail::PackedArray* p = dfdx::detail::arrays_of(n);
    for (int k = 0; k <= n.arity; ++k, p = p->next()) {
      unsigned const bit = k < n.arity ? 1u << k : dfdx::detail::reads_result;
      if ((n.rule->reads(which) & bit) == 0 || p->storage == nullptr || p->storage->version() == p->version)
        continue;
      Shape const s = p->unpack().shape();
      if (k == n.arity)
        raise("backward of ", n.rule->name, ": its result of shape ", s, " was changed in place since");
      raise("backward of ", n.rule->name, ": its operand ", k, " of shape ", s,
            " was changed in place since");
    }
  }

  static Array from_number(double v, DType d) {
    return d == DType::f32 ? Array::number(static_cast<float>(v)) : Array::number(v);
  }
  static Array as_array(detail::Entry const& e, DType d) {
    return e.ct != nullptr ? *e.ct : from_number(e.number, d);
  }
  static double number_of(Array const& x) {
    if (dfdx::detail::is_elsewhere(x)) return x.item();
    bool const is_plain = x.dtype() == DType::f64 || x.dtype() == DType::f32;
    return is_plain ? dfdx::detail::one_number(x) : read_real(x.operand(), 0);
  }
  static double number_of(detail::Entry const& e) { return e.ct != nullptr ? number_of(*e.ct) : e.number; }
  static void set_ct(detail::Entry& e, Array&& ct) {
    if (e.ct == nullptr) e.ct = ::new (take_packed(sizeof(Array))) Array(std::move(ct));
    else *e.ct = std::move(ct);
    e.has_number = e.is_ours = false;
  }

  // To where the node's value lies: that of a number on the CPU beside what lies on a device comes from there.
  static Array brought(Array ct, TapeNode const& n) {
    return ct.device() == n.device() ? ct : dfdx::detail::moved(n.device(), ct);
  }
  void receive(int at, double ct, DType d) {
    detail::Entry& e = entry(at);
    if (e.ct != nullptr || !e.node->is_number()) return receive(at, from_number(ct, d));
    e.number += ct;
    e.has_number = true;
  }
  void receive(int at, Array&& ct) {
    detail::Entry& e = entry(at);
    if (!create_ && e.node->is_number() && e.ct == nullptr) return receive(at, number_of(ct), e.node->number);
    if (ct.device() != e.node->device()) ct = brought(std::move(ct), *e.node);
    if (e.ct == nullptr) set_ct(e, std::move(ct));
    else add(*e.ct, ct);
  }
  void add(Array& total, Array const& x) const {
    using dfdx::detail::repeats_one;
    if (create_) {
      total = apply<op::add>(dfdx::detail::lazy<Lazy>(total), x);
    } else if (detail::is_ours(total)) {
      detail::add_to<Lazy>(total, x);
    } else if (repeats_one(total) && repeats_one(x)) {
      Array const one = apply<op::add>(dfdx::detail::lazy<Lazy>(total.view({}, {})), x.view({}, {}));
      total = one.view(total.shape(), total.strides());
    } else {
      total = apply<op::add>(dfdx::detail::lazy<Lazy>(total), x);
      detail::make_ours(total);
    }
  }

  static void run_hooks(detail::Entry& e) {
    TapeNode& n = *e.node;
    if (n.extras == nullptr || n.extras->hooks == nullptr) return;
    Array ct = as_array(e, n.number);
    for (dfdx::detail::TapeHook* h = n.extras->hooks; h != nullptr; h = h->next) {
      Array changed = h->call(ct);
      if (!(changed.meta() == ct.meta()))
        raise("register_hook: gradient of ", ct.dtype(), " ", ct.shape(), " required, got ", changed.dtype(),
              " ", changed.shape());
      ct = brought(std::move(changed), n);
    }
    set_ct(e, std::move(ct));
  }
  void add_to_grad(detail::Entry& e) const {
    dfdx::detail::TapeExtras& extras = dfdx::detail::extras_of(*e.node);
    dfdx::detail::TapeExtras::Lock const lock(extras);
    no_grad const mode(create_);
    bool const is_last = e.node->is_leaf() && e.ct != nullptr;  // so its memory may be taken over
    Array ct = is_last ? std::move(*e.ct) : as_array(e, e.node->number);
    if (is_last) drop_ct(e);
    if (!extras.grad.empty()) return add(extras.grad, ct);
    if (!create_) detail::make_ours(ct);
    extras.grad = std::move(ct);
  }

  TapeNode& root_;
  Array const& ct_;
  detail::Lists<Lazy>& lists_ = detail::take_lists<Lazy>();
  bool create_, keep_, capturing_ = false, anomaly_ = detect_anomaly::is_enabled();
};

}  // namespace dfdx::tape
