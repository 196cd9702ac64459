// SPDX-License-Identifier: BSL-1.0
// Programs on numbers: what goes in and comes out as numbers, and the interpreter that computes them in constant
// expressions.
#pragma once

#include <dfdx/core/convert.hpp>
#include <dfdx/program/program.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// The number type of a scalar leaf, the same tree of numbers for a tree of them.
template <class T>
constexpr T as_numbers(Tensor<T> const& t) {
  return t.item();
}
template <class A, class B>
constexpr auto as_numbers(std::pair<A, B> const& p) {
  return std::pair(as_numbers(p.first), as_numbers(p.second));
}
template <class... T>
constexpr auto as_numbers(std::tuple<T...> const& t) {
  return std::apply([](auto const&... x) { return std::tuple(as_numbers(x)...); }, t);
}

// The same for values of the interpreter, taken in order of the leaves.
template <class T>
constexpr T next_number(std::type_identity<Tensor<T>>, double const*& p) {
  return math::convert_number<T>(*p++);
}
template <class A, class B>
constexpr auto next_number(std::type_identity<std::pair<A, B>>, double const*& p) {
  auto const first = next_number(std::type_identity<A>{}, p);
  return std::pair(first, next_number(std::type_identity<B>{}, p));
}
template <class... T>
constexpr auto next_number(std::type_identity<std::tuple<T...>>, double const*& p) {
  return std::tuple{next_number(std::type_identity<T>{}, p)...};
}

/// ScalarRun - the values of a program on scalars, node by node; in a constant expression too.
template <class P>
class ScalarRun {
 public:
  constexpr explicit ScalarRun(double const* inputs) : inputs_(inputs) { run(-1); }
  constexpr double operator[](int id) const { return v_[static_cast<std::size_t>(id)]; }

 private:
  static constexpr Node const& node(int id) { return program_graph<P>.nodes[static_cast<std::size_t>(id)]; }
  constexpr double& value(int id) { return v_[static_cast<std::size_t>(id)]; }

  constexpr void run(int region) {
    int behind = -1;  // the exits of a region come one after another; the first runs its loop
    for (int id = 0; id < P::nodes; ++id) {
      Node const& n = node(id);
      if (n.region != region) continue;
      if (n.meta.shape.numel() != 1) raise("program: only scalars can be computed in a constant expression");
      if (is_exit(n) && region_behind(n) != behind) loop(behind = region_behind(n));
      else if (!is_exit(n) && n.op->code != Code::carry) compute(id);
    }
  }
  constexpr void loop(int r) {
    Region const& region = program_graph<P>.regions[static_cast<std::size_t>(r)];
    Vec<int> exits;
    for (int id = 0; id < P::nodes; ++id)
      if (is_exit(node(id)) && region_behind(node(id)) == r) exits.push_back(id);
    for (int e : exits)
      if (node(e).op->code == Code::last) value(node(e).in[0]) = value(node(node(e).in[0]).in[0]);
    for (index_t i = 0; i < region.count; ++i) {
      run(r);
      for (int e : exits) value(e) = value(node(e).in[node(e).op->arity - 1]);
      for (int e : exits)
        if (node(e).op->code == Code::last) value(node(e).in[0]) = value(e);
    }
    for (int e : exits)
      if (node(e).op->code == Code::last) value(e) = value(node(e).in[0]);
  }
  constexpr void compute(int id) {
    Node const& n = node(id);
    double x[max_arity] = {};
    for (int k = 0; k < n.op->arity; ++k) x[k] = value(n.in[k]);
    double r = x[0];  // views, casts and reductions of one element
    if (n.op->code == Code::input) r = inputs_[n.attrs.i[0]];
    else if (n.op->code == Code::constant || n.op->code == Code::iota) r = n.attrs.f[0];
    else if (n.op->code == Code::matmul) r = x[0] * x[1];
    else if (n.op->elementwise) r = n.op->fold(x);
    else if (n.op->code == Code::opaque) raise(n.op->name, ": cannot be computed in a constant expression");
    value(id) =
        n.op->code == Code::cast ? math::held_by(n.meta.dtype, r) : math::computed_as(n.meta.dtype, r);
  }

  double const* inputs_;
  std::array<double, static_cast<std::size_t>(P::nodes)> v_{};
};

/// interpret - the results of a program on scalars; runs in a constant expression.
template <class P>
constexpr auto interpret(double const* inputs) {
  ScalarRun<P> const v(inputs);
  std::array<double, static_cast<std::size_t>(P::outputs)> out{};
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = v[program_graph<P>.outputs[k]];
  double const* p = out.data();
  return next_number(std::type_identity<typename P::result>{}, p);
}

// An argument of a function that is recorded inside of another: nodes of its own, so that a derivative with respect to
// one argument is no derivative with respect to another that depends on it, or is the same.
template <tree A>
constexpr A apart(Graph* g, A t) {
  bring_to(g, "program", t);
  visit(t, [](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if (!leaf.recorded()) return;
    Array own = bind_as<op::reshape>(leaf.meta(), Attrs{}, static_cast<Array const&>(leaf));
    if constexpr (typed<Leaf>) leaf = Leaf(typename Leaf::Unchecked{}, std::move(own));
    else leaf = std::move(own);
  });
  return t;
}

}  // namespace dfdx::detail::inline DFDX_TARGET
