// SPDX-License-Identifier: BSL-1.0
// Control flow on values: cond and while_loop. In memory they are C++'s own; a compiled program, which has no branches,
// computes both sides, or a bounded number of rounds, and selects.
#pragma once

#include <dfdx/vocabulary/reduce.hpp>
#include <dfdx/vocabulary/scan.hpp>

namespace dfdx {

namespace detail {

// Leaf by leaf the one or the other of two trees of one type.
template <class P, class T>
constexpr T selected(P const& which, T const& yes, T const& no) {
  Vec<Array> a, b;
  visit(yes, [&](auto const& leaf) { a.push_back(leaf); });
  visit(no, [&](auto const& leaf) { b.push_back(leaf); });
  if (a.size() != b.size()) raise("cond: both branches must return a tree of the same leaves");
  std::size_t k = 0;
  auto const choose = [](auto const&... x) { return where(x...); };  // not compiled before it is called
  return filled(yes, [&] {
    Array const r = choose(static_cast<Array const&>(which), a[k], b[k]);
    if (!(r.shape() == a[k].shape() && r.shape() == b[k].shape()))
      raise("cond: the branches return ", a[k].shape(), " and ", b[k].shape());
    ++k;
    return r;
  });
}

// A tree to which no gradient flows.
template <class T>
constexpr T without_gradient(T value) {
  visit(value, [](auto& leaf) {
    if (is_floating(leaf.dtype())) leaf = stop_gradient(leaf);
  });
  return value;
}
// A value as it is, whose gradient is 0 where the condition does not hold, even if what it comes from is not finite.
template <class P, class T>
constexpr T gated(P const& condition, T const& value) {
  if constexpr (tree<T>) return selected(condition, value, without_gradient(value));
  else return value;
}

template <class P>
constexpr void require_condition(char const* name, P const& p) {
  if (p.shape().rank != 0 || p.dtype() != DType::boolean)
    raise(name, ": a condition of shape [] and dtype bool required, got ", p.dtype(), " ", p.shape());
}

}  // namespace detail

/// cond(condition, f, g, args...) - f(args...) where the condition holds, else g(args...). Of a condition in memory
/// only the one branch runs; in a compiled program both are computed and one is taken. Arguments then have the gradient
/// of that one, whatever the other makes of them; what the branches capture must be good for both.
///
/// Math      y = condition ? f(x) : g(x); the gradient of the branch taken
/// Shapes    condition: []; both branches return the same type and shapes
/// Dtypes    condition: bool
/// Errors    "cond: a condition of shape [] and dtype bool required, got f32 [2]";
///           "cond: the branches return [2] and [3]"
/// Source    jax.lax.cond
template <class P, class F, class G, class... A>
constexpr auto cond(P const& condition, F const& f, G const& g, A const&... args) {
  using Y = std::remove_cvref_t<decltype(f(args...))>;
  if constexpr (std::is_same_v<P, bool>) {
    return detail::either(condition, [&] { return f(args...); }, [&] { return Y(g(args...)); });
  } else if constexpr (refused<P, Y>) {
    return Refused{};
  } else {
    detail::require_condition("cond", condition);
    if (condition.recorded())
      return detail::selected(condition, f(detail::gated(condition, args)...),
                              Y(g(detail::gated(logical_not(condition), args)...)));
    return condition.item() != 0 ? f(args...) : Y(g(args...));
  }
}

/// while_loop(condition, body, init) - body applied again and again while condition(value) holds, on values in memory;
/// on the tape it is differentiable. while_loop<Max>(...) stops after Max rounds at the latest, and can be compiled:
/// then it goes through all of them and keeps what was when the condition ended (in the rounds that do not count the
/// body is given init, which it must be able to take). That is differentiable too.
///
/// Math      c_0 = init, c_{i + 1} = body(c_i) while condition(c_i)
/// Shapes    condition: -> []; body: a tree -> a tree of the same type
/// Dtypes    condition: bool; the leaves any, which they keep
/// Cost      compiled: one copy of the body, always Max rounds
/// Errors    "while_loop: a compiled loop needs a bound, while_loop<Max>"; "while_loop: a condition of shape [] and
///           dtype bool required, got f32 []"
/// Source    jax.lax.while_loop
template <std::size_t Max = 0, class F, class B, tree C>
constexpr C while_loop(F const& condition, B const& body, C const& init) {
  if (detail::graph_of(init) != nullptr) {
    if constexpr (Max == 0) {
      raise("while_loop: a compiled loop needs a bound, while_loop<Max>");
    } else {
      C const still = detail::without_gradient(init);
      auto const step = [&](C const& c) {
        auto const goes_on = condition(c);
        detail::require_condition("while_loop", goes_on);
        // In the rounds after the last the body goes on from init, which it can take, as what ended the loop need not.
        return detail::selected(goes_on, C(body(detail::selected(goes_on, c, still))), c);
      };
      return scan<Max>(step, init);
    }
  } else {
    C c = init;
    for (std::size_t i = 0; Max == 0 || i < Max; ++i) {
      auto const goes_on = condition(std::as_const(c));
      detail::require_condition("while_loop", goes_on);
      if (goes_on.item() == 0) break;
      c = body(std::as_const(c));
    }
    return c;
  }
}

}  // namespace dfdx
