// SPDX-License-Identifier: BSL-1.0
// train_step: forward, backward and the optimizer's update as one program that writes the parameters in place.
#pragma once

#include <vector>

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

// A loss may return the model as well, with new values of its buffers.
template <class Y>
inline constexpr bool has_model = false;
template <class L, class M>
inline constexpr bool has_model<std::pair<L, M>> = true;
template <class Y>
constexpr decltype(auto) loss_of(Y const& y) {
  if constexpr (has_model<Y>) return (y.first);
  else return (y);
}
template <class Y>
using loss_t = std::remove_cvref_t<decltype(loss_of(std::declval<Y const&>()))>;

// A tree with memory of its own, for programs that write to what they are given.
template <class Tree>
Tree copied(Tree const& tree) {
  Tree r = tree;
  visit(r, [](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    leaf = Leaf(typename Leaf::Unchecked{}, leaf.clone());
  });
  return r;
}

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
      if constexpr (detail::has_model<Result>) {
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

/// TrainStep - a training step as a function object: step(model, args...) does one and returns the loss before it.
/// It owns the optimizer and its state; `step.optimizer().lr = ...` changes the rate of the next step. A loss that
/// changes buffers of the model (running statistics) takes it by value and returns `std::pair(loss, model)`.
///
/// Cost      after the first step no allocation
/// Errors    "train_step: parameters must be contiguous"; leaves without memory are refused
/// Threading one object, one thread
template <class Loss, optimizer O>
class TrainStep {
 public:
  /// The optimizer's numbers as a program for the model reads them.
  template <class Model>
  using Scalars = Tensor<element_t<detail::scalar_dtype<Model>>, static_cast<std::size_t>(O::scalars)>;

  /// The program for a model and arguments; its facts are constants.
  template <class Model, class... A>
  using program_for = program<Step<Loss, O>, Model, detail::state_t<Model, O>, Scalars<Model>, A...>;

  explicit TrainStep(O const& o) : optimizer_(o) {}
  TrainStep(TrainStep const&) = delete;
  TrainStep& operator=(TrainStep const&) = delete;
  TrainStep(TrainStep&& o) noexcept
      : optimizer_(o.optimizer_),
        steps_(o.steps_),
        state_(std::exchange(o.state_, nullptr)),
        drop_state_(o.drop_state_),
        state_tag_(o.state_tag_),
        arenas_(std::move(o.arenas_)) {}
  ~TrainStep() {
    if (state_ != nullptr) drop_state_(state_);
  }

  O& optimizer() { return optimizer_; }
  O const& optimizer() const { return optimizer_; }
  /// The same by the name that optim::Optimizer has.
  O& rule() { return optimizer_; }
  /// Steps done.
  std::int64_t steps() const { return steps_; }
  /// go_back(optimizer, steps) - counts on from an earlier time; the caller brings back the model and the state.
  void go_back(O const& optimizer, std::int64_t steps) {
    optimizer_ = optimizer;
    steps_ = steps;
  }

  template <class Model, class... A>
  auto operator()(Model& model, A const&... args) {
    // A mistake in the loss is found here, with few steps of the compiler to report.
    if constexpr (!detail::captures_nothing<Loss>) return Refused{};
    else if constexpr (!detail::is_scalar<detail::loss_t<decltype(Loss{}(std::as_const(model), args...))>>())
      return Refused{};
    else return run(model, args...);
  }

  template <class Model, class... A>
  auto run(Model& model, A const&... args) {
    using P = program_for<Model, A...>;
    using Value = typename std::tuple_element_t<0, typename P::result>::value_type;
    auto& state = state_for(model);
    visit(model, [](auto const& leaf) {
      if (!leaf.empty() && !leaf.contiguous_memory()) raise("train_step: parameters must be contiguous");
    });
    using Numbers = Scalars<Model>;
    Numbers scalars = scalars_for<Model>();
    if constexpr (detail::has_devices) scalars = scalars_with(model, scalars);
    if constexpr (optim::detail::scales_loss<O>) {
      constexpr std::size_t last = P::plan.results.size() - 1;
      auto const take = [](Storage*, typename P::Frame const& frame) {
        using Finite = typename Numbers::value_type;
        return std::pair(detail::read_number<P, Value>(P::plan.results[0], frame),
                         detail::read_number<P, Finite>(P::plan.results[last], frame) != 0);
      };
      auto const [loss, finite] = detail::run_and_take<P>(arenas_, take, model, state, scalars, args...);
      ++steps_;
      optimizer_.seen(finite);
      return loss;
    } else {
      Value const loss = detail::run_for_first<P, Value>(arenas_, model, state, scalars, args...);
      ++steps_;
      return loss;
    }
  }

  /// The optimizer's numbers for the next step.
  template <class Model>
  Scalars<Model> scalars_for() {
    using Numbers = Scalars<Model>;
    if (scalars_.empty() || scalars_.dtype() != Numbers::static_meta.dtype)
      scalars_ = Array(Numbers::static_meta);
    Numbers const scalars(typename Numbers::Unchecked{}, scalars_);
    auto const numbers = optimizer_.scalars_at(steps_ + 1);
    for (std::size_t k = 0; k < static_cast<std::size_t>(O::scalars); ++k)
      scalars.data()[k] = static_cast<typename Numbers::value_type>(numbers[k]);
    return scalars;
  }

  /// The optimizer's state for a model type, one tree like the model for each slot; made of zeros when first asked
  /// for.
  template <class Model>
  detail::state_t<Model, O>& state_for(Model const& model) {
    using State = detail::state_t<Model, O>;
    if (state_ != nullptr && state_tag_ != &detail::program_tag<State>) forget();
    if (state_ == nullptr) {
      auto* s = new State{};
      auto const make = [&model](Model& slot) {
        slot = model;
        visit(slot, [](auto& leaf) {
          using Leaf = std::remove_cvref_t<decltype(leaf)>;
          if (leaf.empty()) raise("train_step: a parameter of shape ", leaf.shape(), " holds no memory");
          auto const bytes = static_cast<std::size_t>(leaf.size()) * size_of(leaf.dtype());
          leaf = Leaf(typename Leaf::Unchecked{}, Array(leaf.meta(), leaf.device()));
          if (leaf.device().is_cpu()) std::memset(leaf.bytes(), 0, bytes);
          else detail::device_memory->zero(leaf.bytes(), bytes, leaf.device());
        });
      };
      std::apply([&](auto&... slot) { (make(slot), ...); }, *s);
      state_ = s;
      drop_state_ = [](void* p) { delete static_cast<State*>(p); };
      state_tag_ = &detail::program_tag<State>;
    }
    return *static_cast<State*>(state_);
  }

  /// What a checkpoint holds of it and a model (io/checkpoint.hpp).
  template <class Self, class Model, class F>
  static void visit_checkpoint(Self& self, Model& model, F const& f) {
    using State = detail::state_t<std::remove_const_t<Model>, O>;
    State const* state = nullptr;
    f("rule", self.optimizer_);
    if constexpr (!std::is_const_v<Self>) {
      self.forget();
      state = &self.state_for(model);
      f("steps", self.steps_);
    } else {
      if (self.state_tag_ == &detail::program_tag<State>) state = static_cast<State const*>(self.state_);
      std::int64_t const steps = state != nullptr ? self.steps_ : 0;
      f("steps", steps);
    }
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      [[maybe_unused]] auto const one = [&](std::size_t k, auto const* slot) {
        std::vector<Array> held;
        if (slot != nullptr)
          visit_state(*slot, [&](std::string const&, auto const& leaf) { held.push_back(leaf); });
        std::size_t i = 0;
        visit_state(std::as_const(model), [&](std::string const& name, auto const& leaf) {
          f.slot(k, name, leaf, slot != nullptr ? &held[i++] : nullptr);
        });
      };
      (one(K, state == nullptr ? nullptr : &std::get<K>(*state)), ...);
    }(std::make_index_sequence<detail::slot_count<O>>{});
  }

 private:
  // The same numbers where a model lies, always in the same memory.
  template <class Model, class Numbers>
  Numbers scalars_with(Model const& model, Numbers const& scalars) {
    Device device;
    visit(model, [&](auto const& leaf) { device = leaf.device(); });
    if (device.is_cpu()) return scalars;
    if (device_scalars_.device() != device || device_scalars_.dtype() != scalars.dtype())
      device_scalars_ = Array(Numbers::static_meta, device);
    detail::device_memory->copy(device_scalars_.bytes(), device, scalars.bytes(), Device{},
                                static_cast<std::size_t>(scalars.size()) * size_of(scalars.dtype()));
    return Numbers(typename Numbers::Unchecked{}, device_scalars_);
  }
  void forget() {
    if (state_ != nullptr) drop_state_(state_);
    state_ = nullptr;
    steps_ = 0;
  }

  O optimizer_;
  std::int64_t steps_ = 0;
  void* state_ = nullptr;
  void (*drop_state_)(void*) = nullptr;
  void const* state_tag_ = nullptr;
  Array scalars_, device_scalars_;
  detail::Arenas arenas_;
};

/// train_step(loss, optimizer) - a compiled training step; loss(model, args...) is a scalar.
///
/// Example   examples/05_training.cpp
template <class Loss, optimizer O>
TrainStep<Loss, O> train_step(Loss const&, O const& o) {
  static_assert(detail::captures_nothing<Loss>,
                "train_step: the loss must have no captures; pass values as arguments");
  return TrainStep<Loss, O>(o);
}

}  // namespace dfdx::inline DFDX_TARGET
