// SPDX-License-Identifier: BSL-1.0
// Losses by PyTorch's names: a value for each element, then their mean, their sum, or all of them. cross_entropy
// and nll_loss are in composite.hpp.
#pragma once

#include <dfdx/vocabulary/activation.hpp>

namespace dfdx {

/// Reduction - what becomes of the losses of elements. `batchmean` divides their sum by the extent of axis 0.
enum class Reduction { mean, sum, none, batchmean };

namespace detail {

template <Reduction R, operand X>
constexpr auto reduced_loss(X const& losses) {
  if constexpr (R == Reduction::none) return losses;
  else if constexpr (R == Reduction::mean) return mean(losses);
  else if constexpr (R == Reduction::sum) return sum(losses);
  else {
    index_t const n = losses.shape().rank == 0 ? 1 : losses.shape()[0];
    if (n < 0) raise("loss: batchmean needs a batch of known size, got ", losses.shape());
    return sum(losses) / static_cast<double>(n);
  }
}

}  // namespace detail

/// l1_loss<R>(x, target) - |x - target|.
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto l1_loss(X const& x, Y const& target) {
  return detail::reduced_loss<R>(abs(x - target));
}

/// mse_loss<R>(x, target) - (x - target)^2.
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto mse_loss(X const& x, Y const& target) {
  return detail::reduced_loss<R>(square(x - target));
}

/// huber_loss<R>(x, target, delta) - d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), d = x - target (Huber
/// 1964).
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto huber_loss(X const& x, Y const& target, double delta = 1) {
  auto const d = x - target, size = abs(d);
  return detail::reduced_loss<R>(where(size <= delta, square(d) * 0.5, (size - 0.5 * delta) * delta));
}

/// smooth_l1_loss<R>(x, target, beta) - d^2 / (2 beta) where |d| < beta, else |d| - beta / 2 (Girshick 2015). With
/// beta 0 it is l1_loss.
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto smooth_l1_loss(X const& x, Y const& target, double beta = 1) {
  auto const d = x - target, size = abs(d);
  double const safe = beta > 0 ? beta : 1;
  return detail::reduced_loss<R>(where(size < beta, square(d) * (0.5 / safe), size - 0.5 * beta));
}

/// bce_loss<R>(x, target) - -(t log x + (1 - t) log(1 - x)) for probabilities x; logarithms are at least -100, as
/// PyTorch has it, and have no gradient there.
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto bce_loss(X const& x, Y const& target) {
  auto const yes = clamp_min(log(x), -100), no = clamp_min(log1p(-x), -100);
  return detail::reduced_loss<R>(-(target * yes + (1.0 - target) * no));
}

/// bce_with_logits<R>(x, target) - bce_loss of sigmoid(x), without overflow: softplus(x) - t x.
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto bce_with_logits(X const& x, Y const& target) {
  return detail::reduced_loss<R>(softplus(x) - target * x);
}
/// With weights for the positive examples of each class: (1 - t) x + (1 + (w - 1) t) softplus(-x).
template <Reduction R = Reduction::mean, operand X, operand Y, operand W>
constexpr auto bce_with_logits(X const& x, Y const& target, W const& positive_weight) {
  auto const weight = (positive_weight - 1.0) * target + 1.0;
  return detail::reduced_loss<R>((1.0 - target) * x + weight * softplus(-x));
}

/// kl_div<R>(x, target) - t (log t - x) for log-probabilities x; nothing where t is 0.
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto kl_div(X const& x, Y const& target) {
  auto const positive = target > 0;
  auto const log_target = log(where(positive, target, 1.0));
  return detail::reduced_loss<R>(where(positive, target * (log_target - x), 0.0));
}
/// kl_div_log<R>(x, log_target) - the same for a target in logarithms: e^l (l - x).
template <Reduction R = Reduction::mean, operand X, operand Y>
constexpr auto kl_div_log(X const& x, Y const& log_target) {
  return detail::reduced_loss<R>(exp(log_target) * (log_target - x));
}

}  // namespace dfdx
