// SPDX-License-Identifier: BSL-1.0
// nn::Embedding, the table of vectors by number.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/contract.hpp>

namespace dfdx::nn {

/// Embedding - row i of a table for every index i. State: weight [N, D].
///
/// Math      y[..., :] = weight[x[...], :]
/// Shapes    x: [I...] -> y: [I..., D]
/// Dtypes    x: i32, i64 or u8; y: T
/// Errors    "take: index 30 out of range for axis 0 of [27, 10]"
/// Source    torch.nn.Embedding, also for the initial values: N(0, 1)
template <std::size_t N, std::size_t D, element T = float>
struct Embedding {
  Tensor<T, N, D> weight;
  DFDX_FIELDS(weight)

  constexpr auto operator()(operand auto const& index) const { return take(weight, index); }

  void reset(Key key) { init::normal(weight, key); }
};

}  // namespace dfdx::nn
