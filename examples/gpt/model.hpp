// SPDX-License-Identifier: BSL-1.0
// A small GPT-2 (Radford et al. 2019) on characters, as nanoGPT trains it on a processor: no biases, the table of
// characters is also the last layer.
#pragma once

#include <dfdx/dfdx.hpp>

namespace gpt {

inline constexpr std::size_t vocabulary = 128, context = 64, width = 128, heads = 4, layers = 4, batch = 12;

using Tokens = dfdx::Tensor<std::int32_t, batch, context>;

struct Attention {
  dfdx::nn::Linear<width, 3 * width, false> c_attn;
  dfdx::nn::Linear<width, width, false> c_proj;
  DFDX_FIELDS(c_attn, c_proj)

  constexpr auto operator()(auto const& x) const {
    // Queries, keys and values of all heads by one product: [3, B, heads, T, width / heads].
    auto const qkv =
        dfdx::permute<2, 0, 3, 1, 4>(dfdx::reshape<-1, context, 3, heads, width / heads>(c_attn(x)));
    auto const y = dfdx::scaled_dot_product_attention(dfdx::select<0, 0>(qkv), dfdx::select<0, 1>(qkv),
                                                      dfdx::select<0, 2>(qkv), {.causal = true});
    return c_proj(dfdx::reshape<-1, context, width>(dfdx::permute<0, 2, 1, 3>(y)));
  }
};

struct MLP {
  dfdx::nn::Linear<width, 4 * width, false> c_fc;
  dfdx::nn::Linear<4 * width, width, false> c_proj;
  DFDX_FIELDS(c_fc, c_proj)

  constexpr auto operator()(auto const& x) const { return c_proj(gelu(c_fc(x))); }
};

struct Block {
  dfdx::nn::LayerNorm<width> ln_1;
  Attention attn;
  dfdx::nn::LayerNorm<width> ln_2;
  MLP mlp;
  DFDX_FIELDS(ln_1, attn, ln_2, mlp)

  constexpr auto operator()(auto const& x) const {
    auto const h = x + attn(ln_1(x));
    return h + mlp(ln_2(h));
  }
};

struct Model {
  dfdx::nn::Embedding<vocabulary, width> wte;
  dfdx::nn::Embedding<context, width> wpe;
  dfdx::nn::Repeat<Block, layers> h;
  dfdx::nn::LayerNorm<width> ln_f;
  DFDX_FIELDS(wte, wpe, h, ln_f)

  /// [B, context] characters -> [B, context, vocabulary] scores of those that follow.
  constexpr auto operator()(auto const& tokens) const {
    return matmul(ln_f(h(wte(tokens) + wpe.weight)), transpose(wte.weight));
  }

  /// dfdx::init calls this. N(0, 0.02^2) for all matrices, less for those that add to the residual stream, by the
  /// number of additions.
  void reset(dfdx::Key key) {
    namespace init = dfdx::nn::init;
    std::uint64_t k = 0;
    dfdx::visit_state(*this, [&](std::string const& name, auto& leaf) {
      if (leaf.ndim() < 2) return;
      bool const residual = name.ends_with("c_proj.weight");
      init::normal(leaf, dfdx::fold_in(key, k++), 0,
                   residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(layers)) : 0.02);
    });
  }
};

}  // namespace gpt
