// SPDX-License-Identifier: BSL-1.0
// nn::Linear, the affine layer.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/linear.hpp>

namespace dfdx::nn {

/// Linear - an affine map of the last axis. State: weight [Out, In] and, unless Bias is false, bias [Out].
///
/// Math      y = x W' + b
/// Shapes    x: [..., In] -> y: [..., Out]
/// Dtypes    those of matmul; the parameters have element type T
/// Errors    "linear: inner dimensions differ: [32, 20] x [30, 200]"
/// Source    torch.nn.Linear, also for the initial values: U(-1/sqrt(In), 1/sqrt(In)) for both
template <std::size_t In, std::size_t Out, bool Bias = true, element T = float>
struct Linear {
  Tensor<T, Out, In> weight;
  Tensor<T, Out> bias;
  DFDX_FIELDS(weight, bias)

  constexpr auto operator()(operand auto const& x) const { return linear(x, weight, bias); }

  void reset(Key key) {
    double const bound = 1 / std::sqrt(static_cast<double>(In));
    init::uniform(weight, fold_in(key, 0), -bound, bound);
    init::uniform(bias, fold_in(key, 1), -bound, bound);
  }
};

template <std::size_t In, std::size_t Out, element T>
struct Linear<In, Out, false, T> {
  Tensor<T, Out, In> weight;
  DFDX_FIELDS(weight)

  constexpr auto operator()(operand auto const& x) const { return linear(x, weight); }

  void reset(Key key) {
    double const bound = 1 / std::sqrt(static_cast<double>(In));
    init::uniform(weight, fold_in(key, 0), -bound, bound);
  }
};

}  // namespace dfdx::nn
