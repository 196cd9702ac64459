// SPDX-License-Identifier: BSL-1.0
// Optimizers for parameters on the run-time tape: the rules of train_step, run eagerly.
#pragma once

#include <vector>

#include <dfdx/optim/sgd.hpp>
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
/// stay as they are.
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
    visit(model, [&](auto& leaf) { parameters.push_back(&leaf); });
    if (!state_.empty() && state_.size() != parameters.size())
      raise("step: the optimizer has state for ", static_cast<index_t>(state_.size()),
            " parameters, the model has ", static_cast<index_t>(parameters.size()));
    state_.resize(parameters.size());

    std::vector<std::size_t> moved;
    std::vector<Array> gradients;
    DType scalar = DType::f32;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Array const g = parameters[i]->grad();
      if (g.empty()) continue;
      moved.push_back(i);
      gradients.push_back(widened(g.detach()));
      scalar = promote(scalar, g.dtype());
    }
    ++steps_;
    std::vector<Array> scalars;
    for (double v : rule_.scalars_at(steps_)) scalars.push_back(full({}, v, scalar));
    if constexpr (requires { O::prepare(gradients.data(), std::size_t{1}, scalars.data()); })
      O::prepare(gradients.data(), gradients.size(), scalars.data());
    for (std::size_t k = 0; k < moved.size(); ++k)
      update(*parameters[moved[k]], gradients[k], state_[moved[k]], scalars);
  }

 private:
  static Array widened(Array const& x) { return cast_to(x, promote(x.dtype(), DType::f32)); }

  static void update(Array& p, Array const& g, std::vector<Array>& slots, std::vector<Array> const& scalars) {
    DType const stored = p.dtype();
    Array next = widened(p.detach());
    std::vector<Array> mine;
    for (int k = 0; k < O::slots; ++k)
      mine.push_back(slots.empty() ? full_as(next, next.meta(), 0.0)
                                   : widened(slots[static_cast<std::size_t>(k)]));
    O::update(next, g, mine.data(), scalars.data());
    p.copy_(next);
    slots.clear();
    for (Array const& m : mine) slots.push_back(cast_to(m, stored));
  }

  O rule_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<Array>> state_;
};

}  // namespace dfdx::optim
