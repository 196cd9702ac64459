// SPDX-License-Identifier: BSL-1.0
// train_step: forward, backward and the optimizer's update as one program that writes the parameters in place.
#pragma once

#include <algorithm>
#include <vector>

#include <dfdx/program/step_rules.hpp>
#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/clone.hpp>
#include <dfdx/vocabulary/tree_map.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// A tree in memory of the CPU: itself, unless it lies elsewhere.
template <class Tree>
decltype(auto) on_cpu(Tree const& tree) {
  if constexpr (has_devices) {
    bool here = true;
    visit(tree, [&](auto const& leaf) { here = here && leaf.device().is_cpu(); });
    return here ? tree : to(Device{}, tree);
  } else {
    return (tree);
  }
}

// Memory of its own and zeros for a leaf of an optimizer's state.
template <class = void>
[[gnu::noinline]] void make_zeros(Array& leaf) {
  if (leaf.empty())
    raise("train_step: a parameter of shape ", leaf.shape(), " holds no memory; init gives it some");
  auto const bytes = static_cast<std::size_t>(leaf.size()) * size_of(leaf.dtype());
  leaf = Array(leaf.meta(), leaf.device());
  if (leaf.device().is_cpu()) std::memset(leaf.bytes(), 0, bytes);
  else device_memory->zero(leaf.bytes(), bytes, leaf.device());
}

// What a step writes may not share memory: of two updates of it one would be lost.
template <class = void>
void require_apart(std::vector<Array const*> leaves) {
  auto const begin = [](Array const& x) { return reinterpret_cast<std::uintptr_t>(x.bytes()); };
  std::sort(leaves.begin(), leaves.end(),
            [&](Array const* a, Array const* b) { return begin(*a) < begin(*b); });
  for (std::size_t i = 1; i < leaves.size(); ++i) {
    Array const &a = *leaves[i - 1], &b = *leaves[i];
    if (begin(b) < begin(a) + static_cast<std::uintptr_t>(a.size()) * size_of(a.dtype()))
      raise("train_step: parameters of shape ", a.shape(), " and ", b.shape(),
            " share memory, so that one of their updates would be lost; clone one, or use one field twice");
  }
}

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// TrainStep - a training step as a function object: step(model, args...) does one and returns the loss before it.
/// It owns the optimizer and its state (momentum, say), which are of one model: give each a step of its own. Another
/// of the same type would go on with that state, one of another type starts afresh. `step.optimizer().lr = ...`
/// changes the rate of the next step. Arguments are those of `compile`, plain numbers among them. A loss that changes
/// buffers of the model (running statistics) takes it by value and returns `std::pair(loss, model)`. A parameter that
/// the loss does not read has a gradient of zeros: weight decay moves it too, which PyTorch and optim::Optimizer leave
/// alone for want of a gradient; optim::freeze keeps it.
///
/// Cost      after the first step no allocation
/// Errors    "train_step: parameters must be contiguous"; "train_step: parameters of shape [3] and [3] share memory, so
///           that one of their updates would be lost; clone one, or use one field twice"; leaves without memory are
///           refused
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

  /// The loss of such a program.
  template <class P>
  using Value = typename std::tuple_element_t<0, typename detail::Recorded<P>::result>::value_type;

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
    static_assert(!std::is_const_v<Model>, "train_step: a step writes the model, which must not be const");
    static_assert(detail::has_static_leaves<Model>(),
                  "train_step: a model of Tensors, as many as its type says, required: "
                  "others are trained by optim::Optimizer");
    if constexpr (!detail::captures_nothing<Loss> || std::is_const_v<Model> ||
                  !detail::has_static_leaves<Model>())
      return Refused{};
    else if constexpr (!detail::gives_scalar<detail::loss_t<decltype(Loss{}(std::as_const(model), args...))>,
                                             Loss, Model, A...>())
      return Refused{};
    else if constexpr (!detail::is_recorded<program_for<Model, A...>>) return Refused{};
    else if constexpr (!detail::may_step<Loss, decltype(Loss{}(std::as_const(model), args...)), Model, O,
                                         A...>())
      return Refused{};
    else return run<program_for<Model, A...>>(model, args...);
  }

  template <class P, class Model, class... A>
  Value<P> run(Model& model, A const&... args) {
    detail::require_values_of_type(model);  // before the state, which is like the model
    auto& state = state_for(model);
    std::uint64_t where = 1;
    visit(model, [&](Array const& leaf) {
      if (!leaf.empty() && !leaf.contiguous_memory()) raise("train_step: parameters must be contiguous");
      where = (where ^ reinterpret_cast<std::uintptr_t>(leaf.bytes())) * 0x9e3779b97f4a7c15u;
    });
    if (where != apart_) look_at_memory(model, where);
    using Numbers = Scalars<Model>;
    Numbers const scalars = scalars_for(model);
    if constexpr (optim::detail::scales_loss<O>) {
      constexpr std::size_t last = P::plan.results.size() - 1;
      auto const take = [](Storage*, typename P::Frame const& frame) {
        using Finite = typename Numbers::value_type;
        return std::pair(detail::read_number<P, Value<P>>(P::plan.results[0], frame),
                         detail::read_number<P, Finite>(P::plan.results[last], frame) != 0);
      };
      auto const [loss, finite] =
          detail::run_and_take<P>(arenas_, take, model, state, scalars, detail::as_argument(args)...);
      ++steps_;
      optimizer_.seen(finite);
      return loss;
    } else {
      Value<P> const loss =
          detail::run_for_first<P, Value<P>>(arenas_, model, state, scalars, detail::as_argument(args)...);
      ++steps_;
      return loss;
    }
  }

  /// The optimizer's numbers for the next step, where the model lies, always in the same memory.
  template <class Model>
  Scalars<Model> scalars_for([[maybe_unused]] Model const& model) {
    using Numbers = Scalars<Model>;
    if (scalars_.empty() || scalars_.dtype() != Numbers::static_meta.dtype)
      scalars_ = Array(Numbers::static_meta);
    Numbers const scalars(typename Numbers::Unchecked{}, scalars_);
    auto const numbers = optimizer_.scalars_at(steps_ + 1);
    for (std::size_t k = 0; k < static_cast<std::size_t>(O::scalars); ++k)
      scalars.data()[k] = static_cast<typename Numbers::value_type>(numbers[k]);
    if constexpr (detail::has_devices) return on_device_of(model, scalars);
    else return scalars;
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
        visit(slot, [](Array& leaf) { detail::make_zeros(leaf); });
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
  template <class Model, class Numbers>
  Numbers on_device_of(Model const& model, Numbers const& scalars) {
    Device device;
    visit(model, [&](auto const& leaf) { device = leaf.device(); });
    if (device.is_cpu()) return scalars;
    if (device_scalars_.device() != device || device_scalars_.dtype() != scalars.dtype())
      device_scalars_ = Array(Numbers::static_meta, device);
    detail::device_memory->copy(device_scalars_.bytes(), device, scalars.bytes(), Device{},
                                static_cast<std::size_t>(scalars.size()) * size_of(scalars.dtype()));
    return Numbers(typename Numbers::Unchecked{}, device_scalars_);
  }
  // Once for each place where a model lies.
  template <class Model>
  void look_at_memory(Model const& model, std::uint64_t where) {
    std::vector<Array const*> leaves;
    visit(model, [&](Array const& leaf) {
      if (leaf.size() != 0) leaves.push_back(&leaf);
    });
    detail::require_apart(std::move(leaves));
    apart_ = where;
  }
  void forget() {
    if (state_ != nullptr) drop_state_(state_);
    state_ = nullptr;
    steps_ = 0;
  }

  O optimizer_;
  std::int64_t steps_ = 0;
  std::uint64_t apart_ = 0;  // tells places in memory from others
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
  static_assert(
      detail::captures_nothing<Loss>,
      "train_step: a lambda or function object without captures required; pass values as arguments");
  return TrainStep<Loss, O>(o);
}

/// given_gradients - the loss for gradients that were made elsewhere, by several threads, for each example
/// (vmap(grad(f))), or projected: `auto update = train_step(given_gradients, optim::Adam{}); update(model, gradients)`
/// moves the model by the optimizer's rule. What it returns is the sum of the products of parameters and gradients.
///
/// Math      sum_p p g_p, of which the gradient by p is g_p
/// Shapes    model, gradients: trees of one type -> []
/// Dtypes    floating; leaves of integers do not count
/// Errors    those of tree_map
/// Source    elementary
inline constexpr auto given_gradients = []<class Model>(Model const& model, Model const& gradients) {
  Tensor<element_t<detail::scalar_dtype<Model>>> total = 0;
  auto const products =
      tree_map([](auto const& p, auto const& g) { return p * stop_gradient(g); }, model, gradients);
  visit(products, [&](auto const& leaf) {
    using T = typename decltype(total)::value_type;
    if constexpr (is_floating(std::remove_cvref_t<decltype(leaf)>::static_meta.dtype))
      total = total + cast<T>(sum(leaf));
  });
  return total;
};

}  // namespace dfdx::inline DFDX_TARGET
