// SPDX-License-Identifier: BSL-1.0
// Llama as a folder of Hugging Face.
#pragma once

#include <dfdx/io/safetensors.hpp>
#include <dfdx/models/llama.hpp>
#include <dfdx/models/lora.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx::models {

namespace detail {

inline char const* torch_name(DType d) {
  return d == DType::f64    ? "float64"
         : d == DType::f16  ? "float16"
         : d == DType::bf16 ? "bfloat16"
                            : "float32";
}

inline nlohmann::ordered_json tokens_as_json(std::vector<std::int32_t> const& tokens) {
  if (tokens.empty()) return nullptr;
  if (tokens.size() == 1) return tokens[0];
  return tokens;
}

// Whether the factor of longrope is that of the context and the original one, which a config.json has then.
inline bool has_two_contexts(LlamaConfig const& c) {
  double const original = c.rope.original_context;
  return original >= 1 && original == std::floor(original) &&
         c.rope.factor == static_cast<double>(c.context) / original;
}

inline nlohmann::ordered_json longrope_scaling(LlamaConfig const& c) {
  RopeFrequencies const& r = c.rope;
  // The first code for Phi-3 wants this key, and no more than three.
  nlohmann::ordered_json j = {{c.architecture == "phi3" ? "type" : "rope_type", "longrope"},
                              {"short_factor", c.rope_divisors.within},
                              {"long_factor", c.rope_divisors.beyond}};
  if (!has_two_contexts(c)) j["factor"] = r.factor;
  if (r.amplitude != RopeFrequencies::longrope_amplitude(r.factor, r.original_context))
    j["attention_factor"] = r.amplitude;
  return j;
}

inline nlohmann::ordered_json rope_scaling(LlamaConfig const& c) {
  using enum RopeFrequencies::Kind;
  RopeFrequencies const& r = c.rope;
  if (r.kind == plain) return nullptr;
  if (r.kind == longrope) return longrope_scaling(c);
  char const* const type = r.kind == linear    ? "linear"
                           : r.kind == dynamic ? "dynamic"
                           : r.kind == yarn    ? "yarn"
                                               : "llama3";
  nlohmann::ordered_json j = {{"rope_type", type}, {"factor", r.factor}};
  // transformers takes these for the kind that has them.
  if (r.kind == llama3) {
    j["original_max_position_embeddings"] = static_cast<std::int64_t>(r.original_context);
    j["low_freq_factor"] = r.low_factor;
    j["high_freq_factor"] = r.high_factor;
  } else if (r.kind == yarn) {
    j["original_max_position_embeddings"] = static_cast<std::int64_t>(r.original_context);
    j["beta_fast"] = r.fast, j["beta_slow"] = r.slow;
    j["truncate"] = r.whole, j["attention_factor"] = r.amplitude;
  }
  return j;
}

// Matrices of a layer one below another, as one of another name.
inline void join_rows(std::map<std::string, Array>& all, std::string const& in,
                      std::initializer_list<char const*> parts, char const* whole) {
  std::vector<Array> rows;
  for (char const* part : parts) rows.push_back(all.extract(in + part + ".weight").mapped());
  all.emplace(in + whole + ".weight", concat(rows, 0));
}

}  // namespace detail

/// llama_config_json - what config.json says of a model of the family; llama_config reads it back.
///
/// Errors    "llama: a config.json of llama has no word for norms of heads", and so for other options that the files of
///           another format had
inline nlohmann::ordered_json llama_config_json(LlamaConfig const& c, DType dtype) {
  bool const qwen2 = c.architecture == "qwen2", qwen3 = c.architecture == "qwen3";
  bool const llama = c.architecture == "llama", phi3 = c.architecture == "phi3";
  bool const longrope = c.rope.kind == RopeFrequencies::Kind::longrope;
  auto const sayable = [&](bool ok, char const* what) {
    if (!ok)
      dfdx::detail::raise_file("llama: a config.json of " + c.architecture + " has no word for " + what);
  };
  sayable(c.normalized_heads == qwen3, qwen3 ? "heads without norms" : "norms of heads");
  sayable(qwen2 ? c.attention_bias : c.attention_bias == c.output_bias, "biases of a part of attention");
  sayable(!c.output_bias || llama || qwen3, "biases of attention's results");
  sayable(!c.mlp_bias || llama, "biases of the hidden layers");
  sayable(c.window == 0 || !llama, "a window of attention");
  sayable(longrope || c.rope_divisors.empty(), "rotary frequencies that are divided one by one");
  sayable(
      !longrope || detail::has_two_contexts(c) || c.rope.original_context == static_cast<double>(c.context),
      "a factor of longrope that is not that of its contexts");
  std::string const name = qwen2                         ? "Qwen2"
                           : qwen3                       ? "Qwen3"
                           : c.architecture == "mistral" ? "Mistral"
                           : phi3                        ? "Phi3"
                                                         : "Llama";
  nlohmann::ordered_json j = {{"architectures", {name + "ForCausalLM"}},
                              {"model_type", c.architecture},
                              {"vocab_size", c.vocabulary},
                              {"hidden_size", c.width},
                              {"intermediate_size", c.hidden},
                              {"num_hidden_layers", c.layers},
                              {"num_attention_heads", c.heads},
                              {"num_key_value_heads", c.kv_heads},
                              {"head_dim", c.head_size},
                              {"max_position_embeddings", c.context},
                              {"rms_norm_eps", c.norm_eps},
                              {"hidden_act", "silu"},
                              {"rope_theta", c.rope.base},
                              {"rope_scaling", detail::rope_scaling(c)},
                              {"tie_word_embeddings", c.tied},
                              {"attention_bias", c.output_bias},
                              {"mlp_bias", c.mlp_bias},
                              {"bos_token_id", nullptr},
                              {"eos_token_id", detail::tokens_as_json(c.eos)},
                              {"torch_dtype", detail::torch_name(dtype)}};
  if (c.bos >= 0) j["bos_token_id"] = c.bos;
  if (longrope && detail::has_two_contexts(c))
    j["original_max_position_embeddings"] = static_cast<std::int64_t>(c.rope.original_context);
  if (c.window > 0) {
    j["sliding_window"] = c.window;
    if (qwen2 || qwen3) j["use_sliding_window"] = true;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.layers); ++i)
      j["layer_types"].push_back(c.window_of(i) > 0 ? "sliding_attention" : "full_attention");
  } else if (!llama) {
    j["sliding_window"] = nullptr;  // a key that is missing means some window
  }
  return j;
}

/// save_llama - a model as a folder of Hugging Face, config.json and model.safetensors, in its own dtype: what
/// load_llama reads; a Phi-3 with the matrices that its files have joined. Factors that are in the matrices
/// (models/lora.hpp) are not written again.
///
/// Errors    "llama: the model has factors that are not in its matrices: merge_lora or drop_lora first"; "llama: the
///           model has matrices as they are stored, which are not written"; those of llama_config_json and
///           save_safetensors
inline void save_llama(std::filesystem::path const& folder, Llama const& model) {
  nlohmann::ordered_json const config = llama_config_json(model.config, model.model.norm.weight.dtype());
  visit_projections(model, [](std::string const&, Projection const& p) {
    if (p.stored) raise("llama: the model has matrices as they are stored, which are not written");
    if (p.has_factors())
      raise("llama: the model has factors that are not in its matrices: merge_lora or drop_lora first");
  });
  std::map<std::string, Array> tensors;
  visit_named(model, [&](std::string const& name, Array const& leaf) {
    if (name.find(".lora_") == name.npos) tensors.emplace(name, leaf.detach());
  });
  if (model.config.architecture == "phi3") {
    for (index_t i = 0; i < model.config.layers; ++i) {
      std::string const in = "model.layers." + std::to_string(i) + ".";
      detail::join_rows(tensors, in, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                        "self_attn.qkv_proj");
      detail::join_rows(tensors, in, {"mlp.gate_proj", "mlp.up_proj"}, "mlp.gate_up_proj");
    }
  }
  detail::make_folder(folder, "llama");
  save_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  detail::write_json(folder / "config.json", config, "llama");
}

}  // namespace dfdx::models
