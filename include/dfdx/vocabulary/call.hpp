// SPDX-License-Identifier: BSL-1.0
// call: how functions with parameters are defined once. A rule is a literal struct whose members are the parameters;
// `infer` says what becomes of operands, `run` makes it of untyped values. Given as Fixed<Rule{...}> and called with
// Tensors, its answer is a type and its refusal the compiler's one error; given as a value, both come at run time.
#pragma once

#include <type_traits>

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

/// Fixed - parameters that the compiler knows.
template <auto Value>
struct Fixed {
  static constexpr auto value = Value;
};
/// FixedType - the same where what runs has besides parameters that do not matter to types.
template <auto Value>
struct FixedType : Fixed<Value> {
  std::remove_cvref_t<decltype(Value)> rule;  // nvcc's front end takes the decltype for a reference
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

// A rule whose refusals name the function that the user called, not the one that it is made of.
template <Literal Name, class Rule>
struct Named : Rule {
  constexpr Meta infer(Meta const* in, Text* why) const {
    Meta const m = Rule::infer(in, why);
    if (why != nullptr && !m.valid()) why->rename(Name.text);
    return m;
  }
  // Also those of a program that learns its extents when it is called.
  template <class T, class V, class... X>
  constexpr auto run(Meta const& y, V const& x, X const&... rest) const {
    Graph* const g = recorder_of(x);
    std::size_t const asked = g != nullptr ? g->requirements.size() : 0;
    auto r = Rule::template run<T>(y, x, rest...);
    if (g != nullptr)
      for (std::size_t k = asked; k < g->requirements.size(); ++k) g->requirements[k].op = Name.text;
    return r;
  }
};
/// named<"median">(p) - the rule p, or fixed rule, by that name.
template <Literal Name, class P>
constexpr auto named(P const& p) {
  if constexpr (!is_fixed<P>) return Named<Name, P>{p};
  else {
    using N = Named<Name, std::remove_const_t<decltype(P::value)>>;
    if constexpr (requires { p.rule; }) return FixedType<N{P::value}>{{}, N{p.rule}};
    else return Fixed<N{P::value}>{};
  }
}

// What the rule says of Tensors X...
template <class P, class... X>
struct CallRule {
  static constexpr Meta infer(Text* why) {
    Meta const in[] = {X::static_meta...};
    return P::value.infer(in, why);
  }
};

template <class Rule>
constexpr Meta inferred_of(Rule const& rule, Meta const* in) {
  Meta const m = rule.infer(in, nullptr);
  if (!m.valid()) {
    Text why;
    rule.infer(in, &why);
    raise(why);
  }
  return m;
}
template <class Rule, class... X>
constexpr Meta inferred(Rule const& rule, X const&... x) {
  Meta const in[] = {x.meta()...};
  return inferred_of(rule, in);
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

// What comes next is an Array, though its operands are Tensors: what a program that returns an Array is told.
template <class V, class... More>
constexpr void note_untyped(V const& x, More const&...) {
  Graph* const g = recorder_of(x);
  if (g != nullptr && g->first_untyped < 0) g->first_untyped = g->size();
}

/// call - the rule applied to operands. (Few functions deep: each is a line of the compiler's message.)
template <class P, class... X>
constexpr auto call(P const& p, X const&... x) {
  if constexpr (refused<X...>) {
    return Refused{};
  } else if constexpr (!is_fixed<P> || !(typed<X> && ...)) {
    auto const rule = value_of(p);
    if constexpr ((typed<X> && ...))
      if (DFDX_IN_CONSTANT_EXPRESSION) note_untyped(untyped(x)...);
    return rule.template run<void>(inferred(rule, x...), untyped(x)...);
  } else if constexpr (!Inferred<CallRule<P, X...>>::value.valid()) {
    static_assert(told<Refusal<CallRule<P, X...>>>::once);
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

// The first of several operands, if all broadcast with one another: with it functions made of elementwise ones refuse
// what those would, by their own name.
template <Literal Name>
struct Beside {
  static constexpr Meta infer_all(Meta const* in, std::size_t n, Text* why) {
    Shape s = in[0].shape;
    for (std::size_t i = 1; s.valid() && i < n; ++i) s = op::broadcast_shapes(Name.text, s, in[i].shape, why);
    return s.valid() ? in[0] : refuse(nullptr);
  }
  template <class, class V, class... W>
  static constexpr V run(Meta const&, V const& x, W const&... rest) {
    if (Graph* const g = recorder_of(x)) (require(*g, x.shape(), rest.shape()), ...);
    return x;
  }

 private:
  static constexpr void require(Graph& g, Shape const& a, Shape const& b) {
    for (int i = a.rank - 1, j = b.rank - 1; i >= 0 && j >= 0; --i, --j)
      if (a[i] != b[j] && a[i] != 1 && b[j] != 1) g.requirements.push_back(SameExtent{Name.text, a[i], b[j]});
  }
};
template <Literal Name, std::size_t N>
struct BesideOthers : Beside<Name> {
  static constexpr Meta infer(Meta const* in, Text* why) { return Beside<Name>::infer_all(in, N, why); }
};
// The same of what is compared element by element: [N, 1] and [N] have [N, N] pairs, which nobody means.
template <Literal Name>
struct Facing : Beside<Name> {
  static constexpr Meta infer(Meta const* in, Text* why) {
    Shape const &a = in[0].shape, &b = in[1].shape, all = op::broadcast_shapes(Name.text, a, b, why);
    if (all.valid() && (is_column(a, b) || is_column(b, a)))
      return refuse(why, Name.text, ": ", a, " and ", b, " would both be repeated to ", all,
                    ": reshape one of them");
    return all.valid() ? in[0] : refuse(nullptr);
  }

 private:
  // Whether a shape is another and one axis more, of 1.
  static constexpr bool is_column(Shape const& column, Shape const& s) {
    bool is = column.rank == s.rank + 1 && column[s.rank] == 1 && s.rank > 0;
    for (int i = 0; is && i < s.rank; ++i) is = column[i] == s[i];
    return is && s[s.rank - 1] != 1;
  }
};
template <Literal Name, operand X, operand Y>
constexpr auto facing(X const& x, Y const& target) {
  if constexpr (plain<X> || plain<Y>) return x;
  else return call(Fixed<Facing<Name>{}>{}, x, target);
}
template <Literal Name, operand X, operand... Y>
constexpr auto beside(X const& x, Y const&... others) {
  if constexpr (plain<X> || (plain<Y> || ...)) return x;
  else return call(Fixed<BesideOthers<Name, 1 + sizeof...(Y)>{}>{}, x, others...);
}

// The operand, if its dtype is one of those that What names.
template <Literal Name, Literal What, bool (*Holds)(DType)>
struct Required {
  static constexpr Meta infer(Meta const* in, Text* why) {
    if (!Holds(in->dtype)) return refuse(why, Name.text, ": ", What.text, " required, got ", in->dtype);
    return *in;
  }
  template <class, class V>
  static constexpr V run(Meta const&, V const& x) {
    return x;
  }
};
template <Literal Name, operand X>
constexpr auto floating(X const& x) {
  if constexpr (plain<X>) return x;
  else return call(Fixed<Required<Name, "floating dtype", is_floating>{}>{}, x);
}
constexpr bool is_truth(DType d) { return d == DType::boolean; }
template <Literal Name, operand X>
constexpr auto masking(X const& x) {
  if constexpr (plain<X>) return x;
  else return call(Fixed<Required<Name, "bool mask", is_truth>{}>{}, x);
}

// The operand in f32 if it holds integers or truths.
template <operand X>
constexpr auto real(X const& x) {
  if constexpr (refused<X> || plain<X>) return x;
  else if constexpr (!typed<X>) return cast_to(x, op::real(x.meta()).dtype);
  else if constexpr (is_floating(X::static_meta.dtype)) return x;
  else return cast<float>(x);
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

// What a rule made of a shape, unless it has too many elements to be counted.
constexpr Meta countable(char const* name, Meta const& y, Shape const& from, Text* why) {
  return op::overflows(y.shape) ? refuse(why, name, ": size overflows for ", from) : y;
}

// Whether two shapes may be one, as far as their extents are known.
constexpr bool agree(Shape const& a, Shape const& b) { return op::shapes_agree(a, b); }

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
