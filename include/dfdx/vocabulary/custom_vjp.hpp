// SPDX-License-Identifier: BSL-1.0
// custom_vjp: a function with a rule of its own for reverse mode, in every regime.
#pragma once

#include <tuple>

#include <dfdx/vocabulary/elementwise.hpp>

namespace dfdx {

namespace op {

/// with_rule - y itself, but derivatives by the operands x are those of the rule R: what custom_vjp and custom_jvp are
/// made of. R gives R{}(ct, y, x...), the cotangents of all x; or, if it has a member `has_tangent`,
/// R::cotangent<I>(ct, y, x...), that of one, and R::tangent(y, x..., t...), the tangent of y; of R::through operands
/// if it says so, for those of others are nothing. It is gone when programs are simplified.
///
/// Math      z = y; d_x = R(ct, y, x...)
/// Shapes    y: [S...], x: any -> z: [S...]
/// Dtypes    any
/// Errors    "custom_vjp: has no rule for forward mode"
/// Source    jax.custom_vjp, jax.custom_jvp
template <class R, int Operands>
struct with_rule : operation {
  static_assert(Operands < max_arity, "custom_vjp: at most four operands");
  static constexpr char const* name = [] {
    if constexpr (requires { R::name; }) return R::name;
    else return "custom_vjp";
  }();
  static constexpr Code code = Code::custom_vjp;
  static constexpr int arity = 1 + Operands;
  static constexpr bool has_jvp = requires { R::has_tangent; };
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr unsigned reads(int which) {
    return which == 0 ? PlainNumber::nothing : operation::reads(which) & ~1u;
  }

  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (!flows(I)) {
      return V{};
    } else {
      V const r = on_operands([&](auto const&... x) { return cotangent<I - 1>(s, ct, s.y, x...); }, s);
      if (!shapes_agree(r.shape(), s.x[I].shape()))
        raise("custom_vjp: the rule gives ", r.shape(), " for operand ", I - 1, " of shape ", s.x[I].shape());
      return r;
    }
  }
  // The rule is for all tangents at once: it stands where the first of them flows.
  template <int I, class V>
  static constexpr V jvp(V const&, Site<V> const& s) {
    if constexpr (!flows(I)) {
      return V{};
    } else {
      for (int k = 1; k < I; ++k)
        if (s.tangents[k]) return V{};
      return on_operands(
          [&](auto const&... x) {
            return on_operands([&](auto const&... t) { return R::tangent(s.y, x..., given(t, x)...); },
                               Site<V>{s.tangents, {}, {}});
          },
          s);
    }
  }

 private:
  static constexpr bool flows(int which) {
    if constexpr (requires { R::through; }) return which > 0 && which <= R::through;
    else return which > 0;
  }
  template <class G, class V>
  static constexpr V on_operands(G const& g, Site<V> const& s) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return g(s.x[K + 1]...);
    }(std::make_index_sequence<static_cast<std::size_t>(Operands)>{});
  }
  template <std::size_t I, class V, class... X>
  static constexpr V cotangent(Site<V> const& s, V const& ct, V const& y, X const&... x) {
    if constexpr (requires { R::has_tangent; }) {
      return R::template cotangent<I>(ct, y, x...);
    } else {
      if (s.common != nullptr && !s.common->empty()) return (*s.common)[I];
      auto const cts = R{}(ct, y, x...);
      if constexpr (requires { std::get<I>(cts); }) {
        if (s.common != nullptr)
          std::apply([&](auto const&... each) { (s.common->push_back(each), ...); }, cts);
        return std::get<I>(cts);
      } else {
        return cts;
      }
    }
  }
  template <class V>
  static constexpr V given(V const& t, V const& x) {
    return t ? t : full_as(x, x.meta(), 0);
  }
};

}  // namespace op

namespace detail {

// A rule that is written for Tensors of types T..., called with values of the regime: these are given their types.
template <class R, class... T>
struct TypedRule {
  template <class V>
  constexpr auto operator()(V const& first, auto const&... rest) const {
    return apply<V>(first, rest...);
  }

 private:
  template <class U, class V>
  static constexpr U given(V const& v) {
    if constexpr (std::is_same_v<V, Array>) return U(typename U::Unchecked{}, v);
    else return U(typename U::Unchecked{}, Array(v));
  }
  template <class U, class V>
  static constexpr V taken(U const& t, V const& beside) {
    if constexpr (std::is_same_v<V, Array>) return static_cast<Array const&>(t);
    else return in_graph(beside.graph, "custom_vjp", t.sym());
  }
  template <class V, class... Z>
  static constexpr auto apply(Z const&... values) {
    V const& first = std::get<0>(std::tie(values...));
    auto const r = R{}(given<T, V>(values)...);
    if constexpr (requires { std::get<0>(r); })
      return std::apply([&](auto const&... each) { return std::tuple{taken(each, first)...}; }, r);
    else return taken(r, first);
  }
};
// Rules that only take values of any kind are called with those, others with Tensors.
template <class R, class... T>
constexpr auto rule_for() {
  if constexpr ((typed<T> && ...)) return TypedRule<R, T...>{};
  else return R{};
}

// What custom_vjp and custom_jvp return: y, with the rule for its derivatives by x.
template <class Rule, class Y, class... X>
constexpr auto ruled(Y const& y, X const&... x) {
  auto const z =
      bind<op::with_rule<Rule, static_cast<int>(sizeof...(X))>>(Attrs{}, untyped(y), untyped(x)...);
  if constexpr (sym<Y>) return z;
  else return wrap<Y>(z);
}

// F with a rule for its derivatives: Rules::rule<Y, X...>, where it gives Y for operands X.
template <class F, class Rules>
struct Ruled {
  template <operand... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (refused<X...>) {
      return Refused{};
    } else {
      auto const y = F{}(stop_gradient(x)...);
      using Y = std::remove_cvref_t<decltype(y)>;
      if constexpr (refused<Y>) return y;
      else return ruled<typename Rules::template rule<Y, X...>>(y, x...);
    }
  }
};

template <class R>
struct ReverseRules {
  template <class Y, class... X>
  using rule = decltype(rule_for<R, Y, Y, X...>());
};

}  // namespace detail

/// CustomVjp - what custom_vjp returns.
template <class F, class R>
struct CustomVjp : detail::Ruled<F, detail::ReverseRules<R>> {};

/// custom_vjp - a function of one to four operands whose gradient is computed by a rule rather than through what it
/// does: rule(ct, y, x...), which is called once for each use, gives the cotangent of x, or a tuple of them. Both are
/// captureless and written with the vocabulary; given Tensors the rule gets Tensors too, and may use transforms. It is
/// itself differentiable. Eagerly, on the tape and in programs alike.
///
/// Math      y = f(x...), d_x = rule(ct, y, x...)
/// Shapes    those of f; the rule gives that of each operand
/// Dtypes    those of f
/// Source    jax.custom_vjp
/// Example   examples/10_tape.cpp
/// Errors    "custom_vjp: the rule gives [2] for operand 0 of shape [3]"; "custom_vjp: has no rule for forward mode" in
///           compiled jvp, jacfwd and what else is forward mode alone (jacobian and hessian take the other)
template <class F, class R>
constexpr CustomVjp<F, R> custom_vjp(F, R) {
  static_assert(std::is_empty_v<F> && std::is_empty_v<R>, "custom_vjp: captureless functions required");
  return {};
}

}  // namespace dfdx
