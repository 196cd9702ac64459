// SPDX-License-Identifier: BSL-1.0
// Llama from published files.
#pragma once

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/llama.hpp>

namespace dfdx::models {

namespace detail {

inline Llama outline_of(LlamaConfig const& c) {
  Llama m;
  m.config = c;
  auto const projection = [](index_t out, index_t in, bool bias) {
    Projection p{outline(make_shape(out, in)), {}};
    if (bias) p.bias = outline(make_shape(out));
    return p;
  };
  auto const norm = [](index_t n) { return RmsNorm{outline(make_shape(n))}; };
  index_t const q = c.heads * c.head_size, kv = c.kv_heads * c.head_size;
  m.model.embed_tokens.weight = outline(make_shape(c.vocabulary, c.width));
  for (index_t i = 0; i < c.layers; ++i) {
    LlamaBlock b;
    b.input_layernorm = norm(c.width);
    b.post_attention_layernorm = norm(c.width);
    b.self_attn.q_proj = projection(q, c.width, c.attention_bias);
    b.self_attn.k_proj = projection(kv, c.width, c.attention_bias);
    b.self_attn.v_proj = projection(kv, c.width, c.attention_bias);
    b.self_attn.o_proj = projection(c.width, q, c.output_bias);
    if (c.normalized_heads) {
      b.self_attn.q_norm = norm(c.head_size);
      b.self_attn.k_norm = norm(c.head_size);
    }
    b.mlp.gate_proj = projection(c.hidden, c.width, c.mlp_bias);
    b.mlp.up_proj = projection(c.hidden, c.width, c.mlp_bias);
    b.mlp.down_proj = projection(c.width, c.hidden, c.mlp_bias);
    m.model.layers.push_back(b);
  }
  m.model.norm = norm(c.width);
  if (!c.tied) m.lm_head = projection(c.vocabulary, c.width, false);
  return m;
}

// What is in some files and not needed: a head that is the embedding too, frequencies that the config says.
inline void add_needless(std::vector<WantedWeight>& wanted, Weights const& w, LlamaConfig const& c) {
  if (c.tied) wanted.push_back({"output.weight", {c.vocabulary, c.width}, true});
  for (Weight const& x : w)
    if (x.name == "rope_freqs.weight" || x.name.ends_with(".rotary_emb.inv_freq"))
      wanted.push_back({x.name, x.shape, true});
}

// Rows of queries and keys in the order of Hugging Face's files.
inline Array half_split(Array const& rows, index_t head) {
  Array from(Meta{DType::i64, make_shape(rows.shape()[0])});
  for (index_t i = 0; i < rows.shape()[0]; ++i)
    from.data<std::int64_t>()[rope_row(i, head, RopeLayout::interleaved, RopeLayout::half_split)] = i;
  return take(rows, from);
}

}  // namespace detail

/// load_llama - a model from weights, its numbers in that dtype. All that is missing, of another shape or too much in
/// the files is told at once, and no model is made.
///
/// Errors    "weights: m.gguf does not fit the model: output_norm.weight is missing; ..."; those of llama_config
inline Llama load_llama(Weights const& files, DType dtype = DType::f32) {
  LlamaConfig const config = llama_config(files);
  Weights const w = with_gguf_names(files);
  Llama m = detail::outline_of(config);
  std::vector<WantedWeight> wanted;
  visit_named(m, [&](std::string const& name, Array const& leaf) {
    wanted.push_back(detail::wanted_weight(gguf_name(name), leaf));
  });
  detail::add_needless(wanted, w, config);
  w.check(wanted);
  if (files.rope == RopeLayout::unknown)
    detail::refuse_config(files, "it does not say which of its rows rotary embeddings turn together");
  visit_named(m, [&](std::string const& name, Array& leaf) {
    leaf = w.array(gguf_name(name), dtype);
    bool const turned = name.find(".q_proj.") != name.npos || name.find(".k_proj.") != name.npos;
    if (turned && files.rope == RopeLayout::interleaved) leaf = detail::half_split(leaf, config.head_size);
  });
  return m;
}
inline Llama load_llama(std::filesystem::path const& path, DType dtype = DType::f32) {
  return load_llama(open_weights(path), dtype);
}

}  // namespace dfdx::models
