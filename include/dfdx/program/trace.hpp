// SPDX-License-Identifier: BSL-1.0
// Tracing: calls a function with symbols in place of its arguments and keeps the graph that its ops record. Runs
// in a constant expression for programs, and at run time in the tests of the passes.
#pragma once

#include <dfdx/graph/simplify.hpp>
#include <dfdx/vocabulary/literal.hpp>

namespace dfdx {

/// argument_t - what an argument is inside a program: numbers become scalar tensors.
template <class A>
struct argument {
  using type = A;
};
template <class A>
  requires std::is_arithmetic_v<A>
struct argument<A> {
  using type = Tensor<A>;
};
template <class A>
using argument_t = typename argument<std::remove_cvref_t<A>>::type;

namespace detail {

/// Symbols - makes inputs of a graph, numbering them and their dyn dims in order of appearance.
class Symbols {
 public:
  constexpr explicit Symbols(Graph& g) : graph_(g) {}

  /// Every leaf of the tree becomes an input.
  template <class T>
  constexpr void bind_tree(T& t) {
    visit(t, [&](auto& leaf) {
      using Leaf = std::remove_cvref_t<decltype(leaf)>;
      static_assert(typed<Leaf>, "program: arguments of a compiled function are Tensors, or trees of them");
      leaf = Leaf(typename Leaf::Unchecked{}, next(Leaf::static_meta));
    });
  }

 private:
  // The next input: not a template of the leaf's type, for there are many.
  constexpr Array next(Meta m) {
    for (int i = 0; i < m.shape.rank; ++i)
      if (m.shape[i] == extent::unknown) {
        // (The compiler shows the line, not the values.)
        static_assert(max_symbols == 5);
        if (symbols_ == max_symbols) raise("program: more than 5 dyn dims in its arguments");
        m.shape[i] = extent::symbol(symbols_++);
      }
    Sym const s = graph_.push(Node{&info<op::input>, Attrs{{graph_.inputs++}}, m, {}});
    return Array(s.graph, s.id, m);
  }

  Graph& graph_;
  int symbols_ = 0;
};

// Results that are literals as values of the graph of the arguments.
template <class Y, class... A>
constexpr void bring_results(Y& y, A const&... args) {
  if constexpr (tree<Y>) {
    bool any = false;
    visit(y, [&](auto const& leaf) { any = any || is_literal(leaf.graph()); });
    if (any)
      if (Graph* const g = graph_of(args...); g != nullptr) bring_to(g, "program", y);
  }
}

// A transform has a member `record` that works on recorded arguments; any other function is called. (nvcc 13 forgets to
// destroy what `record` has made where its result is an argument.)
template <class F, class... A>
constexpr auto record_call(A const&... args) {
  auto y = [&] {
    if constexpr (requires { F::record(args...); }) return F::record(args...);
    else return F{}(args...);
  }();
  bring_results(y, args...);
  return y;
}

// Whether all leaves of a tree are Tensors, and whether its type says how many there are.
struct LeafKinds {
  bool tensors = true, counted = true;
};
struct LeafKindsOf {
  LeafKinds& kinds;
  constexpr void operator()(auto const& leaf) const {
    kinds.tensors = kinds.tensors && typed<decltype(leaf)>;
  }
  constexpr void any_number() const { kinds.counted = false; }
};
template <class T>
constexpr LeafKinds leaf_kinds() {
  LeafKinds r;
  if constexpr (tree<T>) {
    T t{};  // no constant: g++ 12 refuses those of strings and vectors
    visit(t, LeafKindsOf{r});
  }
  return r;
}
// Whether a program can take or return a value of type T.
template <class T>
constexpr bool has_static_leaves() {
  return leaf_kinds<T>().tensors && leaf_kinds<T>().counted;
}
// What is said of a function that returned an Array; by what op the first Array came of Tensors.
template <Literal By, class F, class... A>
struct ReturnedArray {
  static constexpr Meta infer(Text* why) {
    Meta const no = refuse(why, By.text,
                           ": the function returned an Array: give axes and shapes as template arguments, "
                           "sum<0>(x), from which the compiler knows shapes");
    if (why == nullptr) return no;
    Graph g;
    Symbols symbols(g);
    auto const run = [&](auto... args) {
      (symbols.bind_tree(args), ...);
      static_cast<void>(record_call<F>(args...));
    };
    run(argument_t<A>{}...);
    int at = g.first_untyped;
    while (at >= 0 && at < g.size() && g[at].op->arity == 0) ++at;
    if (at < 0 || at >= g.size()) return no;
    return refuse(why, "; the first Array was made by ", g[at].op->name, " of ", g[g[at].in[0]].meta.shape);
  }
};
// Whether F on arguments A... can return an R from a program; says so, once, if not.
template <class R, Literal By, class F, class... A>
constexpr bool returns_tensors() {
  static_assert(leaf_kinds<R>().counted,
                "program: the function returned a std::vector: return a std::array or a tuple");
  if constexpr (!leaf_kinds<R>().tensors) static_assert(told<Refusal<ReturnedArray<By, F, A...>>>::once);
  return has_static_leaves<R>();
}

}  // namespace detail

/// result_t - the tree that F returns for arguments A... inside a program.
template <class F, class... A>
using result_t =
    std::remove_cvref_t<decltype(detail::record_call<F>(std::declval<argument_t<A> const&>()...))>;

/// trace - the graph of F on arguments A..., its outputs the leaves of what F returns. `g` is an empty graph.
template <class F, class... A>
constexpr Graph trace(Graph g = {}) {
  detail::Symbols symbols(g);
  auto const run = [&](auto... args) {
    (symbols.bind_tree(args), ...);
    g.nodes.reserve(static_cast<std::size_t>(16 * g.inputs + 16));  // growing is copying
    auto out = detail::record_call<F>(args...);
    static_assert(tree<decltype(out)>, "program: the function must return a Tensor or a tree of Tensors");
    if constexpr (detail::returns_tensors<decltype(out), "program", F, A...>()) {
      detail::bring_to(&g, "program", out);
      visit(out, [&](auto const& leaf) {
        if (!leaf.recorded()) raise("program: a result does not depend on the arguments");
        if (g[leaf.id()].region >= 0) raise("scan: a value of a loop is used outside of it");
        g.outputs.push_back(leaf.id());
      });
    }
  };
  run(argument_t<A>{}...);
  return g;
}

}  // namespace dfdx
