// SPDX-License-Identifier: BSL-1.0
// watch: a training step that does not let the model be spoilt. NaN is found while it is still known how the model was
// before; the tape then says which op made it.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <dfdx/program/train_step.hpp>
#include <dfdx/transforms/eager.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/measure.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// Whether numbers that lie side by side are finite: one that is not has all bits of its exponent set. (Blocks of a
// known size become vectors at -O2. Done op by op, this takes longer than the steps of small models.)
template <class T>
bool finite_numbers(std::byte const* memory, index_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  constexpr index_t block = 64;
  auto const* const x = reinterpret_cast<T const*>(memory);
  auto const bad = [&](index_t i) -> Bits { return (std::bit_cast<Bits>(x[i]) & exponent) == exponent; };
  Bits any = 0;
  index_t i = 0;
  for (; i + block <= n && any == 0; i += block)
    for (index_t k = 0; k < block; ++k) any |= bad(i + k);
  for (; i < n; ++i) any |= bad(i);
  return any == 0;
}

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// all_finite - whether all floating numbers of a tree are.
///
/// Errors    none
template <class T>
bool all_finite(T const& t) {
  bool good = true;
  visit(t, [&](auto const& given) {
    decltype(auto) leaf = detail::on_cpu(given);
    if (!good || leaf.empty() || !is_floating(leaf.dtype())) return;
    bool const plain = leaf.contiguous_memory();
    if (plain && leaf.dtype() == DType::f32) good = detail::finite_numbers<float>(leaf.bytes(), leaf.size());
    else if (plain && leaf.dtype() == DType::f64)
      good = detail::finite_numbers<double>(leaf.bytes(), leaf.size());
    else good = all(isfinite(leaf.detach())).item();
  });
  return good;
}

/// first_nan(loss, model, args...) - which op is the first to make NaN of numbers when loss(model, args...) and its
/// gradient by the model are computed, found on the tape; empty if none does. (The loss may return its model too.)
///
/// Errors    those of the loss, as its words
/// Cost      that of a step on the tape; to the compiler that of the loss for the tape
/// Example   first_nan(loss, model, x): "log: made NaN of numbers, in a result of shape [32]"
template <class Loss, class Model, class... A>
std::string first_nan(Loss const&, Model const& model, A const&... args) {
  static_assert(detail::captures_nothing<Loss>,
                "first_nan: a lambda or function object without captures required; pass values as arguments");
  auto const look_for_nan = [&]() -> std::string {
    detect_anomaly const look;
    enable_grad const recording;
    Model watched = detail::on_cpu(model);
    std::vector<Array> wrt;
    visit(watched, [&](auto& leaf) {
      if (!is_floating(leaf.dtype())) return;  // a table of indices, a count: it has no gradient
      detail::put_on_tape(leaf);
      wrt.push_back(leaf);
    });
    auto const result = detail::Eager<Loss>::call(watched, detail::on_cpu(args)...);
    detail::slopes<Array>(detail::loss_of(result), wrt, {});
    return {};
  };
  return detail::caught<error>(look_for_nan, [](error const& e) -> std::string { return e.what(); });
}

/// Watched - what watch(step, model) returns. It refers to both.
///
/// Threading one object, one thread
template <class Loss, optimizer O, class Model, class Why>
class Watched {
 public:
  Watched(TrainStep<Loss, O>& step, Model& model, Why const& why)
      : step_(step),
        model_(model),
        why_(why),
        rule_(step.optimizer()),
        good_(clone(model)),
        good_state_(clone(step.state_for(model))) {}

  /// One step; the loss before it.
  template <class... A>
  auto operator()(A const&... args) {
    auto& state = step_.state_for(model_);
    copy(model_, good_);
    copy(state, good_state_);
    rule_ = step_.optimizer();
    std::int64_t const done = step_.steps();
    auto const undo = [&] {
      copy(good_, model_);
      copy(good_state_, state);
      step_.go_back(rule_, done);
    };
    // A device says of an index out of range when the loss is read, and the step has been done with something else.
    auto const loss = detail::caught<error>([&] { return step_(model_, args...); },
                                            [&](error const& e) -> decltype(step_(model_, args...)) {
                                              undo();
                                              raise(e.what());
                                            });
    if (std::isfinite(static_cast<double>(loss)) && all_finite(model_) && all_finite(state)) return loss;
    undo();
    std::string cause = why_(std::as_const(model_), args...);
    if (cause.empty())
      cause = std::isfinite(static_cast<double>(loss))
                  ? "the optimizer makes numbers that are not finite of a finite gradient"
                  : "the loss is " + std::to_string(loss);
    raise("train_step: step " + std::to_string(done + 1) + ": " + cause + "; the model is as it was after " +
          std::to_string(done) + " steps");
  }

 private:
  template <class T>
  static void copy(T const& from, T& to) {
    std::vector<std::byte const*> memory;
    visit(from, [&](auto const& leaf) { memory.push_back(leaf.bytes()); });
    std::size_t k = 0;
    visit(to, [&](auto& leaf) {
      auto const bytes = static_cast<std::size_t>(leaf.size()) * size_of(leaf.dtype());
      std::byte const* const source = memory[k++];
      if (leaf.device().is_cpu()) std::memcpy(leaf.bytes(), source, bytes);
      else if constexpr (detail::has_devices)
        dfdx::detail::device_memory->copy(leaf.bytes(), leaf.device(), source, leaf.device(), bytes);
    });
  }

  TrainStep<Loss, O>& step_;
  Model& model_;
  Why why_;
  O rule_;
  Model good_;
  detail::state_t<Model, O> good_state_;
};

/// watch(step, model) - the step of train_step for this model, as a function of its other arguments. If a step makes
/// the loss, a parameter or the optimizer's state NaN or infinite, the model, the optimizer and its state are brought
/// back to what they were before, and an error says which op first made NaN, forward or backward.
/// watch(step, model, why) - the same, but why(model, args...) finds the cause: where the compiler shall not see the
/// loss for the tape in this file, a function of another that calls first_nan.
///
/// Cost      each step a copy of the model and its state, and a look at the new ones
/// Errors    "train_step: step 12: log: made NaN of numbers, in a result of shape [32]; the model is as it was after 11
///           steps"
/// Example   auto one = watch(step, model); float const loss = one(x, y);
template <class Loss, optimizer O, class Model, class Why>
auto watch(TrainStep<Loss, O>& step, Model& model, Why why) {
  return Watched<Loss, O, Model, Why>(step, model, why);
}
template <class Loss, optimizer O, class Model>
auto watch(TrainStep<Loss, O>& step, Model& model) {
  return watch(step, model, [](auto const&... args) { return first_nan(Loss{}, args...); });
}

}  // namespace dfdx::inline DFDX_TARGET
