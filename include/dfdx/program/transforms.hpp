// SPDX-License-Identifier: BSL-1.0
// Transforms: compile, value_and_grad, grad, vjp, jvp. Each takes a function without captures and returns a
// function object (Compiled); since rules of ops only use ops, they nest: grad(grad(f)).
#pragma once

#include <dfdx/graph/differentiate.hpp>
#include <dfdx/program/compiled.hpp>

namespace dfdx {

/// wrt<0, 2> - which arguments to differentiate with respect to; the first unless said otherwise.
template <std::size_t... I>
struct Wrt {};
template <std::size_t... I>
inline constexpr Wrt<I...> wrt{};

}  // namespace dfdx

namespace dfdx::detail::inline DFDX_TARGET {

// What a transform can take: a function that a program can make anew inside a constant expression.
template <class F>
inline constexpr bool captures_nothing = std::is_empty_v<F> && std::is_default_constructible_v<F>;
template <class F>
inline constexpr bool captures_nothing<Compiled<F>> = true;

// The leaves of a recorded tree, in order.
template <class T>
constexpr Vec<Sym> syms_of(T const& t) {
  Vec<Sym> r;
  visit(t, [&](auto const& leaf) { r.push_back(leaf.sym()); });
  return r;
}
// Those of chosen arguments.
template <std::size_t... I, class Tuple>
constexpr Vec<Sym> syms_of(Wrt<I...>, Tuple const& args) {
  return syms_of(std::tie(std::get<I>(args)...));
}
constexpr Vec<int> ids_of(Vec<Sym> const& all) {
  Vec<int> r;
  for (Sym const& s : all) r.push_back(s.id);
  return r;
}

// The tree with its leaves replaced by symbols, in order from `next` on.
template <class T>
constexpr T with_leaves(T t, Sym const*& next) {
  return filled(std::move(t), [&] { return Array(*next++); });
}

// One tree stands for itself, several make a tuple.
template <class T>
constexpr T joined_trees(T t) {
  return t;
}
template <class T, class U, class... Rest>
constexpr auto joined_trees(T t, U u, Rest... rest) {
  return std::tuple(std::move(t), std::move(u), std::move(rest)...);
}

// Gradients of `ends` (with cotangents) for the chosen arguments, each a tree like its argument.
template <std::size_t... I, class... A>
constexpr auto gradients(Wrt<I...>, Vec<Sym> const& ends, Vec<Sym> const& cts, A const&... args) {
  auto const all = std::tie(args...);
  Vec<int> const ids = ids_of(syms_of(Wrt<I...>{}, all));
  Vec<Sym> const found = graph::pull_back(*ends[0].graph, ends, cts, ids);
  Sym const* next = found.data();
  return [&]<class... T>(T... trees) {
    // Braces fix the order in which leaves are handed out.
    std::tuple<T...> filled{with_leaves(trees, next)...};
    return std::apply([](auto... t) { return joined_trees(std::move(t)...); }, std::move(filled));
  }(std::get<I>(all)...);
}

// A loss may return more in a pair: what was made on the way, of train_step the model with new values of its buffers.
template <class Y>
inline constexpr bool has_more = false;
template <class L, class M>
inline constexpr bool has_more<std::pair<L, M>> = true;
template <class Y>
constexpr decltype(auto) loss_of(Y const& y) {
  if constexpr (has_more<Y>) return (y.first);
  else return (y);
}
template <class Y>
using loss_t = std::remove_cvref_t<decltype(loss_of(std::declval<Y const&>()))>;

template <class Y>
struct ScalarRule {
  static constexpr Meta infer(Text* why) {
    Meta const m = Y::static_meta;
    if (m.shape.rank != 0) return refuse(why, "grad: the function must return a scalar, got ", m.shape);
    return is_floating(m.dtype)
               ? m
               : refuse(why, "grad: the function must return a floating value, got ", m.dtype);
  }
};

template <class X, Literal Required>
struct FloatingRule {
  static constexpr Meta infer(Text* why) {
    Meta const m = X::static_meta;
    return is_floating(m.dtype) ? m : refuse(why, Required.text, " required, got ", m.dtype);
  }
};
// Whether numbers of X are floating; says what is required if not.
template <class X, Literal Required>
constexpr bool is_floating_side() {
  return !refused<typename decltype(result_type<FloatingRule<X, Required>>())::type>;
}
// Whether there can be gradients with respect to the chosen arguments; says so of Tensors if not. (Of a model leaves
// may be integers: theirs are zeros.)
template <class X>
constexpr bool is_continuous() {
  if constexpr (!typed<X>) return true;
  else return is_floating_side<X, "grad: floating arguments">();
}
template <class W, class... A>
inline constexpr bool are_continuous = false;
template <std::size_t... I, class... A>
inline constexpr bool are_continuous<Wrt<I...>, A...> =
    (is_continuous<std::remove_cvref_t<std::tuple_element_t<I, std::tuple<A...>>>>() && ...);

// Whether what a function returned can be differentiated; says so if not.
template <class Y>
constexpr bool is_scalar() {
  if constexpr (refused<Y>) return false;
  else {
    static_assert(
        !std::is_arithmetic_v<Y>,
        "grad: the function must return a scalar Tensor, and returned a number of C++, as x(0) and x[0] are; "
        "an element that programs compute with is select<0, 0>(x)");
    static_assert(
        !std::is_same_v<Y, Array>,
        "grad: the function must return a scalar Tensor, and returned an Array: give axes as template "
        "arguments, sum<0>(x), from which the compiler knows shapes");
    static_assert(
        typed<Y> || std::is_arithmetic_v<Y> || std::is_same_v<Y, Array>,
        "grad: the function must return a scalar Tensor, or a pair of one and what it made besides");
    if constexpr (typed<Y>) return !refused<typename decltype(result_type<ScalarRule<Y>>())::type>;
    else return false;
  }
}

// The same of what F returned for arguments A...; of an Array it says where that came from.
template <class Y, class F, class... A>
constexpr bool gives_scalar() {
  if constexpr (std::is_same_v<Y, Array>) return returns_tensors<Y, "grad", F, A...>();
  else return is_scalar<Y>();
}

// Stands for a transform that was refused, so that calling it is no second error.
template <class R>
struct RefusedFunction {
  constexpr R operator()(auto const&...) const { return {}; }
};
template <class F, class T, class R>
constexpr auto transformed() {
  if constexpr (captures_nothing<F>) return Compiled<T>{};
  else return RefusedFunction<R>{};
}

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// ValueAndGrad - what value_and_grad(f) compiles.
template <class F, class W>
struct ValueAndGrad {
  /// Looks at F alone, before anything is built on it: mistakes in it are reported from here.
  template <class... A>
  static constexpr bool check() {
    return detail::are_continuous<W, argument_t<A>...> &&
           detail::gives_scalar<detail::loss_t<decltype(F{}(std::declval<argument_t<A> const&>()...))>, F,
                                argument_t<A>...>();
  }
  template <class... A>
  static constexpr auto record(A const&... args) {
    auto const y = detail::record_call<F>(args...);
    if constexpr (!detail::gives_scalar<detail::loss_t<decltype(y)>, F, A...>() ||
                  !detail::are_continuous<W, A...>) {
      return std::pair<Refused, Refused>{};
    } else {
      Sym const loss = detail::loss_of(y).sym();
      auto d = detail::gradients(W{}, {loss}, {full_as(loss, loss.meta(), 1)}, args...);
      return std::pair(y, std::move(d));
    }
  }
};

/// Grad - what grad(f) compiles.
template <class F, class W>
struct Grad {
  template <class... A>
  static constexpr bool check() {
    return detail::are_continuous<W, argument_t<A>...> &&
           detail::gives_scalar<detail::loss_t<decltype(F{}(std::declval<argument_t<A> const&>()...))>, F,
                                argument_t<A>...>();
  }
  template <class... A>
  static constexpr auto record(A const&... args) {
    return ValueAndGrad<F, W>::record(args...).second;
  }
};

/// Vjp - what vjp(f) compiles: the last argument is the cotangent of the result.
template <class F>
struct Vjp {
  template <class... A>
  static constexpr auto record(A const&... args) {
    return split(std::make_index_sequence<sizeof...(A) - 1>{}, std::tie(args...));
  }

 private:
  template <std::size_t... I, class Tuple>
  static constexpr auto split(std::index_sequence<I...>, Tuple const& t) {
    auto const y = detail::record_call<F>(std::get<I>(t)...);
    if constexpr (refused<std::remove_const_t<decltype(y)>>) return std::pair<Refused, Refused>{};
    else return pulled_back(y, std::index_sequence<I...>{}, t);
  }
  template <class Y, std::size_t... I, class Tuple>
  static constexpr auto pulled_back(Y const& y, std::index_sequence<I...>, Tuple const& t) {
    auto const& ct = std::get<sizeof...(I)>(t);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, std::remove_cvref_t<decltype(ct)>>,
                  "vjp: the cotangent (last argument) must have the type of the result");
    return std::pair(
        y, detail::gradients(Wrt<I...>{}, detail::syms_of(y), detail::syms_of(ct), std::get<I>(t)...));
  }
};

/// Jvp - what jvp(f) compiles: the second half of the arguments are the tangents of the first.
template <class F>
struct Jvp {
  template <class... A>
  static constexpr auto record(A const&... args) {
    constexpr bool even = sizeof...(A) % 2 == 0;
    static_assert(even, "jvp: as many tangents as arguments");
    if constexpr (!even) return Refused{};
    else return split(std::make_index_sequence<sizeof...(A) / 2>{}, std::tie(args...));
  }

 private:
  template <std::size_t... I, class Tuple>
  static constexpr auto split(std::index_sequence<I...>, Tuple const& t) {
    constexpr std::size_t n = sizeof...(I);
    constexpr bool fit =
        (std::is_same_v<std::tuple_element_t<I, Tuple>, std::tuple_element_t<I + n, Tuple>> && ...);
    static_assert(fit, "jvp: the tangents come after all arguments, each of the type of its argument");
    if constexpr (!fit) return Refused{};
    else {
      auto y = detail::record_call<F>(std::get<I>(t)...);
      Vec<int> const ids = detail::ids_of(detail::syms_of(Wrt<I...>{}, t));
      Vec<Sym> const tangents = detail::syms_of(Wrt<I + n...>{}, t), ends = detail::syms_of(y);
      Vec<Sym> const found = graph::push_forward(*ends[0].graph, ids, tangents, ends);
      Sym const* next = found.data();
      auto dy = detail::with_leaves(y, next);
      return std::pair(std::move(y), std::move(dy));
    }
  }
};

/// compile(f) - f as a compiled function, its ops fused. Its results have memory of their own each: none changes when
/// another one is changed in place.
template <class F>
constexpr auto compile(F const&) {
  static_assert(detail::captures_nothing<F>,
                "compile: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, F, Refused>();
}

/// value_and_grad(f)(args...) - the pair of f(args...) and its gradient with respect to the first argument (or
/// those of wrt<...>, as a tuple if several). A gradient has the type of its argument: a model's is a model. f may
/// return a pair, of which the first is differentiated; the second, any Tensor or struct of them, comes with it.
///
/// Math      (f(x), df/dx)
/// Errors    "grad: the function must return a scalar, got [3]" at compile time
/// Example   examples/03_gradients.cpp
template <class F, std::size_t... I>
constexpr auto value_and_grad(F const&, Wrt<I...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "grad: a lambda or function object without captures required; pass values as arguments");
  using W = std::conditional_t<sizeof...(I) == 0, Wrt<0>, Wrt<I...>>;
  return detail::transformed<F, ValueAndGrad<F, W>, std::pair<Refused, Refused>>();
}

/// grad(f)(args...) - the gradient alone, also of an f that returns a pair. Numbers are allowed, also in constant
/// expressions: grad(f)(3.0).
template <class F, std::size_t... I>
constexpr auto grad(F const&, Wrt<I...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "grad: a lambda or function object without captures required; pass values as arguments");
  using W = std::conditional_t<sizeof...(I) == 0, Wrt<0>, Wrt<I...>>;
  return detail::transformed<F, Grad<F, W>, Refused>();
}

/// vjp(f)(args..., ct) - the pair of f(args...) and J^T ct for every argument.
template <class F>
constexpr auto vjp(F const&) {
  static_assert(detail::captures_nothing<F>,
                "vjp: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, Vjp<F>, std::pair<Refused, Refused>>();
}

/// jvp(f)(args..., tangents...) - the pair of f(args...) and J tangents, by forward mode.
template <class F>
constexpr auto jvp(F const&) {
  static_assert(detail::captures_nothing<F>,
                "jvp: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, Jvp<F>, std::pair<Refused, Refused>>();
}

}  // namespace dfdx::inline DFDX_TARGET
