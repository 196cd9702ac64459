// SPDX-License-Identifier: BSL-1.0
// nn::Bilinear, the bilinear layer of two inputs.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/linear.hpp>

namespace dfdx::nn {

/// Bilinear - a bilinear form of two inputs for each output. State: weight [Out, In1, In2] and, unless Bias is false,
/// bias [Out].
///
/// Math      y_o = x1' W_o x2 + b_o
/// Shapes    x1: [..., In1], x2: [..., In2] -> y: [..., Out]
/// Dtypes    floating; the parameters have element type T
/// Errors    "bilinear: weight [5, 3, 4] does not fit [2, 3] and [2, 5]"
/// Source    torch.nn.Bilinear, also for the initial values: U(-1/sqrt(In1), 1/sqrt(In1)) for both
template <std::size_t In1, std::size_t In2, std::size_t Out, bool Bias = true, element T = float>
struct Bilinear {
  Tensor<T, Out, In1, In2> weight;
  Tensor<T, Out> bias;
  DFDX_FIELDS(weight, bias)

  constexpr auto operator()(operand auto const& x1, operand auto const& x2) const {
    return bilinear(x1, x2, weight, bias);
  }

  void reset(Key key) {
    double const bound = 1 / std::sqrt(static_cast<double>(In1));
    init::uniform(weight, fold_in(key, 0), -bound, bound);
    init::uniform(bias, fold_in(key, 1), -bound, bound);
  }
};

template <std::size_t In1, std::size_t In2, std::size_t Out, element T>
struct Bilinear<In1, In2, Out, false, T> {
  Tensor<T, Out, In1, In2> weight;
  DFDX_FIELDS(weight)

  constexpr auto operator()(operand auto const& x1, operand auto const& x2) const {
    return bilinear(x1, x2, weight);
  }

  void reset(Key key) {
    double const bound = 1 / std::sqrt(static_cast<double>(In1));
    init::uniform(weight, fold_in(key, 0), -bound, bound);
  }
};

}  // namespace dfdx::nn
