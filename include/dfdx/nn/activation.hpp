// SPDX-License-Identifier: BSL-1.0
// Activation functions as modules without parameters, for Sequential. Elsewhere call relu(x), tanh(x), ...
// directly.
#pragma once

#include <boost/hana/tuple.hpp>

#include <dfdx/vocabulary/composite.hpp>

namespace dfdx::nn {

namespace detail {
// Named by an alias rather than inherited: g++ 12 zeroes what follows an empty class with an empty base in a tuple.
struct NoFields {
  static constexpr auto apply() { return boost::hana::make_tuple(); }
};
}  // namespace detail

/// ReLU - the positive part.
///
/// Math      y = max(x, 0)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    numeric
/// Errors    those of relu
/// Source    torch.nn.ReLU
struct ReLU {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return relu(x); }
};

/// Tanh - the hyperbolic tangent.
///
/// Math      y = tanh(x)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    floating
/// Errors    those of tanh
/// Source    torch.nn.Tanh
struct Tanh {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return tanh(x); }
};

/// Sigmoid - the logistic function.
///
/// Math      y = 1 / (1 + e^-x)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    floating
/// Errors    those of sigmoid
/// Source    torch.nn.Sigmoid
struct Sigmoid {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return sigmoid(x); }
};

/// GELU - the Gaussian error linear unit, exact.
///
/// Math      y = x Phi(x), Phi the standard normal distribution function
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    floating
/// Errors    those of gelu
/// Source    Hendrycks and Gimpel, "Gaussian error linear units", 2016; torch.nn.GELU
struct GELU {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return gelu(x); }
};

/// SiLU - the sigmoid linear unit, also called swish.
///
/// Math      y = x sigmoid(x)
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    floating
/// Errors    those of silu
/// Source    Elfwing, Uchibe and Doya, Neural Networks 107 (2018); torch.nn.SiLU
struct SiLU {
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return silu(x); }
};

}  // namespace dfdx::nn
