// SPDX-License-Identifier: BSL-1.0
// What train_step compiles: forward, backward and the optimizer's update, recorded as one function.
#pragma once

#include <dfdx/program/rule.hpp>
#include <dfdx/program/transforms.hpp>

namespace dfdx {

/// optimizer - what train_step asks of an optimizer: `slots` state tensors for each parameter (zero at the start),
/// `scalars` numbers for each step worked out in double by `scalars_at(step)` (step counts from 1), and the rule
/// `update(parameter, gradient, slots, scalars)`, written with ops on symbols. Optionally more (program/rule.hpp): it
/// may see all gradients first (clipping by their norm), ask for names, leave parameters as they are.
///
/// Dtypes    parameters in 16 bits are updated in f32, then they and their slots are rounded; integers stay
template <class O>
concept optimizer = requires(O const& o, Sym& p, Sym* slots, Sym const* scalars) {
  { O::slots } -> std::convertible_to<int>;
  { O::scalars } -> std::convertible_to<int>;
  o.scalars_at(std::int64_t{1});
  optim::detail::update<O>("", p, p, slots, scalars);
};

}  // namespace dfdx

namespace dfdx::detail::inline DFDX_TARGET {

template <class O>
inline constexpr std::size_t slot_count = static_cast<std::size_t>(O::slots);

template <class T, std::size_t>
using same = T;
template <class Model, std::size_t... I>
auto state_of(std::index_sequence<I...>) -> std::tuple<same<Model, I>...>;

/// The state of optimizer O for a model: one tree like it for each slot. A tuple, for g++ 12 cannot copy arrays of
/// structs with arrays in constant expressions.
template <class Model, class O>
using state_t = decltype(state_of<Model>(std::make_index_sequence<slot_count<O>>{}));

// The widest of a model's floating dtypes, f32 at least: what the optimizer's scalars are in the program.
template <class Model>
constexpr DType widest_dtype() {
  DType d = DType::f32;
  Model m{};
  visit(m, [&](auto const& leaf) {
    if (is_floating(leaf.dtype())) d = promote(d, leaf.dtype());
  });
  return d;
}
template <class Model>
inline constexpr DType scalar_dtype = widest_dtype<Model>();

// What an update computes with.
constexpr Sym widened(Sym const& x) {
  return is_floating(x.dtype()) ? cast_to(x, promote(x.dtype(), DType::f32)) : x;
}

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// Step - what train_step compiles: (loss, new model, new state) from (model, state, scalars, arguments...).
template <class Loss, class O>
struct Step {
  template <class Model, class S, class... A>
  static constexpr auto record(Model const& model, detail::state_t<Model, O> const& state, S const& scalars,
                               A const&... args) {
    auto const result = detail::record_call<Loss>(model, args...);
    using Result = std::remove_const_t<decltype(result)>;
    if constexpr (!detail::is_scalar<detail::loss_t<Result>>()) {
      return Refused{};
    } else {
      auto const loss = detail::loss_of(result);
      Vec<Sym> p = detail::syms_of(model), s = detail::syms_of(state);
      if constexpr (detail::has_more<Result>) {
        static_assert(std::is_same_v<typename Result::second_type, Model>,
                      "train_step: with the loss its model must be returned");
        Vec<Sym> const now = detail::syms_of(result.second);
        std::size_t i = 0;
        visit(model, [&](auto const& leaf) {
          if constexpr (is_buffer<decltype(leaf)>) p[i] = now[i];
          ++i;
        });
      }
      // They are emptied at the end: nvcc 13 forgets to destroy them in programs of many nodes.
      Vec<Sym> numbers = move(model, loss.sym(), scalars.sym(), p, s);
      if constexpr (optim::detail::scales_loss<O>) {
        Sym const finite = numbers[O::finite_at];
        std::size_t i = 0;
        visit(model, [&](auto const& leaf) {
          if (is_buffer<decltype(leaf)> && p[i].id != leaf.id())
            p[i] = apply<op::where>(finite > 0, p[i], leaf.sym());
          ++i;
        });
        auto all = std::tuple(loss, replaced(model, p), replaced(state, s),
                              detail::wrap<Tensor<element_t<detail::scalar_dtype<Model>>>>(Array(finite)));
        p = {}, s = {}, numbers = {};
        return all;
      } else {
        auto all = std::tuple(loss, replaced(model, p), replaced(state, s));
        p = {}, s = {}, numbers = {};
        return all;
      }
    }
  }

  /// What explain calls the arguments; the loss has the model as its argument 0.
  static std::string argument_name(std::size_t i) {
    return i == 0 ? "model" : i == 1 ? "state" : i == 2 ? "scalars" : "arg" + std::to_string(i - 2);
  }

  /// Parameters and state are written where they are read.
  template <class Model, class State, class... Rest>
  static constexpr graph::Aliases aliases() {
    graph::Aliases r(1, -1);
    int const n = leaf_count<Model> + static_cast<int>(detail::slot_count<O>) * leaf_count<Model>;
    for (int i = 0; i < n; ++i) r.push_back(i);
    return r;
  }

 private:
  template <class T>
  static constexpr T replaced(T const& tree, Vec<Sym> const& leaves) {
    Sym const* next = leaves.data();
    return detail::with_leaves(tree, next);
  }

  // The leaves that are learnt, by number, and their names if the optimizer asks for them.
  struct Learnt {
    Vec<std::size_t> leaves;
    Vec<Text> names;
    Vec<int> ids;
  };
  template <class Model>
  static constexpr Learnt learnt(Model const& model) {
    Learnt r;
    std::size_t i = 0;
    auto const consider = [&](Text const& name, auto const& leaf) {
      if (!is_buffer<decltype(leaf)> && is_floating(leaf.dtype()) &&
          optim::detail::moves<O>({name.data(), name.size()})) {
        r.leaves.push_back(i);
        if constexpr (optim::detail::by_name<O>()) r.names.push_back(name);
        r.ids.push_back(leaf.id());
      }
      ++i;
    };
    if constexpr (optim::detail::by_name<O>()) detail::visit_texts(model, consider);
    else visit(model, [&](auto const& leaf) { consider({}, leaf); });
    return r;
  }

  // The optimizer's step: parameters p and state s are replaced. Its numbers, as the optimizer has left them.
  template <class Model>
  static constexpr Vec<Sym> move(Model const& model, Sym const& loss, Sym const& scalars, Vec<Sym>& p,
                                 Vec<Sym>& s) {
    Vec<Sym> numbers, slots;
    for (int k = 0; k < O::scalars; ++k) numbers.push_back(reshape_to(slice_axis(scalars, 0, k, 1), Shape{}));
    Learnt const all = learnt(model);
    Sym seed = full_as(loss, loss.meta(), 1);
    if constexpr (optim::detail::scales_loss<O>) seed = cast_to(numbers[O::scale_at], loss.dtype());
    Vec<Sym> g = graph::pull_back(*loss.graph, Vec<Sym>{loss}, Vec<Sym>{seed}, all.ids);
    for (Sym& d : g) d = detail::widened(d);
    constexpr std::size_t width = detail::slot_count<O>;
    if constexpr (width != 0)  // or nvcc warns of the comparison
      for (std::size_t i : all.leaves)
        for (std::size_t k = 0; k < width; ++k) slots.push_back(detail::widened(s[k * p.size() + i]));
    optim::detail::prepare<O>(g.data(), g.size(), slots.data(), width, numbers.data());
    for (std::size_t j = 0; j < g.size(); ++j) {
      Sym& parameter = p[all.leaves[j]];
      DType const stored = parameter.dtype();
      Sym next = detail::widened(parameter);
      std::string_view name;
      if constexpr (optim::detail::by_name<O>()) name = {all.names[j].data(), all.names[j].size()};
      optim::detail::update<O>(name, next, g[j], slots.data() + j * width, numbers.data());
      parameter = cast_to(next, stored);
      if constexpr (width != 0)
        for (std::size_t k = 0; k < width; ++k)
          s[k * p.size() + all.leaves[j]] = cast_to(slots[j * width + k], stored);
    }
    return numbers;
  }
};

}  // namespace dfdx::inline DFDX_TARGET
