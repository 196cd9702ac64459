// SPDX-License-Identifier: BSL-1.0
// Stochastic gradient descent for train_step. What is not given costs nothing: without momentum there is no state.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::optim {

/// Off - the type of an option that is not used.
///
/// Math      none
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    elementary
struct Off {};

namespace detail {

template <class Option>
inline constexpr bool is_on = !std::is_same_v<Option, Off>;

template <class Option>
constexpr double number_or_zero(Option const& o) {
  if constexpr (is_on<Option>) return static_cast<double>(o);
  else return 0;
}

// A scalar of the step beside a parameter of any dtype.
template <class V>
constexpr V beside(V const& scalar, V const& parameter) {
  return cast_to(scalar, parameter.dtype());
}

}  // namespace detail

/// SGD - stochastic gradient descent with optional momentum, Nesterov momentum, weight decay and dampening (PyTorch's
/// rules).
/// optim::SGD{.lr = 0.1f} or optim::SGD{.lr = 0.1f, .momentum = 0.9f}.
///
/// Math      g += decay p;  v = momentum v + (1 - dampening) g, the first v is g, and without momentum all are;
///           p -= lr v, with Nesterov p -= lr (g + momentum v)
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Robbins and Monro 1951; Polyak 1964; Sutskever et al., ICML 2013
template <class Momentum = Off, class WeightDecay = Off, class Nesterov = Off, class Dampening = Off>
struct SGD {
  double lr = 1e-3;
  [[no_unique_address]] Momentum momentum{};
  [[no_unique_address]] WeightDecay weight_decay{};
  [[no_unique_address]] Nesterov nesterov{};
  [[no_unique_address]] Dampening dampening{};
  DFDX_STATE(lr, momentum, weight_decay, nesterov, dampening)

  static constexpr bool has_momentum = detail::is_on<Momentum>;
  static constexpr int slots = has_momentum ? 1 : 0;
  static constexpr int scalars = 5;

  std::array<double, 5> scalars_at(std::int64_t step) const {
    return {lr, detail::number_or_zero(momentum), detail::number_or_zero(weight_decay),
            detail::number_or_zero(nesterov) != 0 ? 1.0 : 0.0,
            step > 1 && detail::number_or_zero(momentum) != 0 ? 1 - detail::number_or_zero(dampening) : 1.0};
  }

  template <class V>
  static constexpr void update(V& p, V g, V* slot, V const* s) {
    if constexpr (detail::is_on<WeightDecay>) g = g + p * detail::beside(s[2], p);
    if constexpr (has_momentum) {
      V const mu = detail::beside(s[1], p);
      if constexpr (detail::is_on<Dampening>) slot[0] = slot[0] * mu + g * detail::beside(s[4], p);
      else slot[0] = slot[0] * mu + g;
      if constexpr (detail::is_on<Nesterov>)
        g = apply<op::where>(detail::beside(s[3], p) != 0, g + slot[0] * mu, slot[0]);
      else g = slot[0];
    }
    p = p - g * detail::beside(s[0], p);
  }
};

}  // namespace dfdx::optim
