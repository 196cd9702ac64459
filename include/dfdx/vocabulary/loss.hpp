// SPDX-License-Identifier: BSL-1.0
// Losses by PyTorch's names: a value for each element, then their mean, their sum, or all of them. cross_entropy
// and nll_loss are in class_loss.hpp.
#pragma once

#include <dfdx/vocabulary/activation.hpp>
#include <dfdx/vocabulary/class_loss.hpp>

namespace dfdx {

/// l1_loss<R>(x, target) - |x - target|.
///
/// Shapes    x, target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    all but bool, promoted; means of integers in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "l1_loss: [8, 1] and [8] would both be repeated to [8, 8]: reshape one of them"
/// Source    PyTorch's l1_loss
template <Reduction... R, operand X, operand Y>
constexpr auto l1_loss(X const& x, Y const& target, Reduction how = Reduction::mean) {
  auto const loss = [&](auto const& v, auto const& t) {
    return detail::reduced_loss<R...>("l1_loss", abs(detail::facing<"l1_loss">(v, t) - t), how);
  };
  return detail::computed_in_f32(loss, x, target);
}

/// mse_loss<R>(x, target) - (x - target)^2.
///
/// Shapes    x, target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    all but bool, promoted; means of integers in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "mse_loss: [8, 1] and [8] would both be repeated to [8, 8]: reshape one of them"
/// Source    PyTorch's mse_loss
template <Reduction... R, operand X, operand Y>
constexpr auto mse_loss(X const& x, Y const& target, Reduction how = Reduction::mean) {
  auto const loss = [&](auto const& v, auto const& t) {
    return detail::reduced_loss<R...>("mse_loss", square(detail::facing<"mse_loss">(v, t) - t), how);
  };
  return detail::computed_in_f32(loss, x, target);
}

/// huber_loss<R>(x, target, delta) - d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), d = x - target.
///
/// Shapes    x, target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "huber_loss: a positive delta required"
/// Source    Huber 1964; PyTorch's huber_loss
template <Reduction... R, operand X, operand Y>
constexpr auto huber_loss(X const& x, Y const& target, double delta = 1, Reduction how = Reduction::mean) {
  if (!(delta > 0)) raise("huber_loss: a positive delta required");
  auto const loss = [&](auto const& v, auto const& t) {
    auto const d = detail::facing<"huber_loss">(v, t) - t, size = abs(d);
    auto const each = where(size <= delta, square(d) * 0.5, (size - 0.5 * delta) * delta);
    return detail::reduced_loss<R...>("huber_loss", each, how);
  };
  return detail::computed_in_f32(loss, x, target);
}

/// smooth_l1_loss<R>(x, target, beta) - d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, d = x - target. With beta
/// 0 it is l1_loss.
///
/// Shapes    x, target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "smooth_l1_loss: a beta that is not negative required"
/// Source    Girshick, ICCV 2015; PyTorch's smooth_l1_loss
template <Reduction... R, operand X, operand Y>
constexpr auto smooth_l1_loss(X const& x, Y const& target, double beta = 1, Reduction how = Reduction::mean) {
  if (!(beta >= 0)) raise("smooth_l1_loss: a beta that is not negative required");
  double const safe = beta > 0 ? beta : 1;
  auto const loss = [&](auto const& v, auto const& t) {
    auto const d = detail::facing<"smooth_l1_loss">(v, t) - t, size = abs(d);
    auto const each = where(size < beta, square(d) * (0.5 / safe), size - 0.5 * beta);
    return detail::reduced_loss<R...>("smooth_l1_loss", each, how);
  };
  return detail::computed_in_f32(loss, x, target);
}

/// bce_loss<R>(probability, target) - -(t log p + (1 - t) log(1 - p)); logarithms are at least -100, as PyTorch has it,
/// and have no gradient there.
///
/// Shapes    probability, target, weight: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "bce_loss: probabilities between 0 and 1 required", in memory; a program has NaN there
/// Source    PyTorch's binary_cross_entropy
template <Reduction... R, operand X, operand Y>
constexpr auto bce_loss(X const& probability, Y const& target, Reduction how = Reduction::mean) {
  auto const x = detail::facing<"bce_loss">(probability, target);
  detail::each_in_memory(x, [](Operand const& o, index_t at) {
    double const p = read_real(o, at);
    if (!(p >= 0 && p <= 1)) raise("bce_loss: probabilities between 0 and 1 required");
  });
  constexpr double least = 3.7200759760208361e-44;  // e^-100
  auto const loss = [&](auto const& p, auto const& t) {
    auto const none = logical_and(p >= 0.0, p <= least), all = p == 1.0;
    auto const yes = where(none, -100.0, log(where(none, 1.0, p)));
    auto const no = where(all, -100.0, log1p(-where(all, 0.0, p)));
    return detail::reduced_loss<R...>("bce_loss", -(t * yes + (1.0 - t) * no), how);
  };
  return detail::computed_in_f32(loss, x, target);
}

/// With a weight for each element.
template <Reduction... R, operand X, operand Y, operand W>
constexpr auto bce_loss(X const& x, Y const& target, W const& weight, Reduction how = Reduction::mean) {
  return detail::reduced_loss<R...>(
      "bce_loss", bce_loss<Reduction::none>(detail::beside<"bce_loss">(x, target, weight), target) * weight,
      how);
}

namespace detail {

// ln(1 + e^-|x|): what a logistic loss is besides x times a factor, which is exactly 0 where x decides as it should. So
// that what is decided well costs little, but not nothing, though x may be large.
template <class X>
constexpr auto undecided(X const& x) {
  return log1p(exp(where(x > 0, -x, x)));
}

}  // namespace detail

/// bce_with_logits<R>(x, target) - bce_loss of sigmoid(x), without overflow and where it is small without cancellation.
///
/// Math      softplus(x) - t x
/// Shapes    x, target, positive_weight, weight: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's binary_cross_entropy_with_logits
template <Reduction... R, operand X, operand Y>
constexpr auto bce_with_logits(X const& x, Y const& target, Reduction how = Reduction::mean) {
  auto const loss = [&](auto const& given, auto const& t) {
    auto const v = detail::facing<"bce_with_logits">(detail::real(given), t);
    auto const factor = where(v > 0, ones_as(v), zeros_as(v)) - t;
    return detail::reduced_loss<R...>("bce_with_logits", factor * v + detail::undecided(v), how);
  };
  return detail::computed_in_f32(loss, x, target);
}
/// With weights for the positive examples of each class: (1 - t) x + (1 + (w - 1) t) softplus(-x).
template <Reduction... R, operand X, operand Y, operand W>
constexpr auto bce_with_logits(X const& x, Y const& target, W const& positive_weight,
                               Reduction how = Reduction::mean) {
  auto const loss = [&](auto const& v, auto const& given, auto const& w) {
    auto const t = detail::beside<"bce_with_logits">(detail::real(given), v, w);
    auto const factor = where(v > 0, 1.0 - t, -(w * t));
    auto const weighted = ((w - 1.0) * t + 1.0) * detail::undecided(detail::real(v));
    return detail::reduced_loss<R...>("bce_with_logits", factor * v + weighted, how);
  };
  return detail::computed_in_f32(loss, x, target, positive_weight);
}

/// And with a weight for each element.
template <Reduction... R, operand X, operand Y, operand P, operand W>
constexpr auto bce_with_logits(X const& x, Y const& target, P const& positive_weight, W const& weight,
                               Reduction how = Reduction::mean) {
  return detail::reduced_loss<R...>(
      "bce_with_logits",
      bce_with_logits<Reduction::none>(detail::beside<"bce_with_logits">(x, target, weight), target,
                                       positive_weight) *
          weight,
      how);
}

/// KlDiv - options of kl_div; with log_target the target is in logarithms too.
struct KlDiv {
  bool log_target = false;
  Reduction reduction = Reduction::mean;
};

/// kl_div<R>(x, target, options) - t (log t - x) for log-probabilities x; nothing where t is 0.
///
/// Shapes    x, target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "kl_div: [8, 1] and [8] would both be repeated to [8, 8]: reshape one of them"
/// Source    PyTorch's kl_div
template <Reduction... R, operand X, operand Y>
constexpr auto kl_div(X const& log_p, Y const& target, KlDiv const& options = {}) {
  auto const loss = [&](auto const& given, auto const& t) {
    auto const x = detail::facing<"kl_div">(given, t);
    if (options.log_target) return detail::reduced_loss<R...>("kl_div", exp(t) * (t - x), options.reduction);
    auto const none = t <= 0;  // NaN is not
    auto const log_target = log(where(none, 1.0, t));
    return detail::reduced_loss<R...>("kl_div", where(none, 0.0, t * (log_target - x)), options.reduction);
  };
  return detail::computed_in_f32(loss, log_p, target);
}
/// kl_div_log<R>(x, log_target) - the same for a target in logarithms: e^l (l - x).
///
/// Shapes    x, log_target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's kl_div
template <Reduction... R, operand X, operand Y>
constexpr auto kl_div_log(X const& x, Y const& log_target) {
  return kl_div<R...>(x, log_target, {.log_target = true});
}

/// PoissonNll - options of poisson_nll_loss: whether x is the logarithm of the rate, and whether Stirling's
/// approximation of ln(t!) is added where t > 1.
struct PoissonNll {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Reduction reduction = Reduction::mean;
};

/// poisson_nll_loss<R>(x, target, options) - e^x - t x, or x - t log(x + eps) of rates.
///
/// Shapes    x, target: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's poisson_nll_loss
template <Reduction... R, operand X, operand Y>
constexpr auto poisson_nll_loss(X const& rate, Y const& target, PoissonNll const& options = {}) {
  auto const all = [&](auto const& given, auto const& count) {
    auto const x = detail::facing<"poisson_nll_loss">(given, count);
    auto const loss = detail::either(
        options.log_input, [&] { return exp(x) - count * x; },
        [&] { return x - count * log(x + options.eps); });
    if (!options.full) return detail::reduced_loss<R...>("poisson_nll_loss", loss, options.reduction);
    auto const large = count > 1;
    auto const t = where(large, count, 1.0);
    auto const stirling = t * log(t) - t + log(t * 6.2831853071795865) * 0.5;
    return detail::reduced_loss<R...>("poisson_nll_loss", loss + where(large, stirling, 0.0),
                                      options.reduction);
  };
  return detail::computed_in_f32(all, rate, target);
}

/// GaussianNll - options of gaussian_nll_loss: variances are at least eps; `full` adds the constant.
struct GaussianNll {
  bool full = false;
  double eps = 1e-6;
  Reduction reduction = Reduction::mean;
};

/// gaussian_nll_loss<R>(x, target, var, options) - (log var + (x - target)^2 / var) / 2; where var is below eps its
/// gradient is that of eps in its place, as in PyTorch.
///
/// Shapes    x, target, var: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "gaussian_nll_loss: variances that are not negative required", of values in memory
/// Source    PyTorch's gaussian_nll_loss
template <Reduction... R, operand X, operand Y, operand V>
constexpr auto gaussian_nll_loss(X const& x, Y const& target, V const& var, GaussianNll const& options = {}) {
  detail::each_in_memory(var, [](Operand const& o, index_t at) {
    if (read_real(o, at) < 0) raise("gaussian_nll_loss: variances that are not negative required");
  });
  auto const all = [&](auto const& at, auto const& wanted, auto const& given) {
    auto const v = where(given < options.eps, options.eps + (given - stop_gradient(given)), given);
    auto const d = detail::beside<"gaussian_nll_loss">(at, wanted, given) - wanted;
    auto const loss = (log(v) + square(d) / v) * 0.5;
    return detail::reduced_loss<R...>("gaussian_nll_loss", options.full ? loss + 0.91893853320467274 : loss,
                                      options.reduction);
  };
  return detail::computed_in_f32(all, x, target, var);
}

}  // namespace dfdx
