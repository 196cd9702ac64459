// SPDX-License-Identifier: BSL-1.0
// Relatives of Adam: Adamax, NAdam, RAdam. In all weight_decay adds to the gradient.
#pragma once

#include <cmath>

#include <dfdx/optim/sgd.hpp>

namespace dfdx::optim {

/// Adamax - Adam with the largest gradient of the recent past in place of the root of their mean square.
///
/// Math      g += decay p;  m = b1 m + (1 - b1) g;  u = max(b2 u, |g| + eps);  p -= lr / (1 - b1^t) m / u
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Kingma and Ba, ICLR 2015; torch.optim.Adamax
struct Adamax {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  DFDX_STATE(lr, beta1, beta2, eps, weight_decay)

  static constexpr int slots = 2;
  static constexpr int scalars = 6;
  std::array<double, 6> scalars_at(std::int64_t step) const {
    return {
        lr / (1 - std::pow(beta1, static_cast<double>(step))), beta1, 1 - beta1, beta2, eps, weight_decay};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const g = gradient + p * detail::beside(s[5], p);
    slot[0] = slot[0] * detail::beside(s[1], p) + g * detail::beside(s[2], p);
    slot[1] =
        apply<op::maximum>(slot[1] * detail::beside(s[3], p), apply<op::abs>(g) + detail::beside(s[4], p));
    p = p - slot[0] * detail::beside(s[0], p) / slot[1];
  }
};

namespace detail {

// m and v after one step of gradient g, of the numbers from s[k] on: beta1, 1 - beta1, beta2, 1 - beta2.
template <class V>
constexpr void move_moments(V const& p, V const& g, V* slot, V const* s, int k) {
  slot[0] = slot[0] * beside(s[k], p) + g * beside(s[k + 1], p);
  slot[1] = slot[1] * beside(s[k + 2], p) + g * g * beside(s[k + 3], p);
}

}  // namespace detail

/// NAdam - Adam with Nesterov momentum, which grows over the first steps.
///
/// Math      g += decay p;  m, v as Adam;  u_t = b1 (1 - 0.96^(t momentum_decay) / 2), U_t = u_1 ... u_t;
///           p -= lr ((1 - u_t) / (1 - U_t) g + u_{t+1} / (1 - U_{t+1}) m) / (sqrt(v / (1 - b2^t)) + eps)
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Dozat, "Incorporating Nesterov momentum into Adam", 2016; torch.optim.NAdam
struct NAdam {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  DFDX_STATE(lr, beta1, beta2, eps, weight_decay, momentum_decay)

  static constexpr int slots = 2;
  static constexpr int scalars = 9;
  std::array<double, 9> scalars_at(std::int64_t step) const {
    auto const at = [this](std::int64_t t) {
      return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
    };
    // In f32, as PyTorch keeps it. What is left of the product soon no longer shows beside 1.
    float so_far = 1;
    for (std::int64_t t = 1; t <= step && so_far > 1e-20f; ++t) so_far *= static_cast<float>(at(t));
    auto const product = static_cast<double>(so_far);
    double const next = at(step + 1), c2 = 1 - std::pow(beta2, static_cast<double>(step));
    return {lr * (1 - at(step)) / (1 - product),
            lr * next / (1 - product * next),
            1 / std::sqrt(c2),
            eps,
            weight_decay,
            beta1,
            1 - beta1,
            beta2,
            1 - beta2};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const g = gradient + p * detail::beside(s[4], p);
    detail::move_moments(p, g, slot, s, 5);
    V const divisor = apply<op::sqrt>(slot[1]) * detail::beside(s[2], p) + detail::beside(s[3], p);
    p = p - (g * detail::beside(s[0], p) + slot[0] * detail::beside(s[1], p)) / divisor;
  }
};

/// RAdam - Adam that warms up: its divisor is used once the variance of its estimate is known to be finite, and is
/// rectified.
///
/// Math      g += decay p;  m, v as Adam;  r = 2 / (1 - b2) - 1, r_t = r - 2 t b2^t / (1 - b2^t);  p -= lr / (1 -
///           b1^t) m, times sqrt((r_t - 4)(r_t - 2) r / ((r - 4)(r - 2) r_t)) sqrt(1 - b2^t) / (sqrt(v) + eps) if
///           r_t > 5
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Liu et al., ICLR 2020; torch.optim.RAdam
struct RAdam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  DFDX_STATE(lr, beta1, beta2, eps, weight_decay)

  static constexpr int slots = 2;
  static constexpr int scalars = 8;
  std::array<double, 8> scalars_at(std::int64_t step) const {
    auto const t = static_cast<double>(step);
    double const power = std::pow(beta2, t), rate = lr / (1 - std::pow(beta1, t));
    double const r = 2 / (1 - beta2) - 1, now = r - 2 * t * power / (1 - power);
    double const factor =
        now > 5 ? std::sqrt((now - 4) * (now - 2) * r / ((r - 4) * (r - 2) * now) * (1 - power)) : 0;
    return {rate * factor, now > 5 ? 0 : rate, eps, weight_decay, beta1, 1 - beta1, beta2, 1 - beta2};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const g = gradient + p * detail::beside(s[3], p);
    detail::move_moments(p, g, slot, s, 4);
    V const scale = detail::beside(s[0], p) / (apply<op::sqrt>(slot[1]) + detail::beside(s[2], p));
    p = p - slot[0] * (scale + detail::beside(s[1], p));
  }
};

}  // namespace dfdx::optim
