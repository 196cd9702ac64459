// SPDX-License-Identifier: BSL-1.0
// Llama and its kin, for checkpoints whose sizes only the running program knows: in memory and on the tape. The names
// of its tensors are those of Hugging Face's files.
#pragma once

#include <optional>

#include <dfdx/models/llama_config.hpp>
#include <dfdx/models/stored.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/index.hpp>
#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx::models {

/// Projection - an affine map of the last axis, without a bias where the model has none. Its matrix is a leaf, or as it
/// is stored, which can be multiplied with and not trained. With the factors of a small change of it that is trained in
/// its place where models/lora.hpp has put them.
///
/// Math      y = x W' + b, + scale (x A') B' unless that is in W already
/// Shapes    x: [..., In], weight: [Out, In], bias: [Out], A: [R, In], B: [Out, R] -> [..., Out]
/// Source    Hu et al., "LoRA: Low-rank adaptation of large language models", 2021, for the factors
struct Projection {
  std::optional<Array> weight{}, bias{};
  std::optional<Table> lora_A{}, lora_B{};
  DFDX_FIELDS(weight, bias, lora_A, lora_B)
  std::shared_ptr<StoredMatrix const> stored{};
  double lora_scale = 1;
  bool lora_merged = false;

  Shape shape() const {
    return stored ? make_shape(stored->data.rows, stored->data.columns) : weight.value().shape();
  }
  /// Whether factors count besides the matrix.
  bool has_factors() const { return lora_A && !lora_merged; }

  Array operator()(Array const& x) const {
    Array const y = matrix(x);
    return has_factors() ? y + linear(linear(x, lora_A->weight), lora_B->weight) * lora_scale : y;
  }

 private:
  Array matrix(Array const& x) const {
    if (!stored) return bias ? linear(x, *weight, *bias) : linear(x, *weight);
    return bias ? stored->product(x) + *bias : stored->product(x);
  }
};

/// TokenTable - the embedding: a row for each token. Also the last layer of models that have no other.
///
/// Shapes    tokens: [I], weight: [vocabulary, width] -> [I, width]
struct TokenTable {
  std::optional<Array> weight{};
  DFDX_FIELDS(weight)
  std::shared_ptr<StoredMatrix const> stored{};

  Array operator()(Array const& tokens) const {
    return stored ? stored->rows_at(tokens) : embedding(tokens, *weight);
  }
  Array head(Array const& h) const { return stored ? stored->product(h) : linear(h, *weight); }
};

/// RmsNorm - a norm whose epsilon the model has.
struct RmsNorm {
  Array weight;
  DFDX_FIELDS(weight)
};

struct LlamaAttention {
  Projection q_proj, k_proj, v_proj, o_proj;
  std::optional<RmsNorm> q_norm, k_norm;
  DFDX_FIELDS(q_proj, k_proj, v_proj, o_proj, q_norm, k_norm)
};

struct LlamaMlp {
  Projection gate_proj, up_proj, down_proj;
  DFDX_FIELDS(gate_proj, up_proj, down_proj)

  Array operator()(Array const& x) const { return down_proj(silu(gate_proj(x)) * up_proj(x)); }
};

struct LlamaBlock {
  RmsNorm input_layernorm;
  LlamaAttention self_attn;
  RmsNorm post_attention_layernorm;
  LlamaMlp mlp;
  DFDX_FIELDS(input_layernorm, self_attn, post_attention_layernorm, mlp)
};

struct LlamaBody {
  TokenTable embed_tokens;
  std::vector<LlamaBlock> layers;
  RmsNorm norm;
  DFDX_FIELDS(embed_tokens, layers, norm)
};

/// Llama - a decoder-only transformer with rotary positions. model(tokens) gives a number for each possible next token,
/// at each position; model(tokens, cache) does so for tokens that come after those in the cache, and adds them to it.
///
/// Math      h += attention(norm(h)), h += W_down (silu(W_gate norm(h)) * W_up norm(h)), for each layer
/// Shapes    tokens: [B..., T] -> [B..., T, vocabulary]
/// Dtypes    tokens: integer; the result has the dtype of the weights
/// Errors    "llama: 4097 positions, the model has 4096"; those of embedding for tokens out of range
/// Source    Touvron et al. 2023; Jiang et al. 2023 for the window; the Qwen technical reports for biases and norms
struct Llama {
  LlamaConfig config;
  LlamaBody model;
  std::optional<Projection> lm_head;  // empty where it is the embedding
  DFDX_FIELDS(model, lm_head)

  Array operator()(Array const& tokens) const { return head(hidden(tokens, nullptr)); }
  Array operator()(Array const& tokens, KvCache& cache) const { return head(hidden(tokens, &cache)); }

  /// What goes into the head, normalized: [B..., T, width]. `watch(i, h)` is called with what layer i reads.
  template <class Watch = void (*)(index_t, Array const&)>
  Array hidden(Array const& tokens, KvCache* cache, Watch const& watch = [](index_t, Array const&) {}) const {
    Shape const& s = tokens.shape();
    if (s.rank < 1) raise("llama: tokens of shape [..., T] required, got ", s);
    index_t const first = cache != nullptr ? cache->length : 0, n = s[s.rank - 1];
    index_t const room = cache != nullptr ? cache->capacity : config.context;
    if (first + n > room) raise("llama: ", first + n, " positions, there is room for ", room);
    Array h = model.embed_tokens(tokens);
    if (h.dtype() != model.norm.weight.dtype()) h = h.to(model.norm.weight.dtype());
    Angles const angles(config.rope, config.head_size, first, n, h.dtype());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      LlamaBlock const& block = model.layers[i];
      watch(static_cast<index_t>(i), h);
      h = h + attend(block.self_attn, norm(block.input_layernorm, h), angles, first, cache, i);
      h = h + block.mlp(norm(block.post_attention_layernorm, h));
    }
    if (cache != nullptr) cache->length += n;
    return norm(model.norm, h);
  }
  Array head(Array const& h) const { return lm_head ? (*lm_head)(h) : model.embed_tokens.head(h); }

  /// An empty cache for sequences of up to `capacity` positions, `batch` of them (none for a single sequence).
  KvCache cache(index_t capacity, std::optional<index_t> batch = {}, DType dtype = DType::f32) const {
    return KvCache::of(static_cast<index_t>(model.layers.size()), config.kv_heads, capacity, config.head_size,
                       batch, dtype);
  }

 private:
  Array norm(RmsNorm const& n, Array const& x) const { return rms_norm(x, n.weight, config.norm_eps); }

  Array attend(LlamaAttention const& a, Array const& x, Angles const& angles, index_t first, KvCache* cache,
               std::size_t layer) const {
    auto const heads = [&](Array const& y, index_t n) { return split_heads(y, n, config.head_size); };
    Array q = heads(a.q_proj(x), config.heads), k = heads(a.k_proj(x), config.kv_heads);
    Array v = heads(a.v_proj(x), config.kv_heads);
    if (a.q_norm) q = norm(*a.q_norm, q);
    if (a.k_norm) k = norm(*a.k_norm, k);
    q = rotate(q, angles);
    k = rotate(k, angles);
    index_t const n = q.shape()[q.shape().rank - 2];
    if (cache != nullptr) cache->extend(layer, k, v);
    Array const y = seen(q, k, v, first, n);
    return a.o_proj(join_heads(y));
  }
  Array seen(Array const& q, Array const& k, Array const& v, index_t first, index_t n) const {
    if (config.window == 0 || first + n <= config.window)
      return scaled_dot_product_attention(q, k, v, {.causal = true, .offset = first});
    Array const i = reshape(arange(first, first + n), {n, 1}), j = arange(first + n);
    Array const mask = logical_and(j <= i, j > i - config.window);
    return scaled_dot_product_attention(q, k, v, mask);
  }
};

/// visit_projections - calls f("model.layers.0.self_attn.q_proj", p) with each of a model's projections.
template <class Model, class F>
void visit_projections(Model& m, F const& f) {
  std::size_t i = 0;
  for (auto& b : m.model.layers) {
    std::string const in = "model.layers." + std::to_string(i++) + ".";
    f(in + "self_attn.q_proj", b.self_attn.q_proj);
    f(in + "self_attn.k_proj", b.self_attn.k_proj);
    f(in + "self_attn.v_proj", b.self_attn.v_proj);
    f(in + "self_attn.o_proj", b.self_attn.o_proj);
    f(in + "mlp.gate_proj", b.mlp.gate_proj);
    f(in + "mlp.up_proj", b.mlp.up_proj);
    f(in + "mlp.down_proj", b.mlp.down_proj);
  }
  if (m.lm_head) f(std::string("lm_head"), *m.lm_head);
}

}  // namespace dfdx::models
