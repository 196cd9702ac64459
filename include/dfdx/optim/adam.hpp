// SPDX-License-Identifier: BSL-1.0
// Adam and AdamW for train_step.
#pragma once

#include <cmath>

#include <dfdx/optim/sgd.hpp>

namespace dfdx::optim {

namespace detail {

struct AdamNumbers {
  double lr, beta1, beta2, eps, decay;
};

// The numbers of one step. The bias corrections are folded into the step size and the divisor, and 1 - beta is worked
// out here: in f32 1 - 0.999 would be off by 5e-5 of itself, and the correction no longer cancel it.
inline std::array<double, 8> adam_scalars(AdamNumbers const& o, std::int64_t step) {
  auto const t = static_cast<double>(step);
  double const c1 = 1 - std::pow(o.beta1, t), c2 = 1 - std::pow(o.beta2, t);
  return {o.lr / c1, 1 / std::sqrt(c2), o.beta1, 1 - o.beta1, o.beta2, 1 - o.beta2, o.eps, o.decay};
}

// Moves m and v by one step; how far p goes. The decay has been applied to p or g already. With AMSGrad a third slot
// holds the largest v so far.
template <bool Largest, class V>
constexpr V adam_move(V const& p, V const& g, V* slot, V const* s) {
  slot[0] = slot[0] * beside(s[2], p) + g * beside(s[3], p);
  slot[1] = slot[1] * beside(s[4], p) + g * g * beside(s[5], p);
  if constexpr (Largest) slot[2] = apply<op::maximum>(slot[2], slot[1]);
  V const divisor = apply<op::sqrt>(slot[Largest ? 2 : 1]) * beside(s[1], p) + beside(s[6], p);
  return slot[0] * beside(s[0], p) / divisor;
}
template <bool Largest, class V>
constexpr void adam_update(V& p, V const& g, V* slot, V const* s) {
  p = p - adam_move<Largest>(p, g, slot, s);
}

}  // namespace detail

/// Adam - adaptive moments; weight_decay adds to the gradient (L2 penalty). With .amsgrad = true the divisor never
/// shrinks.
///
/// Math      m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) +
///           eps); with amsgrad the largest v so far in place of v
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Kingma and Ba, ICLR 2015; amsgrad: Reddi, Kale and Kumar, ICLR 2018
template <class Amsgrad = Off>
struct Adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  [[no_unique_address]] Amsgrad amsgrad{};
  DFDX_STATE(lr, beta1, beta2, eps, weight_decay, amsgrad)

  static constexpr int slots = detail::is_on<Amsgrad> ? 3 : 2;
  static constexpr int scalars = 8;
  std::array<double, 8> scalars_at(std::int64_t step) const {
    return detail::adam_scalars({lr, beta1, beta2, eps, weight_decay}, step);
  }
  template <class V>
  static constexpr void update(V& p, V const& g, V* slot, V const* s) {
    detail::adam_update<detail::is_on<Amsgrad>, V>(p, g + p * detail::beside(s[7], p), slot, s);
  }
};

/// AdamW - Adam with decoupled weight decay.
///
/// Math      p -= lr decay p, then as Adam
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Loshchilov and Hutter, ICLR 2019
template <class Amsgrad = Off>
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  [[no_unique_address]] Amsgrad amsgrad{};
  DFDX_STATE(lr, beta1, beta2, eps, weight_decay, amsgrad)

  static constexpr int slots = detail::is_on<Amsgrad> ? 3 : 2;
  static constexpr int scalars = 8;
  std::array<double, 8> scalars_at(std::int64_t step) const {
    return detail::adam_scalars({lr, beta1, beta2, eps, lr * weight_decay}, step);
  }
  template <class V>
  static constexpr void update(V& p, V const& g, V* slot, V const* s) {
    V decayed = p - p * detail::beside(s[7], p);
    detail::adam_update<detail::is_on<Amsgrad>>(decayed, g, slot, s);
    p = decayed;
  }
};

}  // namespace dfdx::optim
