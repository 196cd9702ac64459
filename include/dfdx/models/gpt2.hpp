// SPDX-License-Identifier: BSL-1.0
// GPT-2 and its kin from published files, folders of Hugging Face and GGUF, in memory and on the tape. The names of its
// tensors are those of Hugging Face.
#pragma once

#include <cmath>
#include <concepts>

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/cache.hpp>
#include <dfdx/models/config.hpp>
#include <dfdx/models/decoder_model.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/linear.hpp>

namespace dfdx::models {

/// Gpt2Config - the sizes and options of a model of the family.
struct Gpt2Config {
  index_t vocabulary = 0, width = 0, hidden = 0, layers = 0, heads = 0;
  /// Positions that the model has learnt; there are no others.
  index_t context = 0;
  double norm_eps = 1e-5;
  Activation activation = Activation::gelu_tanh;
  /// Whether the last layer is the embedding; whether scores are divided by the root of a head's size, and besides by
  /// the number of the layer.
  bool tied = true, scaled = true, scaled_by_layer = false;
  std::int32_t bos = -1;
  std::vector<std::int32_t> eos;

  index_t head_size() const { return width / heads; }
  index_t positions() const { return context; }

  /// Errors    "gpt2: layers: 0", "gpt2: a width of 64 is not divided by 5 heads"
  void check() const { detail::check_sizes("gpt2", *this); }
};

/// Conv1D - an affine map of the last axis whose matrix lies the other way, as GPT-2's files have it. With factors that
/// are trained in its place where models/lora.hpp has put them.
///
/// Math      y = x W + b, + scale (x A') B' unless that is in W already
/// Shapes    x: [..., In], weight: [In, Out], bias: [Out], A: [R, In], B: [Out, R] -> [..., Out]
struct Conv1D {
  Array weight, bias;
  std::optional<Table> lora_A{}, lora_B{};
  DFDX_FIELDS(weight, bias, lora_A, lora_B)
  double lora_scale = 1;
  bool lora_merged = false;
  static constexpr bool inputs_first = true;

  /// [Out, In]
  Shape shape() const { return make_shape(weight.shape()[1], weight.shape()[0]); }
  /// Whether factors count besides the matrix.
  bool has_factors() const { return lora_A && !lora_merged; }
  /// Adds [Out, In] to the matrix, in memory of its own: other models may share the old.
  void add_change(Array const& change) {
    bool const learns = weight.requires_grad();
    weight = (weight + swapaxes(change, 0, 1)).to(weight.dtype());
    weight.requires_grad(learns);
  }

  Array operator()(Array const& x) const {
    Array const y = matmul(x, weight) + bias;
    return has_factors() ? y + linear(linear(x, lora_A->weight), lora_B->weight) * lora_scale : y;
  }
};

struct Gpt2Attention {
  Conv1D c_attn, c_proj;
  DFDX_FIELDS(c_attn, c_proj)
};

struct Gpt2Mlp {
  Conv1D c_fc, c_proj;
  DFDX_FIELDS(c_fc, c_proj)
};

struct Gpt2Block {
  LayerNorm ln_1;
  Gpt2Attention attn;
  LayerNorm ln_2;
  Gpt2Mlp mlp;
  DFDX_FIELDS(ln_1, attn, ln_2, mlp)
};

struct Gpt2Body {
  Table wte, wpe;
  std::vector<Gpt2Block> h;
  LayerNorm ln_f;
  DFDX_FIELDS(wte, wpe, h, ln_f)
};

/// Gpt2 - a decoder-only transformer with learnt positions. model(tokens) gives a number for each possible next token,
/// at each position; model(tokens, cache) does so for tokens that come after those in the cache, and adds them to it.
///
/// Math      h = E[token] + P[position], then for each layer h += attention(norm(h)), h += W_2 gelu(W_1 norm(h))
/// Shapes    tokens: [B..., T] -> [B..., T, vocabulary]
/// Dtypes    tokens: integer; the result has the dtype of the weights
/// Errors    "gpt2: 1025 positions, there is room for 1024"; those of embedding for tokens out of range
/// Source    Radford et al., "Language models are unsupervised multitask learners", 2019
struct Gpt2 {
  Gpt2Config config;
  Gpt2Body transformer;
  std::optional<Table> lm_head;  // empty where it is the embedding
  DFDX_FIELDS(transformer, lm_head)

  Array operator()(Array const& tokens) const { return head(hidden(tokens, nullptr)); }
  Array operator()(Array const& tokens, KvCache& cache) const { return head(hidden(tokens, &cache)); }

  /// What goes into the head, normalized: [B..., T, width]. `watch(i, h)` is called with what layer i reads.
  template <class Watch = void (*)(index_t, Array const&)>
  Array hidden(Array const& tokens, KvCache* cache, Watch const& watch = [](index_t, Array const&) {}) const {
    Shape const& s = tokens.shape();
    if (s.rank < 1) raise("gpt2: tokens of shape [..., T] required, got ", s);
    index_t const first = cache != nullptr ? cache->length : 0, n = s[s.rank - 1];
    index_t const room = cache != nullptr ? std::min(cache->capacity, config.context) : config.context;
    if (first + n > room) raise("gpt2: ", first + n, " positions, there is room for ", room);
    Array h = embedding(tokens, transformer.wte.weight) + slice(transformer.wpe.weight, 0, first, first + n);
    for (std::size_t i = 0; i < transformer.h.size(); ++i) {
      Gpt2Block const& block = transformer.h[i];
      watch(static_cast<index_t>(i), h);
      h = h + attend(block.attn, norm(block.ln_1, h), first, cache, i);
      h = h + block.mlp.c_proj(activate(config.activation, block.mlp.c_fc(norm(block.ln_2, h))));
    }
    if (cache != nullptr) cache->length += n;
    return norm(transformer.ln_f, h);
  }
  Array head(Array const& h) const { return linear(h, lm_head ? lm_head->weight : transformer.wte.weight); }

  /// An empty cache for sequences of up to `capacity` positions, `batch` of them (none for a single sequence).
  KvCache cache(index_t capacity, std::optional<index_t> batch = {}, Encoding encoding = DType::f32) const {
    return KvCache::of(config.layers, config.heads, std::min(capacity, config.context), config.head_size(),
                       batch, encoding, transformer.ln_f.weight.device());
  }

 private:
  Array norm(LayerNorm const& n, Array const& x) const {
    return layer_norm(x, n.weight, n.bias, config.norm_eps);
  }

  Array attend(Gpt2Attention const& a, Array const& x, index_t first, KvCache* cache,
               std::size_t layer) const {
    Array const all = a.c_attn(x);
    auto const heads = [&](index_t which) {
      return split_heads(slice(all, -1, which * config.width, (which + 1) * config.width), config.heads,
                         config.head_size());
    };
    Array const q = heads(0);
    Array k = heads(1), v = heads(2);
    if (cache != nullptr) cache->extend(layer, k, v);
    double scale = config.scaled ? 1 / std::sqrt(static_cast<double>(config.head_size())) : 1;
    if (config.scaled_by_layer) scale /= static_cast<double>(layer + 1);
    return a.c_proj(
        join_heads(scaled_dot_product_attention(q, k, v, {.causal = true, .scale = scale, .offset = first})));
  }
};

/// visit_projections - calls f("transformer.h.0.attn.c_attn", p) with each of a model's projections.
template <class Model, class F>
  requires std::same_as<std::remove_const_t<Model>, Gpt2>
void visit_projections(Model& m, F const& f) {
  std::size_t i = 0;
  for (auto& b : m.transformer.h) {
    std::string const in = "transformer.h." + std::to_string(i++) + ".";
    f(in + "attn.c_attn", b.attn.c_attn);
    f(in + "attn.c_proj", b.attn.c_proj);
    f(in + "mlp.c_fc", b.mlp.c_fc);
    f(in + "mlp.c_proj", b.mlp.c_proj);
  }
}

/// decoder_model - the model as a Decoder (models/decoder.hpp) runs it, with the transposed of its matrices in memory
/// of their own.
///
/// Errors    those of DecoderModel
template <class Model>
  requires std::same_as<Model, Gpt2>
DecoderModel decoder_model(Model const& m) {
  Gpt2Config const& c = m.config;
  DecoderModel r;
  r.family = "gpt2";
  r.device = m.transformer.ln_f.weight.device();
  r.vocabulary = c.vocabulary, r.width = c.width, r.hidden = c.hidden;
  r.heads = r.kv_heads = c.heads, r.head_size = c.head_size();
  r.norm_eps = c.norm_eps;
  r.activation = c.activation, r.gated = false;
  auto const bound = [&](Conv1D const& p) {
    detail::BoundMatrix b{.rows = r.turned(p.weight), .bias = r.floats(p.bias)};
    r.add_factors(b, p);
    return b;
  };
  auto const norm = [&](LayerNorm const& n) {
    return detail::BoundNorm{r.floats(n.weight), r.floats(n.bias)};
  };
  for (Gpt2Block const& block : m.transformer.h) {
    detail::BoundLayer l;
    detail::BoundMatrix const all = bound(block.attn.c_attn);
    auto const third = [&](index_t i) {
      detail::BoundMatrix b = all;
      b.rows.rows = c.width, b.rows.bytes = all.rows.row(i * c.width), b.bias = all.bias + i * c.width;
      if (all.has_factors()) b.outer.rows = c.width, b.outer.bytes = all.outer.row(i * c.width);
      return b;
    };
    l.q = third(0), l.k = third(1), l.v = third(2), l.o = bound(block.attn.c_proj);
    l.gate = bound(block.mlp.c_fc), l.down = bound(block.mlp.c_proj);
    l.input = norm(block.ln_1), l.middle = norm(block.ln_2);
    if (c.scaled) l.scale /= std::sqrt(static_cast<float>(l.q.rows.rows / c.heads));
    if (c.scaled_by_layer) l.scale /= static_cast<float>(r.layers.size() + 1);
    r.layers.push_back(l);
  }
  r.table = r.matrix(m.transformer.wte.weight), r.learnt = r.matrix(m.transformer.wpe.weight);
  r.norm = norm(m.transformer.ln_f);
  r.head.rows = m.lm_head ? r.matrix(m.lm_head->weight) : r.table;
  return r;
}

namespace detail {

inline Gpt2 outline_of(Gpt2Config const& c) {
  auto const conv = [](index_t in, index_t out) {
    return Conv1D{.weight = outline(make_shape(in, out)), .bias = outline(make_shape(out))};
  };
  Gpt2 m;
  m.config = c;
  m.transformer.wte.weight = outline(make_shape(c.vocabulary, c.width));
  m.transformer.wpe.weight = outline(make_shape(c.context, c.width));
  for (index_t i = 0; i < c.layers; ++i)
    m.transformer.h.push_back({outline_of_norm(c.width),
                               {conv(c.width, 3 * c.width), conv(c.width, c.width)},
                               outline_of_norm(c.width),
                               {conv(c.width, c.hidden), conv(c.hidden, c.width)}});
  m.transformer.ln_f = outline_of_norm(c.width);
  if (!c.tied) m.lm_head = Table{outline(make_shape(c.vocabulary, c.width))};
  return m;
}

}  // namespace detail

namespace detail {

inline Gpt2Config gpt2_config_of_gguf(Weights const& w) {
  Metadata const& m = w.metadata;
  if (std::string const type = m.text("general.architecture"); type != "gpt2")
    refuse_model("gpt2", w, "models of type " + dfdx::detail::shown_name(type) + " are not supported");
  Gpt2Config c;
  Weight const& table = w.at("token_embd.weight");
  c.vocabulary = table.shape.empty() ? 0 : table.shape[0];
  c.width = m.integer("gpt2.embedding_length");
  c.hidden = m.integer("gpt2.feed_forward_length");
  c.layers = m.integer("gpt2.block_count");
  c.heads = m.integer("gpt2.attention.head_count");
  c.context = m.integer("gpt2.context_length");
  c.norm_eps = m.number("gpt2.attention.layer_norm_epsilon");
  c.tied = w.find("output.weight") == nullptr;
  std::vector<std::int32_t> const bos = token_list(m, "tokenizer.ggml.bos_token_id");
  c.bos = bos.empty() ? -1 : bos[0];
  c.eos = token_list(m, "tokenizer.ggml.eos_token_id");
  return c;
}

// The names of GGUF files as those of Hugging Face; others stay.
inline std::string gpt2_name(std::string_view name) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr Pair whole[] = {{"token_embd.weight", "transformer.wte.weight"},
                                   {"position_embd.weight", "transformer.wpe.weight"},
                                   {"output_norm.weight", "transformer.ln_f.weight"},
                                   {"output_norm.bias", "transformer.ln_f.bias"},
                                   {"output.weight", "lm_head.weight"}};
  static constexpr Pair parts[] = {{"attn_norm", "ln_1"},          {"attn_qkv", "attn.c_attn"},
                                   {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"},
                                   {"ffn_up", "mlp.c_fc"},         {"ffn_down", "mlp.c_proj"}};
  for (auto const& [gguf, ours] : whole)
    if (name == gguf) return std::string(ours);
  std::size_t const dot = name.find('.', 4), last = name.rfind('.');
  if (!name.starts_with("blk.") || dot == name.npos || dot >= last) return std::string(name);
  for (auto const& [gguf, ours] : parts)
    if (name.substr(dot + 1, last - dot - 1) == gguf)
      return "transformer.h." + std::string(name.substr(4, dot - 3)) + std::string(ours) +
             std::string(name.substr(last));
  return std::string(name);
}

// Whether a matrix lies the other way in GGUF files, its rows the results.
inline bool is_turned_in_gguf(std::string_view name) {
  return name.ends_with(".c_attn.weight") || name.ends_with(".c_proj.weight") ||
         name.ends_with(".c_fc.weight");
}

}  // namespace detail

/// gpt2_config - what the files of the model say of it, a folder's config.json or the keys of GGUF: `w` from
/// open_weights.
///
/// Errors    "gpt2: m: models of type opt are not supported"; "weights: m: there is no config.n_head"; those of
///           Gpt2Config::check
inline Gpt2Config gpt2_config(Weights const& w) {
  Metadata const& m = w.metadata;
  auto const refuse = [&](std::string const& why) { detail::refuse_model("gpt2", w, why); };
  if (m.find("config.model_type") == nullptr && m.find("general.architecture") != nullptr) {
    Gpt2Config const c = detail::gpt2_config_of_gguf(w);
    c.check();
    return c;
  }
  if (m.find("config.model_type") == nullptr)
    refuse("it does not say what model this is: a folder with a config.json is needed");
  if (std::string const type = m.text("config.model_type"); type != "gpt2")
    refuse("models of type " + dfdx::detail::shown_name(type) + " are not supported");
  if (m.flag("config.add_cross_attention", false)) refuse("attention to another text is not supported");
  Gpt2Config c;
  c.vocabulary = m.integer("config.vocab_size");
  c.width = m.integer("config.n_embd");
  detail::check_size("gpt2", "width", c.width);
  c.hidden = m.integer("config.n_inner", 4 * c.width);
  c.layers = m.integer("config.n_layer");
  c.heads = m.integer("config.n_head");
  c.context = m.integer("config.n_positions", 1024);
  c.norm_eps = m.number("config.layer_norm_epsilon", 1e-5);
  c.activation = detail::activation_in("gpt2", w, "config.activation_function", "gelu_new");
  c.tied = m.flag("config.tie_word_embeddings", true);
  c.scaled = m.flag("config.scale_attn_weights", true);
  c.scaled_by_layer = m.flag("config.scale_attn_by_inverse_layer_idx", false);
  std::vector<std::int32_t> const bos = detail::token_list(m, "config.bos_token_id");
  c.bos = bos.empty() ? -1 : bos[0];
  c.eos = detail::token_list(m, "config.eos_token_id");
  c.check();
  return c;
}

/// load_gpt2 - a model from weights, its numbers in that dtype; the names in the files may lack their "transformer.".
/// All that is missing, of another shape or too much in the files is told at once, and no model is made.
///
/// Errors    "weights: m does not fit the model: transformer.ln_f.bias is missing; ..."; those of gpt2_config
inline Gpt2 load_gpt2(Weights const& files, DType dtype = DType::f32) {
  Gpt2Config const config = gpt2_config(files);
  detail::check_layers("gpt2", files, config.layers);
  Gpt2 m = detail::outline_of(config);
  bool const gguf = files.metadata.find("config.model_type") == nullptr;
  Weights const w = files.renamed([&](Weight const& x) {
    if (gguf) return detail::gpt2_name(x.name);
    bool const whole = x.name.starts_with("transformer.") || x.name.starts_with("lm_head.");
    return whole ? x.name : "transformer." + x.name;
  });
  std::vector<WantedWeight> needless;
  if (m.config.tied) needless.push_back({"lm_head.weight", {m.config.vocabulary, m.config.width}, true});
  for (Weight const& x : w)  // the causal mask, which older files have in each layer
    if (x.name.ends_with(".attn.bias") || x.name.ends_with(".attn.masked_bias"))
      needless.push_back({x.name, x.shape, true});
  auto const turned = [&](std::string const& name) { return gguf && detail::is_turned_in_gguf(name); };
  detail::fill(m, w, dtype, needless, turned);
  return m;
}
inline Gpt2 load_gpt2(std::filesystem::path const& path, DType dtype = DType::f32) {
  return load_gpt2(open_weights(path), dtype);
}

}  // namespace dfdx::models
