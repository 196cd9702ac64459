// SPDX-License-Identifier: BSL-1.0
// Optimizers that divide by a measure of past gradients: Adagrad, RMSprop, Adadelta. In all weight_decay adds to the
// gradient.
#pragma once

#include <dfdx/optim/sgd.hpp>

namespace dfdx::optim {

/// Adagrad - rates that fall with the sum of the squares of all gradients.
///
/// Math      g += decay p;  s += g^2;  p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps), s initially
///           initial_accumulator
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Duchi, Hazan and Singer, JMLR 12 (2011); torch.optim.Adagrad
struct Adagrad {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator = 0, eps = 1e-10;
  DFDX_STATE(lr, lr_decay, weight_decay, initial_accumulator, eps)

  static constexpr int slots = 1;
  static constexpr int scalars = 4;
  std::array<double, 4> scalars_at(std::int64_t step) const {
    return {lr / (1 + static_cast<double>(step - 1) * lr_decay), weight_decay, initial_accumulator, eps};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const g = gradient + p * detail::beside(s[1], p);
    slot[0] = slot[0] + g * g;
    p = p - g * detail::beside(s[0], p) /
                (apply<op::sqrt>(slot[0] + detail::beside(s[2], p)) + detail::beside(s[3], p));
  }
};

/// RMSprop - the gradient over the root of a running mean of its squares; optionally of its variance (.centered =
/// true), and with momentum.
///
/// Math      g += decay p;  v = a v + (1 - a) g^2;  m = a m + (1 - a) g;  d = g / (sqrt(v - m^2) + eps), without m
///           unless centered;  b = momentum b + d;  p -= lr b
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Tieleman and Hinton, lecture 6.5, 2012; centered: Graves 2013; torch.optim.RMSprop
template <class Momentum = Off, class Centered = Off>
struct RMSprop {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0;
  [[no_unique_address]] Momentum momentum{};
  [[no_unique_address]] Centered centered{};
  DFDX_STATE(lr, alpha, eps, weight_decay, momentum, centered)

  static constexpr bool has_momentum = detail::is_on<Momentum>, is_centered = detail::is_on<Centered>;
  static constexpr int slots = 1 + has_momentum + is_centered;
  static constexpr int scalars = 6;
  std::array<double, 6> scalars_at(std::int64_t) const {
    return {lr, alpha, 1 - alpha, eps, weight_decay, detail::number_or_zero(momentum)};
  }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const a = detail::beside(s[1], p), rest = detail::beside(s[2], p);
    V const g = gradient + p * detail::beside(s[4], p);
    slot[0] = slot[0] * a + g * g * rest;
    V v = slot[0];
    if constexpr (is_centered) {
      V& m = slot[1 + has_momentum];
      m = m * a + g * rest;
      v = apply<op::maximum>(v - m * m, 0.0);  // roundings might leave less than nothing
    }
    V d = g / (apply<op::sqrt>(v) + detail::beside(s[3], p));
    if constexpr (has_momentum) d = slot[1] = slot[1] * detail::beside(s[5], p) + d;
    p = p - d * detail::beside(s[0], p);
  }
};

/// Adadelta - steps of the size of past steps, in the direction that RMSprop takes.
///
/// Math      g += decay p;  v = r v + (1 - r) g^2;  d = sqrt(u + eps) / sqrt(v + eps) g;  u = r u + (1 - r) d^2;
///           p -= lr d
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Zeiler, "ADADELTA", 2012; torch.optim.Adadelta
struct Adadelta {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  DFDX_STATE(lr, rho, eps, weight_decay)

  static constexpr int slots = 2;
  static constexpr int scalars = 5;
  std::array<double, 5> scalars_at(std::int64_t) const { return {lr, rho, 1 - rho, eps, weight_decay}; }
  template <class V>
  static constexpr void update(V& p, V const& gradient, V* slot, V const* s) {
    V const r = detail::beside(s[1], p), rest = detail::beside(s[2], p), eps = detail::beside(s[3], p);
    V const g = gradient + p * detail::beside(s[4], p);
    slot[0] = slot[0] * r + g * g * rest;
    V const d = apply<op::sqrt>(slot[1] + eps) / apply<op::sqrt>(slot[0] + eps) * g;
    slot[1] = slot[1] * r + d * d * rest;
    p = p - d * detail::beside(s[0], p);
  }
};

}  // namespace dfdx::optim
