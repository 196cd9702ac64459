// SPDX-License-Identifier: BSL-1.0
// Llama and its kin, for checkpoints whose sizes the running program knows, in memory and on the tape, and for those
// whose sizes the compiler knows. The names of its tensors are those of Hugging Face's files.
#pragma once

#include <concepts>
#include <optional>

#include <dfdx/models/cache.hpp>
#include <dfdx/models/decoder_model.hpp>
#include <dfdx/models/llama_config.hpp>
#include <dfdx/models/llama_sight.hpp>
#include <dfdx/models/stored.hpp>
#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/norm.hpp>
#include <dfdx/nn/repeat.hpp>
#include <dfdx/vocabulary/linear.hpp>

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
  static constexpr bool inputs_first = false;

  /// [Out, In]
  Shape shape() const {
    return stored ? make_shape(stored->data.rows, stored->data.columns) : weight.value().shape();
  }
  /// Whether factors count besides the matrix.
  bool has_factors() const { return lora_A && !lora_merged; }

  /// Adds [Out, In] to the matrix, in memory of its own: other models may share the old.
  ///
  /// Errors    "lora: matrices as they are stored cannot be changed: load the model without that"
  void add_change(Array const& change) {
    if (stored) raise("lora: matrices as they are stored cannot be changed: load the model without that");
    bool const learns = weight->requires_grad();
    weight = (*weight + change).to(weight->dtype());
    weight->requires_grad(learns);
  }

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

namespace detail {

// The parts of a model whose sizes are S: layers of nn where the compiler knows them.
template <LlamaSizes S, element T>
struct LlamaParts {
  template <index_t Out, index_t In, bool Bias>
  using Projection =
      std::conditional_t<S.known(),
                         nn::Linear<static_cast<std::size_t>(In), static_cast<std::size_t>(Out), Bias, T>,
                         models::Projection>;
  template <index_t N>
  using Norm = std::conditional_t<S.known(), nn::RMSNorm<static_cast<std::size_t>(N), T>, RmsNorm>;
  // What a model need not have.
  template <class Part, bool There>
  using Option =
      std::conditional_t<!S.known(), std::optional<Part>, std::conditional_t<There, Part, std::tuple<>>>;
  template <class Block>
  using Layers = std::conditional_t<S.known(), nn::Repeat<Block, static_cast<std::size_t>(S.layers)>,
                                    std::vector<Block>>;
  using Table = std::conditional_t<
      S.known(), nn::Embedding<static_cast<std::size_t>(S.vocabulary), static_cast<std::size_t>(S.width), T>,
      TokenTable>;
};

}  // namespace detail

/// LlamaAttention - attention(sizes, x, see): `see(q, k, v)` is what queries make of keys and values, heads of all
/// three, that know nothing of positions yet.
template <LlamaSizes S = LlamaSizes{}, element T = float>
struct LlamaAttention {
  using Parts = detail::LlamaParts<S, T>;
  typename Parts::template Projection<S.query_rows(), S.width, S.attention_bias> q_proj;
  typename Parts::template Projection<S.kv_rows(), S.width, S.attention_bias> k_proj, v_proj;
  typename Parts::template Projection<S.width, S.query_rows(), S.output_bias> o_proj;
  typename Parts::template Option<typename Parts::template Norm<S.head_size>, S.normalized_heads> q_norm,
      k_norm;
  DFDX_FIELDS(q_proj, k_proj, v_proj, o_proj, q_norm, k_norm)

  template <class X, class See>
  constexpr auto operator()(LlamaSizes const& c, X const& x, See const& see) const {
    auto const y = see(normalized(q_norm, heads<S.heads>(q_proj(x), c.heads, c), c),
                       normalized(k_norm, heads<S.kv_heads>(k_proj(x), c.kv_heads, c), c),
                       heads<S.kv_heads>(v_proj(x), c.kv_heads, c));
    return o_proj(join_heads(y));
  }

 private:
  template <index_t N, class X>
  static constexpr auto heads(X const& x, index_t n, LlamaSizes const& c) {
    if constexpr (S.known()) return swapaxes<-3, -2>(unflatten<-1, N, S.head_size>(x));
    else return split_heads(x, n, c.head_size);
  }
  template <class Norm, class X>
  static constexpr auto normalized(Norm const& norm, X const& x, LlamaSizes const& c) {
    if constexpr (!S.known()) return norm ? rms_norm(x, norm->weight, c.norm_eps) : x;
    else if constexpr (S.normalized_heads) return rms_norm(x, norm.weight, S.norm_eps);
    else return x;
  }
};

template <LlamaSizes S = LlamaSizes{}, element T = float>
struct LlamaMlp {
  using Parts = detail::LlamaParts<S, T>;
  typename Parts::template Projection<S.hidden, S.width, S.mlp_bias> gate_proj, up_proj;
  typename Parts::template Projection<S.width, S.hidden, S.mlp_bias> down_proj;
  DFDX_FIELDS(gate_proj, up_proj, down_proj)

  template <class X>
  constexpr auto operator()(X const& x) const {
    return down_proj(silu(gate_proj(x)) * up_proj(x));
  }
};

template <LlamaSizes S = LlamaSizes{}, element T = float>
struct LlamaBlock {
  typename detail::LlamaParts<S, T>::template Norm<S.width> input_layernorm;
  LlamaAttention<S, T> self_attn;
  typename detail::LlamaParts<S, T>::template Norm<S.width> post_attention_layernorm;
  LlamaMlp<S, T> mlp;
  DFDX_FIELDS(input_layernorm, self_attn, post_attention_layernorm, mlp)

  template <class X, class See>
  constexpr X operator()(LlamaSizes const& c, X const& x, See const& see) const {
    X const h = x + self_attn(c, rms_norm(x, input_layernorm.weight, c.norm_eps), see);
    return h + mlp(rms_norm(h, post_attention_layernorm.weight, c.norm_eps));
  }
};

template <LlamaSizes S = LlamaSizes{}, element T = float>
struct LlamaBody {
  typename detail::LlamaParts<S, T>::Table embed_tokens;
  typename detail::LlamaParts<S, T>::template Layers<LlamaBlock<S, T>> layers;
  typename detail::LlamaParts<S, T>::template Norm<S.width> norm;
  DFDX_FIELDS(embed_tokens, layers, norm)
};

/// LlamaModel - a decoder-only transformer with rotary positions. model(tokens) gives a number for each possible next
/// token, at each position; model(tokens, cache) does so for tokens that come after those in the cache, and adds them
/// to it. Of given sizes S it has static shapes and compiles; models/llama_step.hpp has its cache. Llama is the one
/// whose sizes its `config` has.
///
/// Math      h += attention(norm(h)), h += W_down (silu(W_gate norm(h)) * W_up norm(h)), for each layer
/// Shapes    tokens: [B..., T] -> [B..., T, vocabulary]
/// Dtypes    tokens: integer; the result has the dtype of the weights
/// Errors    "llama: 4097 positions, the model has 4096"; those of embedding for tokens out of range
/// Source    Touvron et al. 2023; Jiang et al. 2023 for the window; the Qwen technical reports for biases and norms
template <LlamaSizes S = LlamaSizes{}, element T = float>
struct LlamaModel {
  static_assert(S.heads % S.kv_heads == 0 && S.head_size % 2 == 0,
                "llama: heads that do not share those of keys and values, or of an odd size");
  static constexpr LlamaSizes config = S;
  LlamaBody<S, T> model;
  typename detail::LlamaParts<S, T>::template Option<
      nn::Linear<static_cast<std::size_t>(S.width), static_cast<std::size_t>(S.vocabulary), false, T>,
      !S.tied>
      lm_head;  // empty where it is the embedding
  DFDX_FIELDS(model, lm_head)

  template <operand I>
  constexpr auto operator()(I const& tokens) const {
    return head(hidden(tokens));
  }
  /// What goes into the head, normalized: [B..., T, width].
  template <operand I>
  constexpr auto hidden(I const& tokens) const {
    auto const h = model.embed_tokens(tokens);
    using H = std::remove_const_t<decltype(h)>;
    constexpr index_t n = I::static_shape[I::static_rank - 1];
    static_assert(n >= 0 && n <= S.context, "llama: more tokens than the model has positions");
    auto const angles = detail::llama_angles<S, T>(detail::places_of<n>(tokens));
    auto const see = [&](auto const& q, auto const& k, auto const& v) {
      return detail::seen<S.window>(rotate(q, angles), rotate(k, angles), v);
    };
    return normalized(scan([&](H const& x, LlamaBlock<S, T> const& block) { return block(S, x, see); }, h,
                           static_cast<Stacked<LlamaBlock<S, T>, layers> const&>(model.layers)));
  }
  template <operand X>
  constexpr auto head(X const& h) const {
    if constexpr (S.tied) return linear(h, model.embed_tokens.weight);
    else return lm_head(h);
  }
  template <operand X>
  constexpr auto normalized(X const& h) const {
    return rms_norm(h, model.norm.weight, S.norm_eps);
  }
  /// An empty cache for a Decoder: where texts are generated or scored, as those of a Llama.
  KvCache cache(index_t capacity, std::optional<index_t> batch = {}, Encoding encoding = DType::f32) const {
    return KvCache::of(S.layers, S.kv_heads, capacity, S.head_size, batch, encoding,
                       model.norm.weight.device());
  }
  static constexpr auto layers = static_cast<std::size_t>(S.layers);
};

template <element T>
struct LlamaModel<LlamaSizes{}, T> {
  LlamaConfig config;
  LlamaBody<> model;
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
    index_t const room = cache != nullptr ? cache->capacity : config.positions();
    if (first + n > room) raise("llama: ", first + n, " positions, there is room for ", room);
    Array h = model.embed_tokens(tokens);
    if (h.dtype() != model.norm.weight.dtype()) h = h.to(model.norm.weight.dtype());
    index_t const length = std::max(first + n, cache != nullptr ? cache->ahead : 0);
    Angles const angles(config.frequencies(length), first, n, h.dtype(), config.rope.amplitude);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      watch(static_cast<index_t>(i), h);
      h = model.layers[i](config, h, [&](Array const& q, Array k, Array v) {
        k = rotate(k, angles);
        if (cache != nullptr) cache->extend(i, k, v);
        return seen(rotate(q, angles), k, v, first, n, config.window_of(i));
      });
    }
    if (cache != nullptr) cache->length += n;
    return rms_norm(h, model.norm.weight, config.norm_eps);
  }
  Array head(Array const& h) const { return lm_head ? (*lm_head)(h) : model.embed_tokens.head(h); }

  /// An empty cache for sequences of up to `capacity` positions, `batch` of them (none for a single sequence).
  KvCache cache(index_t capacity, std::optional<index_t> batch = {}, Encoding encoding = DType::f32) const {
    return KvCache::of(static_cast<index_t>(model.layers.size()), config.kv_heads, capacity, config.head_size,
                       batch, encoding, model.norm.weight.device());
  }

 private:
  static Array seen(Array const& q, Array const& k, Array const& v, index_t first, index_t n,
                    index_t window) {
    if (window == 0 || first + n <= window)
      return scaled_dot_product_attention(q, k, v, {.causal = true, .offset = first});
    Array const i = reshape(arange(first, first + n), {n, 1}), j = arange(first + n);
    Array const mask = logical_and(j <= i, j > i - window);
    return scaled_dot_product_attention(q, k, v, mask);
  }
};

/// Llama - the model whose sizes the running program knows.
using Llama = LlamaModel<>;

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

/// visit_stored - calls f(matrix) with each of a model's matrices that are as they are stored.
template <class F>
void visit_stored(Llama const& m, F const& f) {
  if (m.model.embed_tokens.stored) f(*m.model.embed_tokens.stored);
  visit_projections(m, [&](std::string const&, Projection const& p) {
    if (p.stored) f(*p.stored);
  });
}

/// decoder_model - the model as a Decoder (models/decoder.hpp) runs it, whoever knows its sizes.
///
/// Errors    those of DecoderModel
template <LlamaSizes S, element T>
DecoderModel decoder_model(LlamaModel<S, T> const& m) {
  auto const& c = m.config;
  DecoderModel r;
  r.device = m.model.norm.weight.device();
  r.vocabulary = c.vocabulary, r.width = c.width, r.hidden = c.hidden;
  r.heads = c.heads, r.kv_heads = c.kv_heads, r.head_size = c.head_size;
  r.norm_eps = c.norm_eps;
  r.rope = c.rope;
  // A layer of nn has its numbers; others have some of them, or have them as they are stored.
  auto const rows = [&](auto const& p) {
    if constexpr (S.known()) return r.matrix(p.weight);
    else return p.stored ? r.matrix(p.stored) : r.matrix(*p.weight);
  };
  auto const bound = [&](auto const& p) {
    detail::BoundMatrix b{.rows = rows(p)};
    if constexpr (!S.known()) {
      if (p.bias) b.bias = r.floats(*p.bias);
      r.add_factors(b, p);
    } else if constexpr (requires { p.bias; }) {
      b.bias = r.floats(p.bias);
    }
    return b;
  };
  for (std::size_t i = 0; i < m.model.layers.size(); ++i) {
    auto const& block = m.model.layers[i];
    auto const& a = block.self_attn;
    detail::BoundLayer l;
    l.q = bound(a.q_proj), l.k = bound(a.k_proj), l.v = bound(a.v_proj), l.o = bound(a.o_proj);
    l.gate = bound(block.mlp.gate_proj), l.up = bound(block.mlp.up_proj), l.down = bound(block.mlp.down_proj);
    l.input.weight = r.floats(block.input_layernorm.weight);
    l.middle.weight = r.floats(block.post_attention_layernorm.weight);
    if constexpr (!S.known()) {
      if (a.q_norm) l.q_norm = r.floats(a.q_norm->weight);
      if (a.k_norm) l.k_norm = r.floats(a.k_norm->weight);
      l.window = c.window_of(i);
    } else {
      if constexpr (S.normalized_heads)
        l.q_norm = r.floats(a.q_norm.weight), l.k_norm = r.floats(a.k_norm.weight);
      l.window = S.window;
    }
    l.scale = 1 / std::sqrt(static_cast<float>(c.head_size));
    r.layers.push_back(l);
  }
  r.table = rows(m.model.embed_tokens);
  r.norm.weight = r.floats(m.model.norm.weight);
  r.head.rows = r.table;
  if constexpr (!S.known()) {
    r.divisors = c.rope_divisors;
    if (m.lm_head) r.head = bound(*m.lm_head);
  } else if constexpr (!S.tied) {
    r.head = bound(m.lm_head);
  }
  return r;
}

}  // namespace dfdx::models
