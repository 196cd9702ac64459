// SPDX-License-Identifier: BSL-1.0
// nn::TransformerEncoderLayer and nn::TransformerDecoderLayer; nn::Repeat makes stacks of them.
#pragma once

#include <dfdx/nn/attention.hpp>
#include <dfdx/nn/layer_norm.hpp>

namespace dfdx::nn {

/// Transformer - options of the layers: normalisation before each part or after it, a causal mask, the share of
/// values dropped in training, what layer norms add to variances.
///
/// Math      that of the layers
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    torch.nn.TransformerEncoderLayer, also for what is left out
struct Transformer {
  bool norm_first = false, causal = false;
  double dropout = 0.1;
  double layer_norm_eps = 1e-5;
};

namespace detail {

// What the two layers have in common. How is a key, or NoKey where nothing is dropped.
template <double P, class X, class R>
constexpr auto dropped_by(X const& x, R const& key, std::int64_t n) {
  if constexpr (std::is_same_v<R, NoKey>) return x;
  else return dropout(x, P, part_key(key, n));
}
template <Transformer O, class X, class Norm, class F>
constexpr auto with_residual(X const& x, Norm const& norm, F const& f) {
  if constexpr (O.norm_first) return x + f(norm(x));
  else return norm(x + f(x));
}
template <Transformer O, class Activation, class X, class L1, class L2, class R>
constexpr auto feed_forward(X const& x, L1 const& linear1, L2 const& linear2, R const& key, std::int64_t n) {
  return dropped_by<O.dropout>(linear2(dropped_by<O.dropout>(Activation{}(linear1(x)), key, n)), key, n + 1);
}
template <Transformer O, class Attention, class M, class R, class... X>
constexpr auto attended(Attention const& attention, M const& mask, R const& key, std::int64_t n,
                        X const&... x) {
  if constexpr (!std::is_same_v<R, NoKey>)
    return dropped_by<O.dropout>(attention.train(x..., mask, part_key(key, n)), key, n + 1);
  else if constexpr (std::is_same_v<M, NoMask>) return attention(x...);
  else return attention(x..., mask);
}

}  // namespace detail

/// TransformerEncoderLayer - attention of a sequence to itself, then a feed-forward block, each with a residual and a
/// LayerNorm. State: self_attn, linear1, linear2, norm1, norm2.
///
/// Math      h = norm1(x + attention(x)); y = norm2(h + W2 f(W1 h)); with norm_first h = x + attention(norm1(x)), ...
/// Shapes    x: [B..., T, E] -> y: [B..., T, E]; mask: as for MultiheadAttention
/// Dtypes    floating; the parameters have element type T
/// Errors    those of MultiheadAttention
/// Source    Vaswani et al., NeurIPS 2017; torch.nn.TransformerEncoderLayer with batch_first
template <std::size_t E, std::size_t Heads, std::size_t Hidden = 2048, Transformer O = Transformer{},
          class Activation = ReLU, element T = float>
struct TransformerEncoderLayer {
  MultiheadAttention<E, Heads, Multihead{.causal = O.causal, .dropout = O.dropout}, true, T> self_attn;
  Linear<E, Hidden, true, T> linear1;
  Linear<Hidden, E, true, T> linear2;
  LayerNorm<E, T, O.layer_norm_eps> norm1, norm2;
  DFDX_FIELDS(self_attn, linear1, linear2, norm1, norm2)

  constexpr auto operator()(operand auto const& x) const { return run(x, no_mask, detail::NoKey{}); }
  constexpr auto operator()(operand auto const& x, operand auto const& mask) const {
    return run(x, mask, detail::NoKey{});
  }
  constexpr auto train(operand auto const& x, dfdx::detail::random_key auto const& key) const {
    return run(x, no_mask, key);
  }
  constexpr auto train(operand auto const& x, auto const& mask,
                       dfdx::detail::random_key auto const& key) const {
    return run(x, mask, key);
  }

 private:
  template <class X, class M, class R>
  constexpr auto run(X const& x, M const& mask, R const& key) const {
    auto const h = detail::with_residual<O>(
        x, norm1, [&](auto const& v) { return detail::attended<O>(self_attn, mask, key, 0, v); });
    return detail::with_residual<O>(h, norm2, [&](auto const& v) {
      return detail::feed_forward<O, Activation>(v, linear1, linear2, key, 2);
    });
  }
};

/// TransformerDecoderLayer - attention of a sequence to itself (causal if the options say so), then to the memory of
/// an encoder, then a feed-forward block. State: self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3.
///
/// Math      as TransformerEncoderLayer, with attention(h, memory, memory) in between
/// Shapes    x: [B..., T, E], memory: [B..., S, E] -> y: [B..., T, E]
/// Dtypes    floating; the parameters have element type T
/// Errors    those of MultiheadAttention
/// Source    Vaswani et al., NeurIPS 2017; torch.nn.TransformerDecoderLayer with batch_first
template <std::size_t E, std::size_t Heads, std::size_t Hidden = 2048, Transformer O = Transformer{},
          class Activation = ReLU, element T = float>
struct TransformerDecoderLayer {
  MultiheadAttention<E, Heads, Multihead{.causal = O.causal, .dropout = O.dropout}, true, T> self_attn;
  MultiheadAttention<E, Heads, Multihead{.dropout = O.dropout}, true, T> multihead_attn;
  Linear<E, Hidden, true, T> linear1;
  Linear<Hidden, E, true, T> linear2;
  LayerNorm<E, T, O.layer_norm_eps> norm1, norm2, norm3;
  DFDX_FIELDS(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3)

  constexpr auto operator()(operand auto const& x, operand auto const& memory) const {
    return run(x, memory, no_mask, no_mask, detail::NoKey{});
  }
  constexpr auto operator()(operand auto const& x, operand auto const& memory, auto const& mask,
                            auto const& memory_mask) const {
    return run(x, memory, mask, memory_mask, detail::NoKey{});
  }
  constexpr auto train(operand auto const& x, operand auto const& memory,
                       dfdx::detail::random_key auto const& key) const {
    return run(x, memory, no_mask, no_mask, key);
  }
  constexpr auto train(operand auto const& x, operand auto const& memory, auto const& mask,
                       auto const& memory_mask, dfdx::detail::random_key auto const& key) const {
    return run(x, memory, mask, memory_mask, key);
  }

 private:
  template <class X, class Memory, class M, class N, class R>
  constexpr auto run(X const& x, Memory const& memory, M const& mask, N const& memory_mask,
                     R const& key) const {
    auto const h = detail::with_residual<O>(
        x, norm1, [&](auto const& v) { return detail::attended<O>(self_attn, mask, key, 0, v); });
    auto const g = detail::with_residual<O>(h, norm2, [&](auto const& v) {
      return detail::attended<O>(multihead_attn, memory_mask, key, 2, v, memory, memory);
    });
    return detail::with_residual<O>(g, norm3, [&](auto const& v) {
      return detail::feed_forward<O, Activation>(v, linear1, linear2, key, 4);
    });
  }
};

}  // namespace dfdx::nn
