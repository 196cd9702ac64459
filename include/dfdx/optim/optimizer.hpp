// SPDX-License-Identifier: BSL-1.0
// Optimizers for parameters on the run-time tape: the rules of train_step, run eagerly.
#pragma once

#include <map>
#include <vector>

#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/rule.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/in_place.hpp>

namespace dfdx::optim {

/// Optimizer - applies an optimizer's rule to the gradients that backward() left in a model's parameters:
///
///   optim::Optimizer optimizer(optim::AdamW{.lr = 1e-3});
///   loss.backward();
///   optimizer.step(model);
///   zero_grad(model);
///
/// It holds the rule's state for one model; `rule()` changes the rate of the next step. Parameters without a gradient
/// stay as they are, and the step does not count for them: each has Adam's corrections by its own updates.
///
/// Math      the rule's
/// Shapes    any
/// Dtypes    floating; parameters in 16 bits are updated in f32, then they and their state are rounded
/// Errors    "step: the optimizer has state for 4 parameters, the model has 6"
/// Source    torch.optim
template <class O>
class Optimizer {
 public:
  explicit Optimizer(O rule) : rule_(std::move(rule)) {}

  O& rule() { return rule_; }
  std::int64_t steps() const { return steps_; }

  template <tree Model>
  void step(Model& model) {
    no_grad const guard;
    std::vector<Array*> parameters;
    std::vector<std::string> names;
    visit_named(model, [&](std::string const& name, auto& leaf) {
      parameters.push_back(&leaf);
      names.push_back(name);
    });
    if (!state_.empty() && state_.size() != parameters.size())
      raise("step: the optimizer has state for ", static_cast<index_t>(state_.size()),
            " parameters, the model has ", static_cast<index_t>(parameters.size()));
    if (Text why; state_.empty() && !detail::all_match<O>(names, &why)) raise(why);
    state_.resize(parameters.size());

    std::vector<std::size_t> moved;
    std::vector<Array> gradients;
    DType scalar = DType::f32;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Array const g = parameters[i]->grad();
      if (g.empty() || !detail::moves<O>(names[i])) continue;
      moved.push_back(i);
      gradients.push_back(widened(g.detach()));
      scalar = promote(scalar, g.dtype());
    }
    std::int64_t const before = detail::updates_in(rule_, steps_);  // of a parameter that each step moved
    ++steps_;
    updates_.resize(parameters.size());
    auto const numbers = [&](std::int64_t update) {
      std::vector<Array> r;
      for (double v : detail::scalars_at(rule_, steps_, update)) r.push_back(full({}, v, scalar));
      return r;
    };
    std::map<std::int64_t, std::vector<Array>> scalars_of;
    std::vector<Array>& scalars = scalars_of[before + 1] = numbers(0);
    std::vector<Array> slots;
    for (std::size_t i : moved) {
      Array const p = widened(parameters[i]->detach());
      for (std::size_t k = 0; k < width; ++k)
        slots.push_back(state_[i].empty() ? full_as(p, p.meta(), 0.0) : widened(state_[i][k]));
    }
    detail::prepare<O>(gradients.data(), gradients.size(), slots.data(), width, scalars.data());
    bool updates = detail::updates_in(rule_, steps_) > before;
    if constexpr (detail::scales_loss<O>) updates = updates && scalars[O::finite_at].item() != 0;
    for (std::size_t j = 0; j < moved.size(); ++j) {
      Array& p = *parameters[moved[j]];
      DType const stored = p.dtype();
      Array next = widened(p.detach());
      std::int64_t& done = updates_[moved[j]];
      auto const [own, fresh] = scalars_of.try_emplace(done + 1);
      if (fresh) own->second = numbers(done + 1);
      if constexpr (detail::scales_loss<O>) own->second[O::finite_at] = scalars[O::finite_at];
      detail::update<O>(names[moved[j]], next, gradients[j], slots.data() + j * width, own->second.data());
      if (updates) ++done;
      p.copy_(next);
      std::vector<Array>& kept = state_[moved[j]];
      kept.clear();
      for (std::size_t k = 0; k < width; ++k)
        kept.push_back(cast_to(dfdx::detail::lazy<width>(slots[j * width + k]), stored));
    }
    if constexpr (detail::scales_loss<O>) rule_.seen(scalars[O::finite_at].item() != 0);
  }

  /// The state of each parameter, in order of the leaves: as many Arrays as the rule has slots, none before it was
  /// first moved.
  std::vector<std::vector<Array>> const& state() const { return state_; }

  /// What a checkpoint holds of it and a model (io/checkpoint.hpp).
  template <class Self, class Model, class F>
  static void visit_checkpoint(Self& self, Model& model, F const& f) {
    f("rule", self.rule_);
    f("steps", self.steps_);
    std::vector<std::vector<Array>> all = self.state_;
    std::size_t i = 0;
    visit(std::as_const(model), [&](auto const&) { ++i; });
    all.resize(i);
    Array moved(Meta{DType::u8, make_shape(i)});  // whether there is state yet
    auto* const any = moved.data<std::uint8_t>();
    for (i = 0; i < all.size(); ++i) any[i] = all[i].empty() ? 0 : 1;
    f("moved", moved);
    Array updates(Meta{DType::i64, make_shape(i)});
    auto* const counts = updates.data<std::int64_t>();
    std::int64_t const unknown = -1;  // files of before have none
    for (i = 0; i < all.size(); ++i)
      counts[i] = !std::is_const_v<Self> ? unknown : i < self.updates_.size() ? self.updates_[i] : 0;
    f.newer("updates", updates);
    i = 0;
    visit_named(std::as_const(model), [&](std::string const& name, auto const& leaf) {
      std::vector<Array>& one = all[i++];
      one.resize(width);
      for (std::size_t k = 0; k < width; ++k) f.slot(k, name, leaf, &one[k]);
      if (any[i - 1] == 0) one.clear();
    });
    if constexpr (!std::is_const_v<Self>) {
      self.updates_.resize(all.size());
      for (i = 0; i < all.size(); ++i) {
        if (counts[i] == unknown) counts[i] = any[i] == 0 ? 0 : detail::updates_in(self.rule_, self.steps_);
        self.updates_[i] = counts[i];
      }
      self.state_ = std::move(all);
    }
  }

 private:
  static constexpr auto width = static_cast<std::size_t>(O::slots);

  static Array widened(Array const& x) {
    return cast_to(dfdx::detail::lazy<width>(x), promote(x.dtype(), DType::f32));
  }

  O rule_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<Array>> state_;
  std::vector<std::int64_t> updates_;  // of each parameter
};

}  // namespace dfdx::optim
