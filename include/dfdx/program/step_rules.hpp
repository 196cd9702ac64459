// SPDX-License-Identifier: BSL-1.0
// What train_step refuses although it can be recorded: patterns for names that no parameter has, and losses that change
// buffers of a model which they do not return.
#pragma once

#include <dfdx/graph/simplify.hpp>
#include <dfdx/program/step.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

template <class Model>
constexpr Vec<Text> leaf_names() {
  Vec<Text> r;
  Model model{};
  visit_texts(model, [&](Text const& name, auto const&) { r.push_back(name); });
  return r;
}

template <class Model, class O>
struct PatternsRule {
  static constexpr Meta infer(Text* why) {
    return optim::detail::all_match<O>(leaf_names<Model>(), why) ? Meta{DType::f32, Shape{}}
                                                                 : refuse(nullptr);
  }
};

template <class Model>
constexpr bool has_buffers() {
  bool any = false;
  Model model{};
  visit(model, [&](auto const& leaf) { any = any || is_buffer<decltype(leaf)>; });
  return any;
}

// A buffer that is read, but for nothing that the loss needs, has its new value in a model that is lost.
template <class Loss, class Model, class... A>
struct BuffersRule {
  static constexpr Meta infer(Text* why) {
    Graph const g = trace<Loss, Model, A...>();
    Vec<char> const needed = graph::live(g);
    Vec<char> read(g.nodes.size(), 0);
    for (Node const& n : g.nodes)
      for (int k = 0; k < n.op->arity; ++k) read[n.in[k]] = 1;
    // The model's leaves are the first inputs.
    int leaf = 0, lost = -1;
    Model model{};
    visit(model, [&](auto const& l) {
      if (lost < 0 && is_buffer<decltype(l)> && read[leaf] != 0 && needed[leaf] == 0) lost = leaf;
      ++leaf;
    });
    if (lost < 0) return Meta{DType::f32, Shape{}};
    return refuse(why, "train_step: the loss changes ",
                  leaf_names<Model>()[static_cast<std::size_t>(lost)].c_str(),
                  " of a model that it does not return: return std::pair(loss, model)");
  }
};

// Whether a step may be run; says so if not.
template <class Loss, class Result, class Model, class O, class... A>
constexpr bool may_step() {
  bool may = true;
  if constexpr (optim::detail::by_name<O>())
    may = !refused<typename decltype(result_type<PatternsRule<Model, O>>())::type>;
  if constexpr (!has_more<Result> && has_buffers<Model>())
    may = !refused<typename decltype(result_type<BuffersRule<Loss, Model, A...>>())::type> && may;
  return may;
}

}  // namespace dfdx::detail::inline DFDX_TARGET
