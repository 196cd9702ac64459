// SPDX-License-Identifier: BSL-1.0
// Recording on the run-time tape: what bind does after it has run an op on values that require gradients.
#pragma once

#include <cstddef>
#include <utility>

#include <dfdx/ops/op.hpp>
#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

namespace detail {

inline constexpr unsigned reads_result = 1u << max_arity;

template <class Op>
void vjp_of_numbers(double ct, double const* values, PlainNumber* cts) {
  PlainNumber x[Op::arity];
  for (int k = 0; k < Op::arity; ++k) x[k] = {values[k], 1u << k};
  Site<PlainNumber> const site{x, PlainNumber{values[Op::arity], reads_result}, Attrs{}};
  for (int k = 0; k < Op::arity; ++k) cts[k] = op::detail::vjp<Op, PlainNumber>(PlainNumber{ct, 0}, site, k);
}

template <class Op>
constexpr auto numbers_rule() {
  if constexpr (Op::elementwise) return &vjp_of_numbers<Op>;
  else return nullptr;
}
template <class Op>
constexpr auto reads_rule() {
  if constexpr (Op::elementwise) return nullptr;
  else return &Op::reads;
}
template <class Op>
constexpr auto part_rule() {
  if constexpr (requires { &Op::part; }) return &Op::part;
  else return nullptr;
}
/// Known - an Array whose elements are known to be of type T. Rules of products compute with it where operands were
/// Tensors: products of other dtypes, which are much to compile, are not brought with them.
template <class T>
struct Known : Array {
  Known() = default;
  explicit Known(Array const& x) : Array(x) {}
  explicit Known(Array&& x) : Array(std::move(x)) {}
};
template <class Op, class T>
Array vjp_of_known(Array const& ct, Site<Array> const& s, int which) {
  Known<T> x[Op::arity];
  for (int k = 0; k < Op::arity; ++k) static_cast<Array&>(x[k]) = s.x[k];
  static_assert((Op::reads(0) & reads_result) ==
                0);  // so y is left out: copies cost as much as a small product
  Site<Known<T>> const site{x, {}, s.attrs};
  return op::detail::vjp<Op>(Known<T>(ct), site, which);
}
template <class Op, class T>
constexpr TapeRule::Vjp vjp_rule() {
  if constexpr (std::is_void_v<T>) return &op::detail::vjp<Op, Array>;
  else return &vjp_of_known<Op, T>;
}

template <class Op, class T>
inline constinit TapeRule const constant_rule{Op::name,           Op::arity,        vjp_rule<Op, T>(),
                                              numbers_rule<Op>(), reads_rule<Op>(), part_rule<Op>()};
// Not inline, so that one source file may compile it for many (separate.hpp): rules call ops, whose rules call others.
// T is the element type of all operands where that is known and helps.
template <class Op, class T = void>
TapeRule const& tape_rule() {
  return constant_rule<Op, T>;
}

template <int = 0>
bool has_nan(Array const& x) {
  if (!is_floating(x.dtype()) || x.empty()) return false;
  if (is_elsewhere(x)) return has_nan(here(x));
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

[[noreturn, gnu::noinline]] inline void refuse_changed(TapeRule const& rule, int k, Shape const& s) {
  raise(rule.name, ": operand ", k, " of shape ", s,
        " was changed in place, through another view, after it was recorded");
}
// The node of an operand as it is now.
inline TapeNode* checked_node(TapeRule const& rule, Array const& x, int k) {
  TapeNode* const node = current_node(x);
  if (node == nullptr) refuse_changed(rule, k, x.shape());
  return node;
}

// Through which operands a derivative flows (bit k for operand k), and which of the values its rule will read then;
// refuses operands that are not what was recorded.
struct Flow {
  unsigned through = 0, reads = 0;
  TapeNode* from[max_arity];  // of those operands

  Flow(TapeRule const& rule, Array const* const* x, int n) {
    for (int k = 0; k < n; ++k) {
      if (x[k] == nullptr || !x[k]->requires_grad()) continue;
      unsigned const r = rule.reads(k);
      if ((r & PlainNumber::nothing) != 0) continue;
      from[k] = checked_node(rule, *x[k], k);
      reads |= r;
      through |= 1u << k;
    }
  }
};

inline void link(TapeNode& node, Array& y, TapeNode* const* from, int n, unsigned through) {
  node.arity = static_cast<std::uint8_t>(n);
  for (int k = 0; k < n; ++k) {
    if ((through >> k & 1u) == 0) continue;
    node.in(k) = from[k];
    from[k]->retain();
  }
  if (y.storage() != nullptr) node.version = y.storage()->version();
  if (y.ndim() == 0 && (y.dtype() == DType::f32 || y.dtype() == DType::f64) && !is_elsewhere(y))
    node.number = y.dtype();
  node.device(y.device());
  y.put_on_tape(&node);
}

[[noreturn, gnu::noinline]] inline void raise_anomaly(char const* op, Shape const& s) {
  raise(op, ": made NaN of numbers, in a result of shape ", s);
}

/// Makes y, which `rule`'s op made of the n operands x, a value of the tape, if a derivative flows.
[[gnu::noinline]] inline void record_on_tape(TapeRule const& rule, Attrs const& attrs, Array& y,
                                             Array const* const* x, int n) {
  Flow const flow(rule, x, n);
  if (flow.through == 0 || !is_floating(y.dtype())) return;
  if (detect_anomaly::is_enabled() && has_nan(y)) {
    bool of_numbers = true;
    for (int k = 0; k < n; ++k) of_numbers = of_numbers && !has_nan(*x[k]);
    if (of_numbers) raise_anomaly(rule.name, y.shape());
  }
  if (n > max_arity)
    raise(rule.name, ": too many operands");  // (g++ -O3 warns of the arrays below otherwise)
  PackedArray values[max_arity + 1] = {};
  std::size_t bytes = bytes_before_arrays;
  for (int k = 0; k <= n; ++k) {
    bool const is_read = (flow.reads & (k < n ? 1u << k : reads_result)) != 0;
    values[k] = PackedArray::describe(k < n ? *x[k] : y, is_read);
    bytes += values[k].bytes();
  }
  TapeNode* const node = TapeNode::make(&rule, TapeNode::Payload::arrays, bytes);
  ::new (&attrs_of(*node)) Attrs(attrs);
  PackedArray* to = arrays_of(*node);
  for (int k = 0; k <= n; ++k, to = to->next()) {
    ::new (static_cast<void*>(to)) PackedArray(values[k]);
    to->pack(k < n ? *x[k] : y);
  }
  link(*node, y, flow.from, n, flow.through);
}

/// The same for scalars: `values` are those of the N operands (of which some may be plain numbers, x[k] == nullptr)
/// and of the result. (A template, so that nothing is asked twice of what is the most frequent node by far.)
template <int N>
[[gnu::noinline]] void record_numbers(TapeRule const& rule, double const* values, Array& y,
                                      Array const* const* x) {
  Flow const flow(rule, x, N);
  if (flow.through == 0) return;
  if (detect_anomaly::is_enabled() && values[N] != values[N]) {
    bool of_numbers = true;
    for (int k = 0; k < N; ++k) of_numbers = of_numbers && values[k] == values[k];
    if (of_numbers) raise_anomaly(rule.name, y.shape());
  }
  TapeNode* const node = TapeNode::make(&rule, TapeNode::Payload::numbers, sizeof(double) * (N + 1));
  for (int k = 0; k <= N; ++k) node->numbers()[k] = values[k];
  link(*node, y, flow.from, N, flow.through);
}

/// The same for y, the part of x at a position of its first axis.
[[gnu::noinline]] inline void record_position(TapeRule const& rule, index_t at, Array& y, Array const& x) {
  if (!x.requires_grad()) return;
  TapeNode* const from = checked_node(rule, x, 0);
  PackedArray const whole = PackedArray::describe(x, false);
  TapeNode* const node =
      TapeNode::make(&rule, TapeNode::Payload::position, offsetof(PackedPosition, whole) + whole.bytes());
  PackedPosition& to = *::new (node->payload_memory()) PackedPosition{at, whole};
  to.whole.pack(x);
  link(*node, y, &from, 1, 1);
}

}  // namespace detail

}  // namespace dfdx
