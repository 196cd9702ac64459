// SPDX-License-Identifier: BSL-1.0
// Rules that look at signs, and one that averages: Rprop, Lion, ASGD.
#pragma once

#include <cmath>

#include <dfdx/optim/sgd.hpp>

namespace dfdx::optim {

/// Rprop - each element has a step size of its own, which grows while the sign of its gradient stays and shrinks where
/// it turns. For gradients of the whole data, not of batches.
///
/// Math      a = g g', with g' of the step before;  h = clamp(h eta_plus, min, max) where a > 0, h eta_minus and g =
///           0 where a < 0;  p -= sign(g) h;  h is initially lr
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Riedmiller and Braun, ICNN 1993; torch.optim.Rprop
struct Rprop {
  double lr = 1e-2, eta_minus = 0.5, eta_plus = 1.2, min_step = 1e-6, max_step = 50;
  DFDX_STATE(lr, eta_minus, eta_plus, min_step, max_step)

  static constexpr int slots = 2;
  static constexpr int scalars = 5;
  std::array<double, 5> scalars_at(std::int64_t step) const {
    return {step > 1 ? 0 : lr, eta_minus, eta_plus, min_step, max_step};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const agrees = gradient * slot[0];
    V const size = slot[1] + detail::beside(s[0], p);  // the slot is 0 before the first step
    V const grown = apply<op::where>(agrees > 0, size * detail::beside(s[2], p), size);
    V const moved = apply<op::where>(agrees < 0, size * detail::beside(s[1], p), grown);
    slot[1] = apply<op::minimum>(apply<op::maximum>(moved, detail::beside(s[3], p)), detail::beside(s[4], p));
    slot[0] = apply<op::where>(agrees < 0, 0.0, gradient);
    p = p - apply<op::sign>(slot[0]) * slot[1];
  }
};

/// Lion - steps of one size, in the direction of the signs of a momentum; half of Adam's memory. Its rate is a third to
/// a tenth of Adam's, its decay as much larger.
///
/// Math      p -= lr decay p;  p -= lr sign(b1 m + (1 - b1) g);  m = b2 m + (1 - b2) g
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Chen et al., "Symbolic discovery of optimization algorithms", 2023
struct Lion {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  DFDX_STATE(lr, beta1, beta2, weight_decay)

  static constexpr int slots = 1;
  static constexpr int scalars = 6;
  std::array<double, 6> scalars_at(std::int64_t) const {
    return {lr, lr * weight_decay, beta1, 1 - beta1, beta2, 1 - beta2};
  }
  template <class V>
  static constexpr void update(V& p, V const& g, V* slot, V const* s) {
    V const ahead = slot[0] * detail::beside(s[2], p) + g * detail::beside(s[3], p);
    slot[0] = slot[0] * detail::beside(s[4], p) + g * detail::beside(s[5], p);
    p = p - p * detail::beside(s[1], p) - apply<op::sign>(ahead) * detail::beside(s[0], p);
  }
};

/// ASGD - gradient descent with a falling rate, and the average of the parameters since step t0, which is the slot.
///
/// Math      g += decay p;  p -= lambd h p + h g;  h = lr / (1 + lambd lr t)^alpha after step t;  a += (p - a) / max(1,
///           t - t0)
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Polyak and Juditsky, SIAM J. Control Optim. 30 (1992); torch.optim.ASGD
struct ASGD {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  DFDX_STATE(lr, lambd, alpha, t0, weight_decay)

  static constexpr int slots = 1;
  static constexpr int scalars = 5;
  std::array<double, 5> scalars_at(std::int64_t step) const {
    double const before = static_cast<double>(step - 1);
    double const rate = lr / std::pow(1 + lambd * lr * before, alpha);
    double const share = 1 / std::fmax(1.0, before - t0);
    return {rate, 1 - lambd * rate, weight_decay, share, 1 - share};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const g = gradient + p * detail::beside(s[2], p);
    p = p * detail::beside(s[1], p) - g * detail::beside(s[0], p);
    slot[0] = slot[0] * detail::beside(s[4], p) + p * detail::beside(s[3], p);
  }
};

}  // namespace dfdx::optim
