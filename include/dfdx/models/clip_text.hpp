// SPDX-License-Identifier: BSL-1.0
// CLIP's encoder of texts from published files, in memory and on the tape: by itself, in a whole CLIP model, or beside
// a model that draws. The names of its tensors are those of Hugging Face's files.
#pragma once

#include <algorithm>
#include <concepts>

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/llama.hpp>  // Projection

namespace dfdx::models {

/// ClipTextConfig - the sizes and options of a text encoder.
struct ClipTextConfig {
  index_t vocabulary = 49408, width = 512, hidden = 2048, layers = 12, heads = 8, context = 77;
  double norm_eps = 1e-5;
  Activation activation = Activation::quick_gelu;
  /// The token that ends a text. 2 is what older configs say whatever it is: then it is the highest of a text.
  std::int32_t eos = 49407;

  index_t head_size() const { return width / heads; }

  /// Errors    "clip: layers: 0", "clip: a width of 64 is not divided by 5 heads"
  void check() const { detail::check_sizes("clip", *this); }
};

struct ClipEmbeddings {
  Table token_embedding, position_embedding;
  DFDX_FIELDS(token_embedding, position_embedding)
};

struct ClipAttention {
  Projection q_proj, k_proj, v_proj, out_proj;
  DFDX_FIELDS(q_proj, k_proj, v_proj, out_proj)
};

struct ClipMlp {
  Projection fc1, fc2;
  DFDX_FIELDS(fc1, fc2)
};

struct ClipLayer {
  LayerNorm layer_norm1;
  ClipAttention self_attn;
  LayerNorm layer_norm2;
  ClipMlp mlp;
  DFDX_FIELDS(layer_norm1, self_attn, layer_norm2, mlp)
};

struct ClipEncoder {
  std::vector<ClipLayer> layers;
  DFDX_FIELDS(layers)
};

struct ClipTextBody {
  ClipEmbeddings embeddings;
  ClipEncoder encoder;
  LayerNorm final_layer_norm;
  DFDX_FIELDS(embeddings, encoder, final_layer_norm)
};

/// ClipText - a transformer whose positions see those before them. model(tokens) gives a vector for each position,
/// pooled(tokens, of) the one that stands for the text, which is at its end.
///
/// Math      h = E[token] + P[position], then for each layer h += attention(norm(h)), h += W_2 gelu(W_1 norm(h)); at
///           last norm(h). pooled: position argmax(token = eos), 0 where there is none; embed: W pooled
/// Shapes    tokens: [B..., T] -> [B..., T, width]; pooled: [B..., width]; embed: [B..., shared width]
/// Dtypes    tokens: integer; the result has the dtype of the weights
/// Errors    "clip: 78 positions, there is room for 77"; "clip: this model has no text_projection"; those of embedding
/// Source    Radford et al., "Learning transferable visual models from natural language supervision", 2021
struct ClipText {
  ClipTextConfig config;
  ClipTextBody text_model;
  std::optional<Projection> text_projection;  // to the space shared with pictures, where the files have it
  DFDX_FIELDS(text_model, text_projection)

  Array operator()(Array const& tokens) const {
    return norm(text_model.final_layer_norm, states(tokens, [](index_t, Array const&) {}));
  }
  /// What the last layer makes, not normalized. `watch(i, h)` is called with what layer i reads: the state of the last
  /// but one, which some models that draw want, is what the last one reads.
  template <class Watch>
  Array states(Array const& tokens, Watch const& watch) const {
    Shape const& s = tokens.shape();
    if (s.rank < 1) raise("clip: tokens of shape [..., T] required, got ", s);
    index_t const n = s[s.rank - 1];
    if (n > config.context) raise("clip: ", n, " positions, there is room for ", config.context);
    Array h = embedding(tokens, text_model.embeddings.token_embedding.weight) +
              slice(text_model.embeddings.position_embedding.weight, 0, 0, n);
    index_t i = 0;
    for (ClipLayer const& layer : text_model.encoder.layers) {
      watch(i++, h);
      h = h + attend(layer.self_attn, norm(layer.layer_norm1, h));
      h = h + layer.mlp.fc2(activate(config.activation, layer.mlp.fc1(norm(layer.layer_norm2, h))));
    }
    return h;
  }
  Array norm(LayerNorm const& n, Array const& x) const {
    return layer_norm(x, n.weight, n.bias, config.norm_eps);
  }

  /// The rows of `of`, which is model(tokens), where texts end.
  Array pooled(Array const& tokens, Array const& of) const {
    Shape const& s = tokens.shape();
    index_t const n = s[s.rank - 1];
    if (n == 0) raise("clip: a text of no tokens");
    Array const ids = tokens.to(DType::i32).contiguous();
    Shape batch = s;
    --batch.rank;
    Array rows(Meta{DType::i64, batch});
    for (index_t b = 0; b < batch.numel(); ++b) {
      std::int32_t const* const text = ids.data<std::int32_t>() + b * n;
      auto const* end =
          config.eos == 2 ? std::max_element(text, text + n) : std::find(text, text + n, config.eos);
      if (end == text + n) end = text;
      rows.data<std::int64_t>()[b] = b * n + (end - text);
    }
    return embedding(rows, reshape(of, {-1, config.width}));
  }
  Array embed(Array const& tokens) const {
    if (!text_projection) raise("clip: this model has no text_projection");
    return (*text_projection)(pooled(tokens, (*this)(tokens)));
  }

 private:
  Array attend(ClipAttention const& a, Array const& x) const {
    auto const heads = [&](Projection const& p) {
      return split_heads(p(x), config.heads, config.head_size());
    };
    return a.out_proj(join_heads(
        scaled_dot_product_attention(heads(a.q_proj), heads(a.k_proj), heads(a.v_proj), {.causal = true})));
  }
};

/// visit_projections - calls f("text_model.encoder.layers.0.self_attn.q_proj", p) with each of a model's projections.
template <class Model, class F>
  requires std::same_as<std::remove_const_t<Model>, ClipText>
void visit_projections(Model& m, F const& f) {
  std::size_t i = 0;
  for (auto& l : m.text_model.encoder.layers) {
    std::string const in = "text_model.encoder.layers." + std::to_string(i++) + ".";
    f(in + "self_attn.q_proj", l.self_attn.q_proj);
    f(in + "self_attn.k_proj", l.self_attn.k_proj);
    f(in + "self_attn.v_proj", l.self_attn.v_proj);
    f(in + "self_attn.out_proj", l.self_attn.out_proj);
    f(in + "mlp.fc1", l.mlp.fc1);
    f(in + "mlp.fc2", l.mlp.fc2);
  }
}

namespace detail {

inline ClipText outline_of(ClipTextConfig const& c) {
  auto const projection = [](index_t out, index_t in) {
    return Projection{outline(make_shape(out, in)), outline(make_shape(out))};
  };
  ClipText m;
  m.config = c;
  m.text_model.embeddings.token_embedding.weight = outline(make_shape(c.vocabulary, c.width));
  m.text_model.embeddings.position_embedding.weight = outline(make_shape(c.context, c.width));
  for (index_t i = 0; i < c.layers; ++i) {
    ClipLayer l{outline_of_norm(c.width), {}, outline_of_norm(c.width), {}};
    for (Projection* p :
         {&l.self_attn.q_proj, &l.self_attn.k_proj, &l.self_attn.v_proj, &l.self_attn.out_proj})
      *p = projection(c.width, c.width);
    l.mlp.fc1 = projection(c.hidden, c.width);
    l.mlp.fc2 = projection(c.width, c.hidden);
    m.text_model.encoder.layers.push_back(l);
  }
  m.text_model.final_layer_norm = outline_of_norm(c.width);
  return m;
}

}  // namespace detail

/// clip_text_config - what a folder's config.json says of the text encoder, which may be a part of a whole model: `w`
/// from open_weights. Sizes that it leaves out are those of CLIP's first models.
///
/// Errors    "clip: m: models of type vit are not supported"; those of ClipTextConfig::check
inline ClipTextConfig clip_text_config(Weights const& w) {
  Metadata const& m = w.metadata;
  auto const refuse = [&](std::string const& why) { detail::refuse_model("clip", w, why); };
  if (m.find("config.model_type") == nullptr)
    refuse("it does not say what model this is: a folder with a config.json is needed");
  std::string const type = m.text("config.model_type");
  if (type != "clip" && type != "clip_text_model")
    refuse("models of type " + dfdx::detail::shown_name(type) + " are not supported");
  std::string const in = type == "clip" ? "config.text_config." : "config.";
  ClipTextConfig c;
  c.vocabulary = m.integer(in + "vocab_size", c.vocabulary);
  c.width = m.integer(in + "hidden_size", c.width);
  c.hidden = m.integer(in + "intermediate_size", c.hidden);
  c.layers = m.integer(in + "num_hidden_layers", c.layers);
  c.heads = m.integer(in + "num_attention_heads", c.heads);
  c.context = m.integer(in + "max_position_embeddings", c.context);
  c.norm_eps = m.number(in + "layer_norm_eps", c.norm_eps);
  c.activation = detail::activation_in("clip", w, in + "hidden_act", "quick_gelu");
  c.eos = detail::token_of(m, in + "eos_token_id", m.integer(in + "eos_token_id", c.eos));
  c.check();
  return c;
}

/// load_clip_text - a text encoder from weights, its numbers in that dtype; of a whole CLIP model the rest is left
/// alone. The names in the files may lack their "text_model.". All that is missing, of another shape or too much is
/// told at once, and no model is made.
///
/// Errors    "weights: m does not fit the model: text_model.final_layer_norm.bias is missing; ..."; those of
///           clip_text_config
inline ClipText load_clip_text(Weights const& files, DType dtype = DType::f32) {
  ClipTextConfig const config = clip_text_config(files);
  detail::check_layers("clip", files, config.layers);
  ClipText m = detail::outline_of(config);
  Weights const w = files.renamed([](Weight const& x) {
    bool const bare = x.name.starts_with("embeddings.") || x.name.starts_with("encoder.") ||
                      x.name.starts_with("final_layer_norm.");
    return bare ? "text_model." + x.name : x.name;
  });
  if (Weight const* const p = w.find("text_projection.weight"); p != nullptr && p->shape.size() == 2)
    m.text_projection = Projection{detail::outline(make_shape(p->shape[0], m.config.width)), {}};
  std::vector<WantedWeight> needless;
  for (Weight const& x : w)
    if (x.name == "text_model.embeddings.position_ids" || x.name.starts_with("vision_model.") ||
        x.name == "visual_projection.weight" || x.name == "logit_scale")
      needless.push_back({x.name, x.shape, true});
  detail::fill(m, w, dtype, needless);
  return m;
}
inline ClipText load_clip_text(std::filesystem::path const& path, DType dtype = DType::f32) {
  return load_clip_text(open_weights(path), dtype);
}

}  // namespace dfdx::models
