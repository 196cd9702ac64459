// SPDX-License-Identifier: BSL-1.0
// Recording on the run-time tape: what bind does after it has run an op on values that require gradients.
#pragma once

#include <dfdx/ops/op.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

namespace detail {

/// Among the bits of TapeRule::reads: no derivative flows to the operand.
inline constexpr unsigned nothing_flows = 1u << 31;
inline constexpr unsigned reads_result = 1u << max_arity;

// What the rule of an elementwise op reads for one operand: it is recorded once, on numbers.
template <class Op>
constexpr unsigned traced_reads(int which) {
  Meta metas[max_arity] = {};
  for (Meta& m : metas) m.dtype = DType::f64;
  if (!Op::infer(Attrs{}, metas, nullptr).valid()) metas[0].dtype = DType::boolean;
  if (!Op::infer(Attrs{}, metas, nullptr).valid()) return nothing_flows;  // of booleans
  Graph g;
  auto const input = [&](Meta const& m) { return g.push(Node{nullptr, Attrs{}, m, {}}); };
  Sym x[max_arity];
  for (int k = 0; k < Op::arity; ++k) x[k] = input(metas[k]);
  Site<Sym> const site{x, input(Op::infer(Attrs{}, metas, nullptr)), Attrs{}};
  Sym const ct = input(site.y.meta());
  int const first = g.size();
  Sym const r = op::detail::vjp<Op, Sym>(ct, site, which);
  if (!r) return nothing_flows;
  unsigned reads = 0;
  auto const read = [&](int id) {
    if (id < Op::arity) reads |= 1u << id;
    if (id == site.y.id) reads |= reads_result;
  };
  for (int i = first; i < g.size(); ++i)
    for (int k = 0; k < g[i].arity(); ++k) read(g[i].in[k]);
  read(r.id);
  return reads;
}

template <class Op>
constexpr TapeRule make_tape_rule() {
  TapeRule r{Op::name, &op::detail::vjp<Op, Array>};
  if constexpr (requires { &Op::part; }) r.part = &Op::part;
  for (int k = 0; k < Op::arity; ++k) {
    if constexpr (Op::elementwise) r.reads[k] = traced_reads<Op>(k);
    else r.reads[k] = Op::reads(k);
  }
  return r;
}
template <class Op>
inline constexpr TapeRule tape_rule = make_tape_rule<Op>();

inline bool has_nan(Array const& x) {
  if (!is_floating(x.dtype()) || x.empty()) return false;
  Operand const o = x.operand();
  Strides const strides[1] = {x.strides()};
  bool found = false;
  walk<1>(x.shape(), strides, [&](index_t const(&at)[1]) {
    double const v = read_real(o, at[0]);
    found = found || v != v;
  });
  return found;
}

// Whether results are to be recorded.
template <class... X>
bool on_tape(X const&... x) {
  return (... || (x.tape() != nullptr)) && is_grad_enabled();
}

/// Makes y, which `rule`'s op made of the n operands x, a value of the tape, if a derivative flows.
[[gnu::noinline]] inline void record_on_tape(TapeRule const& rule, Attrs const& attrs, Array& y,
                                             Array const* const* x, int n) {
  unsigned reads = 0;
  bool flows = false;
  for (int k = 0; k < n; ++k) {
    if (!x[k]->requires_grad() || (rule.reads[k] & nothing_flows) != 0) continue;
    TapeNode const& from = *x[k]->tape();
    if (!from.is_leaf() && from.version != x[k]->storage()->version())
      raise(rule.name, ": operand ", k, " of shape ", x[k]->shape(),
            " was changed in place, through another view, after it was recorded");
    reads |= rule.reads[k];
    flows = true;
  }
  if (!flows || !is_floating(y.dtype())) return;
  if (detect_anomaly::is_enabled() && has_nan(y)) {
    bool of_numbers = true;
    for (int k = 0; k < n; ++k) of_numbers = of_numbers && !has_nan(*x[k]);
    if (of_numbers) raise(rule.name, ": made NaN of numbers, in a result of shape ", y.shape());
  }
  TapeNode* const node = TapeNode::make(&rule);
  TapeSaved* const saved = node->saved = TapeSaved::make(attrs, n);
  for (int k = 0; k <= n; ++k) {
    Array const& v = k < n ? *x[k] : y;
    bool const is_read = (reads & (k < n ? 1u << k : reads_result)) != 0;
    saved->values()[k] = is_read ? v.detach() : Array(nullptr, -1, v.meta());
    if (is_read && v.storage() != nullptr) saved->version[k] = v.storage()->version();
    if (k == n || !v.requires_grad() || (rule.reads[k] & nothing_flows) != 0) continue;
    node->in[k] = v.tape();
    v.tape()->retain();
  }
  if (y.storage() != nullptr) node->version = y.storage()->version();
  y.put_on_tape(node);
}

}  // namespace detail

}  // namespace dfdx
