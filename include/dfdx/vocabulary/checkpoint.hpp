// SPDX-License-Identifier: BSL-1.0
// checkpoint: a function of which a backward pass keeps the arguments alone, and computes the rest again.
#pragma once

#include <dfdx/vocabulary/scan.hpp>

namespace dfdx {

namespace detail {

// A region that runs once: what goes in is its one position, what comes out a stack of one.
template <class F, class... A>
constexpr auto record_checkpoint(Graph& g, F const& f, A const&... args) {
  int const region = g.open(g.inside, 1, false);
  g.regions[static_cast<std::size_t>(region)].recomputed = true;
  auto const enter = [&]<class T>(T const& t) {
    Vec<Sym> inside;
    visit(t, [&](auto const& leaf) {
      require_recorded("checkpoint", leaf.recorded());
      if (leaf.shape().rank == max_rank)
        raise("checkpoint: no room for another axis beside those of ", leaf.shape());
      inside.push_back(each_of(
          region, reshape_to(in_graph(&g, "checkpoint", leaf.sym()), with_first_axis(1, leaf.shape()))));
    });
    std::size_t k = 0;
    return filled(t, [&] { return Array(inside[k++]); });
  };
  std::tuple<A...> const inside{enter(args)...};  // braces fix the order
  auto y = [&] {
    Inside const body(g, region);
    return std::apply(f, inside);
  }();
  visit(y, [&](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if (leaf.graph() != &g || !g.encloses(region, g[leaf.id()].region)) return;
    Array const out(reshape_to(stack_of(region, leaf.sym()), leaf.shape()));
    if constexpr (typed<Leaf>) leaf = Leaf(typename Leaf::Unchecked{}, out);
    else leaf = out;
  });
  return y;
}

}  // namespace detail

/// Checkpoint - what checkpoint(f) returns.
template <class F>
struct Checkpoint {
  F f;

  template <tree... A>
  constexpr auto operator()(A const&... args) const {
    using Y = std::remove_cvref_t<decltype(f(args...))>;
    if constexpr (refused<A...> || refused<Y>) {
      return Y{};
    } else {
      Graph* const g = detail::graph_of(args...);
      if (g != nullptr) return detail::record_checkpoint(*g, f, args...);
      return f(args...);
    }
  }
};

/// checkpoint(f)(args...) - f(args...), but in a compiled program the backward pass keeps nothing of what f computes:
/// it keeps the arguments and runs f again. Less memory for at most as much more time as f takes. f is a model or a
/// function; what it reads besides its arguments, parameters for instance, is kept as it is. Eagerly and on the tape
/// it is f itself.
///
/// Math      y = f(x); the gradients of f
/// Shapes    those of f
/// Dtypes    those of f
/// Cost      memory between the passes: the arguments; time: f once more
/// Source    Chen et al., Training deep nets with sublinear memory cost, 2016
template <class F>
constexpr Checkpoint<F> checkpoint(F const& f) {
  return {f};
}

}  // namespace dfdx
