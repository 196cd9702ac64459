// SPDX-License-Identifier: BSL-1.0
// nn::Embedding, the table of vectors by number, and nn::EmbeddingBag, which joins several.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/embedding.hpp>

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

/// EmbeddingBag - rows of a table, joined by bags: layer(index) of bags of one length, layer(index, offsets) of bags
/// one after another. State: weight [N, D].
///
/// Math      y_b = mean, sum or max of the rows of bag b
/// Shapes    index: [B, L], or index: [L] and offsets: [B] -> y: [B, D]
/// Dtypes    index, offsets: i32, i64 or u8; y: T
/// Errors    those of embedding_bag
/// Source    torch.nn.EmbeddingBag, also for the initial values: N(0, 1)
template <std::size_t N, std::size_t D, Bag How = Bag::mean, element T = float>
struct EmbeddingBag {
  Tensor<T, N, D> weight;
  DFDX_FIELDS(weight)

  constexpr auto operator()(operand auto const& index) const { return embedding_bag<How>(index, weight); }
  constexpr auto operator()(operand auto const& index, operand auto const& offsets) const {
    return embedding_bag<How>(index, weight, offsets);
  }

  void reset(Key key) { init::normal(weight, key); }
};

}  // namespace dfdx::nn
