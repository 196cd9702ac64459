// SPDX-License-Identifier: BSL-1.0
// custom_vjp: a function with a rule of its own for reverse mode, in every regime.
#pragma once

#include <tuple>

#include <dfdx/vocabulary/elementwise.hpp>

namespace dfdx {

namespace op {

/// with_rule - y itself, but what flows back goes to the operands x by the rule R: what custom_vjp is made of. It is
/// gone when programs are simplified.
///
/// Math      z = y; d_x = R(ct, y, x...)
/// Shapes    y: [S...], x: any -> z: [S...]
/// Dtypes    any
/// Errors    "custom_vjp: has no rule for forward mode"
/// Source    jax.custom_vjp
template <class R, int Operands>
struct with_rule : operation {
  static_assert(Operands < max_arity, "custom_vjp: at most three operands");
  static constexpr char const* name = "custom_vjp";
  static constexpr Code code = Code::custom_vjp;
  static constexpr int arity = 1 + Operands;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr unsigned reads(int which) {
    return which == 0 ? PlainNumber::nothing : operation::reads(which) & ~1u;
  }

  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) {
      return V{};
    } else {
      auto const cts = [&]<std::size_t... K>(std::index_sequence<K...>) {
        return R{}(ct, s.y, s.x[K + 1]...);
      }(std::make_index_sequence<static_cast<std::size_t>(Operands)>{});
      V r{};
      if constexpr (requires { std::get<I - 1>(cts); }) r = std::get<I - 1>(cts);
      else r = cts;
      if (!(r.shape() == s.x[I].shape()))
        raise("custom_vjp: the rule gives ", r.shape(), " for operand ", I - 1, " of shape ", s.x[I].shape());
      return r;
    }
  }
  template <int I, class V>
  static constexpr V jvp(V const&, Site<V> const&) {
    if constexpr (I == 0) return V{};
    else raise("custom_vjp: has no rule for forward mode");
  }
};

}  // namespace op

namespace detail {

// A rule that is written for Tensors, called with values of the regime: these are given their types.
template <class R, class Y, class... X>
struct TypedRule {
  template <class V>
  constexpr auto operator()(V const& ct, V const& y, std::type_identity_t<V> const& x0,
                            auto const&... rest) const {
    return apply(ct, y, std::index_sequence_for<X...>{}, x0, rest...);
  }

 private:
  template <class T, class V>
  static constexpr T given(V const& v) {
    if constexpr (std::is_same_v<V, Array>) return T(typename T::Unchecked{}, v);
    else return T(typename T::Unchecked{}, Array(v));
  }
  template <class V, class T>
  static constexpr V taken(T const& t) {
    if constexpr (std::is_same_v<V, Array>) return static_cast<Array const&>(t);
    else return t.sym();
  }
  template <class V, std::size_t... K, class... Z>
  static constexpr auto apply(V const& ct, V const& y, std::index_sequence<K...>, Z const&... x) {
    auto const r = R{}(given<Y>(ct), given<Y>(y), given<X>(x)...);
    if constexpr (requires { std::get<0>(r); }) return std::tuple{taken<V>(std::get<K>(r))...};
    else return taken<V>(r);
  }
};

}  // namespace detail

/// CustomVjp - what custom_vjp returns.
template <class F, class R>
struct CustomVjp {
  template <operand... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (refused<X...>) {
      return Refused{};
    } else {
      auto const y = F{}(stop_gradient(x)...);
      using Y = std::remove_cvref_t<decltype(y)>;
      if constexpr (refused<Y>) return y;
      else {
        using Rule = typename decltype(rule_for<Y, X...>())::type;
        return detail::wrap<Y>(bind<op::with_rule<Rule, static_cast<int>(sizeof...(X))>>(
            Attrs{}, detail::untyped(y), detail::untyped(x)...));
      }
    }
  }

 private:
  // Rules that only take values of any kind are called with those, others with Tensors.
  template <class Y, class... X>
  static constexpr auto rule_for() {
    if constexpr ((typed<Y> && ... && typed<X>)) return std::type_identity<detail::TypedRule<R, Y, X...>>{};
    else return std::type_identity<R>{};
  }
};

/// custom_vjp - a function of one to three operands whose gradient is computed by a rule rather than through what it
/// does: rule(ct, y, x...) gives the cotangent of x, or a tuple of them. Both are captureless and written with the
/// vocabulary; given Tensors the rule gets Tensors too, and may use transforms. It is itself differentiable. Eagerly,
/// on the tape and in programs alike.
///
/// Example   examples/10_tape.cpp
/// Errors    "custom_vjp: the rule gives [2] for operand 0 of shape [3]"; "custom_vjp: has no rule for forward mode"
template <class F, class R>
constexpr CustomVjp<F, R> custom_vjp(F, R) {
  static_assert(std::is_empty_v<F> && std::is_empty_v<R>, "custom_vjp: captureless functions required");
  return {};
}

}  // namespace dfdx
