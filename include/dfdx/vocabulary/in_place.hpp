// SPDX-License-Identifier: BSL-1.0
// Changes in place, in PyTorch's manner: a.add_(b), a += b, a.fill_(0). The result goes to the target's memory, seen
// through every view of it; on the tape the target then stands for the new value, and recorded values that view its
// memory follow (rebase.hpp). A backward pass that needs the old one says so.
#pragma once

#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/rebase.hpp>

namespace dfdx {

namespace detail {

inline void check_target(char const* name, Array const& target) {
  if (target.empty()) raise(name, ": the target of shape ", target.shape(), " holds no memory");
  if (overlaps_itself(target.shape(), target.strides()))
    raise(name, ": the target of shape ", target.shape(), " overlaps itself");
  if (!is_grad_enabled() || !target.requires_grad()) return;
  if (target.is_leaf() || target.storage()->of_leaf())
    raise(name, ": the target of shape ", target.shape(),
          target.is_leaf() ? " is a leaf that requires a gradient; change it under no_grad"
                           : " is a part of a leaf that requires a gradient; change it under no_grad");
}

/// Puts a result of the target's shape into its memory, and the target in the result's place on the tape.
// (A template, so that programs without changes in place do not compile it.)
template <std::size_t Lazy = 0>
void settle(char const* name, Array& target, Array result) {
  if (!(result.shape() == target.shape()))
    raise(name, ": a result of shape ", result.shape(), " does not fit the target of shape ", target.shape());
  if (result.dtype() != target.dtype()) {
    if (!is_floating(target.dtype()) || !is_floating(result.dtype()))
      raise(name, ": a result of ", result.dtype(), " does not fit the target of ", target.dtype());
    result = cast_to(lazy<Lazy>(result), target.dtype());
  }
  check_target(name, target);
  // Recorded values that view the memory would follow (rebase.hpp); plain ones would not know.
  if (is_grad_enabled() && result.requires_grad() && !target.requires_grad() &&
      target.storage()->handles() > 1)
    raise(name, ": a recorded value cannot change the target of shape ", target.shape(),
          ", memory without a gradient that others view; use index_put_, stack the parts, or clone() the "
          "target");
  copy_values(result, target);
  target.storage()->changed();
  if (!is_grad_enabled() || (target.is_leaf() && !result.requires_grad())) return;
  TapeNode* node = result.requires_grad() ? result.tape() : nullptr;
  if (node != nullptr) {
    node->retain();
    node->version = target.storage()->version();
  } else if (target.requires_grad() && target.storage()->handles() > 1) {
    node = node_of_plain<Lazy>(target);
  }
  target.put_on_tape(node);
  remember_change<Lazy>(target);
}

// The target as it was, in memory of its own: for a rule that reads it after the change.
template <int = 0>
Array as_it_was(Array const& target) {
  Array old = moved(target.device(), target);
  if (TapeNode* const node = target.requires_grad() ? current_node(target) : nullptr) {
    node->retain();
    old.put_on_tape(node);
    old.storage()->version(node->version);
  }
  return old;
}

// target = f(target): where a program is being recorded there is no memory, and a new value takes its name.
template <class A, class F>
constexpr void change(char const* name, A& target, F const& f) {
  if (target.recorded()) target = A(f(target));
  else settle(name, target, f(static_cast<Array const&>(target)));
}

}  // namespace detail

/// += -= *= /= - the operation in place; also on an element or a slice of an Array, a[2] += 1. The other operand is
/// broadcast, the target is not.
///
/// Shapes    a: [S...], x: broadcasts to [S...] -> a
/// Dtypes    those of + - * /; the result is cast to a, if both are floating, else it must be a's
/// Errors    "add_: a result of shape [4, 3] does not fit the target of shape [3]"; a leaf that requires a gradient; a
///           target that overlaps itself
/// Source    PyTorch's add_, sub_, mul_, div_
template <class A, class X>
  requires leaf<A> && math_operands<A, X>
constexpr A&& operator+=(A&& a, X const& x) {
  detail::change("add_", a, [&](auto const& v) { return v + x; });
  return static_cast<A&&>(a);
}
template <class A, class X>
  requires leaf<A> && math_operands<A, X>
constexpr A&& operator-=(A&& a, X const& x) {
  detail::change("sub_", a, [&](auto const& v) { return v - x; });
  return static_cast<A&&>(a);
}
template <class A, class X>
  requires leaf<A> && math_operands<A, X>
constexpr A&& operator*=(A&& a, X const& x) {
  detail::change("mul_", a, [&](auto const& v) {
    if constexpr (leaf<X>)  // whose gradient needs what the target was
      if (!v.recorded() && is_grad_enabled() && x.requires_grad() && !v.empty())
        return detail::untyped(detail::as_it_was<sizeof(A)>(v) * x);
    return detail::untyped(v * x);
  });
  return static_cast<A&&>(a);
}
template <class A, class X>
  requires leaf<A> && math_operands<A, X>
constexpr A&& operator/=(A&& a, X const& x) {
  detail::change("div_", a, [&](auto const& v) { return v / x; });
  return static_cast<A&&>(a);
}

template <class X>
Array& Array::add_(X const& x) {
  return *this += x;
}
template <class X>
Array& Array::sub_(X const& x) {
  return *this -= x;
}
template <class X>
Array& Array::mul_(X const& x) {
  return *this *= x;
}
template <class X>
Array& Array::div_(X const& x) {
  return *this /= x;
}
template <class N>
Array& Array::fill_(N value) {
  Array filled = detail::full_of(detach(), meta(), value, "fill_");  // the array that it is like is gone then
  detail::settle("fill_", *this, std::move(filled));
  return *this;
}
template <int Lazy>
Array& Array::copy_(Array const& x) {
  Shape const s = op::broadcast_shapes("copy_", shape(), x.shape(), nullptr);
  if (!(s == shape()))
    raise("copy_: a value of shape ", x.shape(), " does not fit the target of shape ", shape());
  // A node of its own, not that of x.
  detail::settle("copy_", *this,
                 apply<op::copy>(broadcast_to(cast_to(detail::lazy<Lazy>(x), dtype()), shape())));
  return *this;
}
template <int>
Array& Array::uniform_(Key key, double low, double high) {
  detail::settle("uniform_", *this, uniform(shape(), key, low, high, dtype()));
  return *this;
}
template <int Lazy>
Array& Array::normal_(Key key, double mean, double deviation) {
  detail::settle("normal_", *this,
                 detail::lazy<Lazy>(randn(shape(), key, dtype()).detach()) * deviation + mean);
  return *this;
}

/// masked_fill_(a, mask, value) - the value where the mask holds; the mask is broadcast.
///
/// Shapes    a: [S...], mask: broadcasts to [S...] -> a
/// Dtypes    a: any, mask: bool; the value without a fraction for integers, a bool for bool
/// Errors    as for +=
/// Source    PyTorch's masked_fill_
template <class A, class M, class N>
  requires leaf<A> && leaf<M> && std::is_arithmetic_v<N>
A& masked_fill_(A& a, M const& mask, N value) {
  detail::change("masked_fill_", a, [&](auto const& v) { return masked_fill(v, mask, value); });
  return a;
}

/// index_put_(a, value, items...) - a(items...) = value: the items are those of a(...), arrays of indices and of truths
/// among them; the value, an Array or a number, is broadcast. Where a place is named twice the last value counts.
///
/// Shapes    a: [S...], value: broadcasts to the places -> a
/// Dtypes    a: any, the value is cast to it; arrays of indices: i32 i64 u8 bool
/// Errors    "index_put_: a value of shape [3] does not fit places of shape [2]"; those of a(items...)
/// Source    PyTorch's index_put_
template <class X, class... I>
Array& index_put_(Array& a, X const& value, I const&... items) {
  // Which places these are, by the numbers of the elements.
  Array const places = arange(a.size()).reshape(Extents(a.shape()))(items...);
  Array const v = [&] {
    if constexpr (std::is_arithmetic_v<X>)
      return detail::full_of(places, Meta{a.dtype(), places.shape()}, value, "index_put_");
    else return cast_to(detail::untyped(value), a.dtype());
  }();
  if (!(op::broadcast_shapes("index_put_", places.shape(), v.shape(), nullptr) == places.shape()))
    raise("index_put_: a value of shape ", v.shape(), " does not fit places of shape ", places.shape());
  detail::change("index_put_", a, [&](Array const& old) {
    return scatter(reshape<-1>(detail::lazy<sizeof(X)>(old)), 0, reshape<-1>(detail::lazy<sizeof(X)>(places)),
                   reshape<-1>(broadcast_to(detail::lazy<sizeof(X)>(v), places.shape())))
        .reshape(Extents(old.shape()));
  });
  return a;
}

}  // namespace dfdx
