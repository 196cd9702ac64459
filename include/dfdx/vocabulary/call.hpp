// SPDX-License-Identifier: BSL-1.0
// call: how functions with parameters are defined once. A rule is a literal struct whose members are the parameters;
// `infer` says what becomes of operands, `run` makes it of untyped values. Given as Fixed<Rule{...}> and called with
// Tensors, its answer is a type and its refusal the compiler's one error; given as a value, both come at run time.
#pragma once

#include <dfdx/value/lists.hpp>
#include <dfdx/vocabulary/elementwise.hpp>

namespace dfdx {

/// keepdim - tag: reduced axes stay, with extent 1.
struct Keepdim {
  // So that {} is no Keepdim, but no axes.
  enum class Make { one };
  explicit constexpr Keepdim(Make) {}
};
inline constexpr Keepdim keepdim{Keepdim::Make::one};

namespace detail {

// The same value, but a compiler that reads a template does not know it yet, and so does not compile what is called
// with it in programs that do not.
template <std::size_t>
constexpr Array const& lazy(Array const& a) {
  return a;
}

/// Fixed - parameters that the compiler knows.
template <auto Value>
struct Fixed {
  static constexpr auto value = Value;
};
/// FixedType - the same where what runs has besides parameters that do not matter to types.
template <auto Value>
struct FixedType : Fixed<Value> {
  decltype(Value) rule;
};
template <class P>
inline constexpr bool is_fixed = false;
template <auto Value>
inline constexpr bool is_fixed<Fixed<Value>> = true;
template <auto Value>
inline constexpr bool is_fixed<FixedType<Value>> = true;

/// made<Rule>(p) - a rule of the parameters p, fixed if they are.
template <class Rule, class P>
constexpr auto made(P const& p) {
  if constexpr (is_fixed<P>) return Fixed<Rule{P::value}>{};
  else return Rule{p};
}
template <class P>
constexpr auto value_of(P const& p) {
  if constexpr (!is_fixed<P>) return p;
  else if constexpr (requires { p.rule; }) return p.rule;
  else return P::value;
}

// What the rule says of Tensors X...
template <class P, class... X>
struct CallRule {
  static constexpr Meta infer(Text* why) {
    Meta const in[] = {X::static_meta...};
    return P::value.infer(in, why);
  }
};

template <class Rule, class... X>
constexpr Meta inferred(Rule const& rule, X const&... x) {
  Meta const in[] = {x.meta()...};
  Meta const m = rule.infer(in, nullptr);
  if (!m.valid()) {
    Text why;
    rule.infer(in, &why);
    raise(why);
  }
  return m;
}

// The element type of all operands, if there is but one, else void.
template <class X, class... Rest>
struct CommonElement {
  using type = typename X::value_type;
};
template <class X, class Y, class... Rest>
struct CommonElement<X, Y, Rest...> {
  using rest = typename CommonElement<Y, Rest...>::type;
  using type = std::conditional_t<std::is_same_v<typename X::value_type, rest>, rest, void>;
};

/// call - the rule applied to operands. (Few functions deep: each is a line of the compiler's message.)
template <class P, class... X>
constexpr auto call(P const& p, X const&... x) {
  if constexpr (refused<X...>) {
    return Refused{};
  } else if constexpr (!is_fixed<P> || !(typed<X> && ...)) {
    auto const rule = value_of(p);
    return rule.template run<void>(inferred(rule, x...), untyped(x)...);
  } else if constexpr (!Inferred<CallRule<P, X...>>::value.valid()) {
    static_fail<Refusal<CallRule<P, X...>>>();
    return Refused{};
  } else {
    using R = tensor_for<Inferred<CallRule<P, X...>>>;
    using T = typename CommonElement<X...>::type;
    auto const rule = value_of(p);
    if constexpr ((X::static_shape.is_static() && ...))
      return wrap<R>(rule.template run<T>(R::static_meta, untyped(x)...));
    else return wrap<R>(rule.template run<T>(inferred(rule, x...), untyped(x)...));
  }
}

/// bind_element, bind_element_as - bind with the element type, which only memory has a use for.
template <class Op, class T, class V, class... X>
constexpr V bind_element(Attrs const& attrs, V const& x, X const&... rest) {
  if constexpr (std::is_same_v<V, Sym>) return bind<Op>(attrs, x, rest...);
  else return bind<Op, T>(attrs, x, rest...);
}
template <class Op, class T, class V, class... X>
constexpr V bind_element_as(Meta const& meta, Attrs const& attrs, V const& x, X const&... rest) {
  if constexpr (std::is_same_v<V, Sym>) return bind_as<Op>(meta, attrs, x, rest...);
  else return bind_as<Op, T>(meta, attrs, x, rest...);
}

constexpr int checked_axis(char const* name, int axis, Shape const& shape) {
  int const a = normalize_axis(axis, shape.rank);
  if (a < 0) raise(name, ": axis ", axis, " out of range for ", shape);
  return a;
}

// An axis that a rule met; refuses with the text of checked_axis.
constexpr int rule_axis(char const* name, int axis, Shape const& shape, Text* why) {
  int const a = normalize_axis(axis, shape.rank);
  if (a < 0) refuse(why, name, ": axis ", axis, " out of range for ", shape);
  return a;
}

// Whether two shapes may be one, as far as their extents are known.
constexpr bool agree(Shape const& a, Shape const& b) {
  bool same = a.rank == b.rank;
  for (int i = 0; same && i < a.rank; ++i) same = op::extents_agree(a[i], b[i]);
  return same;
}

// The shape without the axes of a mask.
constexpr Shape dropped(Shape const& s, index_t mask) {
  Shape r;
  for (int i = 0; i < s.rank; ++i)
    if ((mask >> i & 1) == 0) r.push_back(s[i]);
  return r;
}
constexpr Shape with_extent(Shape s, int axis, index_t n) {
  s[axis] = n;
  return s;
}

}  // namespace detail

}  // namespace dfdx
