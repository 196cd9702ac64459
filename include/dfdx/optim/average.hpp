// SPDX-License-Identifier: BSL-1.0
// Over several steps: averages of the parameters, and sums of gradients.
#pragma once

#include <vector>

#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/rule.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::optim {

/// Average - does as O and keeps an exponential moving average of the parameters, often better than the last ones:
///
///   auto step = train_step(loss, optim::Average{optim::Adam{}, 0.999});
///   Model const smooth = optim::average(step, model);
///
/// Math      a = decay a + (1 - decay) p, a = p after the first step
/// Shapes    any
/// Dtypes    floating; an average in 16 bits hardly moves
/// Errors    none
/// Source    Polyak and Juditsky 1992; torch.optim.swa_utils.get_ema_multi_avg_fn
template <class O>
struct Average {
  O inner{};
  double decay = 0.999;
  DFDX_STATE(inner, decay)

  using inner_type = O;
  static constexpr int average_slot = O::slots;
  static constexpr int slots = O::slots + 1;
  static constexpr int scalars = O::scalars + 2;
  auto scalars_at(std::int64_t step, std::int64_t update = 0) const {
    double const kept = (update > 0 ? update : step) > 1 ? decay : 0;
    return detail::with_scalars(inner, step, update, std::array<double, 2>{kept, 1 - kept});
  }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    detail::prepare<O>(g, n, slot, stride, s);
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    detail::update<O>(name, p, g, slot, s);
    V& a = slot[O::slots];
    a = a * detail::beside(s[O::scalars], p) + p * detail::beside(s[O::scalars + 1], p);
  }
};
template <class O>
Average(O, double) -> Average<O>;

/// Accumulate - adds up the gradients of `count` steps and moves the parameters by their mean in the last of these:
/// batches larger than memory. The inner rule sees one step where we see `count`; it should be the outermost but for
/// clipping of each part.
///
/// Math      g = (g_1 + ... + g_count) / count
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    elementary
template <class O>
struct Accumulate {
  O inner{};
  int count = 1;
  DFDX_STATE(inner, count)

  using inner_type = O;
  static constexpr bool prepares_slots = true;
  static constexpr int slots = O::slots + 1;
  static constexpr int scalars = O::scalars + 2;
  auto scalars_at(std::int64_t step, std::int64_t update = 0) const {
    double const last = step % count == 0 ? 1 : 0;
    return detail::with_scalars(inner, (step + count - 1) / count, update,
                                std::array<double, 2>{last, 1.0 / count});
  }
  std::int64_t updates_in(std::int64_t steps) const { return detail::updates_in(inner, steps / count); }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    for (std::size_t i = 0; i < n; ++i) {
      V& all = slot[i * stride + static_cast<std::size_t>(O::slots)];
      g[i] = all + g[i] * detail::beside(s[O::scalars + 1], g[i]);
      all = apply<op::where>(s[O::scalars] > 0, 0.0, g[i]);
    }
    detail::prepare<O>(g, n, slot, stride, s);
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    V next = p, mine[O::slots + 1];
    for (int k = 0; k < O::slots; ++k) mine[k] = slot[k];
    detail::update<O>(name, next, g, mine, s);
    auto const last = s[O::scalars] > 0;
    p = apply<op::where>(last, next, p);
    for (int k = 0; k < O::slots; ++k) slot[k] = apply<op::where>(last, mine[k], slot[k]);
  }
};
template <class O>
Accumulate(O, int) -> Accumulate<O>;

namespace detail {

// Which slot of O is the average.
template <class O>
constexpr std::size_t average_slot() {
  if constexpr (requires { O::average_slot; }) return O::average_slot;
  else return average_slot<typename O::inner_type>();
}

// The averages that a TrainStep or an Optimizer keeps, in order of the leaves; empty where there is none.
template <class Step, class Model>
std::vector<Array> averages(Step& step, Model const& model) {
  using O = std::remove_cvref_t<decltype(step.rule())>;
  std::vector<Array> r;
  if constexpr (requires { step.state(); }) {
    for (std::vector<Array> const& slots : step.state())
      r.push_back(slots.empty() ? Array() : slots[average_slot<O>()]);
  } else {
    visit(std::get<average_slot<O>()>(step.state_for(model)), [&](auto const& a) { r.push_back(a); });
  }
  return r;
}

}  // namespace detail

/// average - the model with the averages that optim::Average keeps in place of its parameters; `step` is a TrainStep or
/// an Optimizer. What has no average (buffers, frozen parameters) is of the same memory as the model's.
template <class Step, tree Model>
Model average(Step& step, Model model) {
  using O = std::remove_cvref_t<decltype(step.rule())>;
  std::vector<Array> const all = detail::averages(step, model);
  std::size_t i = 0;
  visit_named(model, [&](std::string const& name, auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    Array const a = i < all.size() ? all[i] : Array();
    ++i;
    Array r = leaf.detach();
    if (!a.empty() && !is_buffer<Leaf> && is_floating(leaf.dtype()) && detail::moves<O>(name)) {
      r = dfdx::detail::moved(a.device(), a);
    }
    leaf = Leaf(typename Leaf::Unchecked{}, r);
  });
  return model;
}

}  // namespace dfdx::optim
