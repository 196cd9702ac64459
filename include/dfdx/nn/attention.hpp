// SPDX-License-Identifier: BSL-1.0
// nn::MultiheadAttention.
#pragma once

#include <dfdx/nn/dropout.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx::nn {

/// Multihead - options of MultiheadAttention. Heads of queries share kv_heads of keys and values (0: each has its
/// own); `causal` hides what comes later; `rope` turns queries and keys by their positions.
///
/// Math      that of scaled_dot_product_attention and rope
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    Ainslie et al., "GQA", EMNLP 2023, for the heads that share
struct Multihead {
  std::size_t kv_heads = 0;
  bool causal = false, rope = false;
  double dropout = 0, rope_base = 10000;
};

namespace detail {

struct NoKey {};

// Attention of projected queries, keys and values, [B..., T, heads * D] each.
template <std::size_t Heads, std::size_t KvHeads, std::size_t D, Multihead O, class Q, class K, class V,
          class M, class R>
constexpr auto attend(Q const& query, K const& key, V const& value, M const& mask, R const& random) {
  constexpr auto d = static_cast<index_t>(D);
  auto const split = [](auto const& x, auto n) {
    return swapaxes<-3, -2>(unflatten<-1, static_cast<index_t>(decltype(n)::value), d>(x));
  };
  auto const turned = [](auto const& x) {
    if constexpr (O.rope) return rope(x, {.base = O.rope_base});
    else return x;
  };
  using Shared = std::integral_constant<std::size_t, KvHeads>;
  auto const q = turned(split(query, std::integral_constant<std::size_t, Heads>{}));
  auto const k = turned(split(key, Shared{}));
  auto const v = split(value, Shared{});
  auto const y = [&] {
    if constexpr (!std::is_same_v<R, NoKey>)
      return scaled_dot_product_attention(q, k, v, mask, random, {.causal = O.causal, .dropout = O.dropout});
    else if constexpr (std::is_same_v<M, NoMask>)
      return scaled_dot_product_attention(q, k, v, {.causal = O.causal});
    else return scaled_dot_product_attention(q, k, v, mask, {.causal = O.causal});
  }();
  return flatten<-2, -1>(swapaxes<-3, -2>(y));
}

}  // namespace detail

/// MultiheadAttention - attention of several heads between two affine maps; layer(x) of a sequence to itself,
/// layer(q, k, v) of one to another, both with a mask if there is one, of truths (true is seen) or of numbers to add.
/// layer.train(x, key), layer.train(q, k, v, mask or no_mask, key) drop weights. State: in_proj_weight
/// [E + 2 E Kv / Heads, E], in_proj_bias, out_proj.weight [E, E], out_proj.bias.
///
/// Math      y = W_o [head_1, ..., head_H] + b_o, each head softmax(q k^T / sqrt(E / H)) v
/// Shapes    x, q: [B..., T, E], k, v: [B..., S, E] -> y: [B..., T, E]; mask: broadcasts to [B..., H, T, S]
/// Dtypes    floating; the parameters have element type T
/// Errors    those of matmul and scaled_dot_product_attention
/// Source    Vaswani et al., NeurIPS 2017; torch.nn.MultiheadAttention with batch_first, also for the initial values:
///           Xavier's for in_proj_weight, biases 0
template <std::size_t E, std::size_t Heads, Multihead O = Multihead{}, bool Bias = true, element T = float>
struct MultiheadAttention {
  static constexpr std::size_t kv_heads = O.kv_heads == 0 ? Heads : O.kv_heads;
  static_assert(Heads > 0 && E % Heads == 0 && Heads % kv_heads == 0,
                "MultiheadAttention: the heads do not divide the width, or share keys unevenly");
  static constexpr std::size_t head_size = E / Heads, kv_width = kv_heads * head_size;

  Tensor<T, E + 2 * kv_width, E> in_proj_weight;
  Tensor<T, Bias ? E + 2 * kv_width : 0> in_proj_bias;
  Linear<E, E, Bias, T> out_proj;
  struct hana_accessors_impl {
    static constexpr auto apply() {
      constexpr auto weight = [](auto&& self) -> decltype(auto) {
        return (static_cast<decltype(self)&&>(self).in_proj_weight);
      };
      constexpr auto bias = [](auto&& self) -> decltype(auto) {
        return (static_cast<decltype(self)&&>(self).in_proj_bias);
      };
      constexpr auto out = [](auto&& self) -> decltype(auto) {
        return (static_cast<decltype(self)&&>(self).out_proj);
      };
      namespace hana = boost::hana;
      if constexpr (Bias)
        return hana::make_tuple(hana::make_pair(BOOST_HANA_STRING("in_proj_weight"), weight),
                                hana::make_pair(BOOST_HANA_STRING("in_proj_bias"), bias),
                                hana::make_pair(BOOST_HANA_STRING("out_proj"), out));
      else
        return hana::make_tuple(hana::make_pair(BOOST_HANA_STRING("in_proj_weight"), weight),
                                hana::make_pair(BOOST_HANA_STRING("out_proj"), out));
    }
  };

  constexpr auto operator()(operand auto const& x) const { return itself(x, no_mask, detail::NoKey{}); }
  constexpr auto operator()(operand auto const& x, operand auto const& mask) const {
    return itself(x, mask, detail::NoKey{});
  }
  constexpr auto operator()(operand auto const& q, operand auto const& k, operand auto const& v) const {
    return other(q, k, v, no_mask, detail::NoKey{});
  }
  constexpr auto operator()(operand auto const& q, operand auto const& k, operand auto const& v,
                            operand auto const& mask) const {
    return other(q, k, v, mask, detail::NoKey{});
  }

  constexpr auto train(operand auto const& x, dfdx::detail::random_key auto const& key) const {
    return itself(x, no_mask, key);
  }
  constexpr auto train(operand auto const& x, auto const& mask,
                       dfdx::detail::random_key auto const& key) const {
    return itself(x, mask, key);
  }
  constexpr auto train(operand auto const& q, operand auto const& k, operand auto const& v, auto const& mask,
                       dfdx::detail::random_key auto const& key) const {
    return other(q, k, v, mask, key);
  }

  void reset(Key key) {
    init::xavier_uniform(in_proj_weight, fold_in(key, 0));
    if constexpr (Bias) {
      init::zeros(in_proj_bias);
      init::zeros(out_proj.bias);
    }
  }

 private:
  static constexpr auto width = static_cast<index_t>(E), shared = static_cast<index_t>(kv_width);

  // Queries, keys and values by one product.
  template <class X, class M, class R>
  constexpr auto itself(X const& x, M const& mask, R const& key) const {
    auto const all = [&] {
      if constexpr (Bias) return linear(x, in_proj_weight, in_proj_bias);
      else return linear(x, in_proj_weight);
    }();
    return result(slice<-1, 0, width>(all), slice<-1, width, width + shared>(all),
                  slice<-1, width + shared>(all), mask, key);
  }
  template <class Q, class K, class V, class M, class R>
  constexpr auto other(Q const& q, K const& k, V const& v, M const& mask, R const& key) const {
    return result(projected<0, width>(q), projected<width, width + shared>(k),
                  projected<width + shared, width + 2 * shared>(v), mask, key);
  }
  template <index_t Begin, index_t End, class X>
  constexpr auto projected(X const& x) const {
    auto const weight = slice<0, Begin, End>(in_proj_weight);
    if constexpr (Bias) return linear(x, weight, slice<0, Begin, End>(in_proj_bias));
    else return linear(x, weight);
  }
  template <class Q, class K, class V, class M, class R>
  constexpr auto result(Q const& q, K const& k, V const& v, M const& mask, R const& key) const {
    return out_proj(detail::attend<Heads, kv_heads, head_size, O>(q, k, v, mask, key));
  }
};

}  // namespace dfdx::nn
