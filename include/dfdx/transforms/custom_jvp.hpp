// SPDX-License-Identifier: BSL-1.0
// custom_jvp: a function with a rule of its own for forward mode, which serves reverse mode too: it is linear in the
// tangents, and reverse mode is its transpose.
#pragma once

#include <dfdx/transforms/eager.hpp>
#include <dfdx/vocabulary/custom_vjp.hpp>

namespace dfdx {

namespace detail {

// The tangent that a rule gives for tangents of all operands.
template <class R, class V, class... X>
constexpr V tangent_by(V const& y, X const&... operands_and_tangents) {
  V const r = R{}(y, operands_and_tangents...);
  if (!(r.shape() == y.shape()))
    raise("custom_jvp: the rule gives ", r.shape(), " for a result of shape ", y.shape());
  return r;
}

// That for a tangent of operand I alone, paired with a cotangent of the result.
template <class R, std::size_t I>
struct PairedRule {
  template <class V, class... X>
  constexpr auto operator()(V const& t, V const& ct, V const& y, X const&... x) const {
    return sum(ct * along(t, y, x...));
  }
  template <class V, class... X>
  static constexpr V along(V const& t, V const& y, X const&... x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return tangent_by<R>(y, x..., (K == I ? t : full_as(x, x.meta(), 0))...);
    }(std::index_sequence_for<X...>{});
  }
};

template <class R>
struct TransposedRule {
  static constexpr bool has_tangent = true;
  template <class V, class... X>
  static constexpr V tangent(V const& y, X const&... all) {
    return tangent_by<R>(y, all...);
  }
  template <std::size_t I, class... X>
  static constexpr Sym cotangent(Sym const& ct, Sym const& y, X const&... x) {
    Sym const from = std::get<I>(std::tie(x...)), t = full_as(from, from.meta(), 0);
    Vec<Sym> const ends = {PairedRule<R, I>::along(t, y, x...)}, cts = {ct};
    Vec<int> const wrt = {t.id};
    return graph::pull_back(*t.graph, ends, cts, wrt)[0];
  }
  template <std::size_t I, class... X>
  static Array cotangent(Array const& ct, Array const& y, X const&... x) {
    Array const from = std::get<I>(std::tie(x...));
    return Eager<Grad<PairedRule<R, I>, Wrt<0>>>::call(full_as(from, from.meta(), 0), ct, y, x...);
  }
};

// A rule for each mode.
template <class Back, class Ahead>
struct RulesOfBothModes {
  static constexpr bool has_tangent = true;
  template <class V, class... X>
  static constexpr V tangent(V const& y, X const&... all) {
    return tangent_by<Ahead>(y, all...);
  }
  template <std::size_t I, class V, class... X>
  static constexpr V cotangent(V const& ct, V const& y, X const&... x) {
    return std::get<I>(Back{}(ct, y, x...));
  }
};

template <class R>
struct ForwardRules {
  template <class Y, class... X>
  using rule = TransposedRule<decltype(rule_for<R, Y, X..., X...>())>;
};

}  // namespace detail

/// CustomJvp - what custom_jvp returns.
template <class F, class R>
struct CustomJvp : detail::Ruled<F, detail::ForwardRules<R>> {};

/// custom_jvp - a function of one to four operands whose derivatives are computed by a rule rather than through what
/// it does: rule(y, x..., t...) gives the tangent of y for tangents t of the operands x, in which it must be linear.
/// Reverse mode is the transpose of that. Both are captureless and written with the vocabulary; given Tensors the rule
/// gets Tensors too. It is itself differentiable. Eagerly, on the tape and in programs alike.
///
/// Example   constexpr auto softplus = custom_jvp([](auto const& x) { return log(1.0 + exp(x)); },
///               [](auto const&, auto const& x, auto const& t) { return t * sigmoid(x); });
/// Errors    "custom_jvp: the rule gives [2] for a result of shape [3]"
/// Source    jax.custom_jvp
template <class F, class R>
constexpr CustomJvp<F, R> custom_jvp(F, R) {
  static_assert(std::is_empty_v<F> && std::is_empty_v<R>, "custom_jvp: captureless functions required");
  return {};
}

}  // namespace dfdx
