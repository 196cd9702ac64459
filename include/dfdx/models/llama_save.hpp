// SPDX-License-Identifier: BSL-1.0
// Llama as a folder of Hugging Face.
#pragma once

#include <dfdx/io/safetensors.hpp>
#include <dfdx/models/llama.hpp>
#include <dfdx/models/lora.hpp>

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

inline nlohmann::ordered_json rope_scaling(RopeFrequencies const& r) {
  using enum RopeFrequencies::Kind;
  if (r.kind == plain) return nullptr;
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

}  // namespace detail

/// llama_config_json - what config.json says of a model of the family; llama_config reads it back.
///
/// Errors    "llama: a config.json of llama has no word for norms of heads", and so for other options that the files of
///           another format had
inline nlohmann::ordered_json llama_config_json(LlamaConfig const& c, DType dtype) {
  bool const qwen2 = c.architecture == "qwen2", qwen3 = c.architecture == "qwen3";
  auto const sayable = [&](bool ok, char const* what) {
    if (!ok)
      dfdx::detail::raise_file("llama: a config.json of " + c.architecture + " has no word for " + what);
  };
  sayable(c.architecture != "phi3", "matrices of their own");
  sayable(c.normalized_heads == qwen3, qwen3 ? "heads without norms" : "norms of heads");
  sayable(qwen2 ? c.attention_bias : c.attention_bias == c.output_bias, "biases of a part of attention");
  sayable(c.window == 0 || c.architecture != "llama", "a window of attention");
  sayable(c.rope_divisors.empty(), "rotary frequencies that are divided one by one");
  std::string const name = qwen2                         ? "Qwen2"
                           : qwen3                       ? "Qwen3"
                           : c.architecture == "mistral" ? "Mistral"
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
                              {"rope_scaling", detail::rope_scaling(c.rope)},
                              {"tie_word_embeddings", c.tied},
                              {"attention_bias", c.output_bias},
                              {"mlp_bias", c.mlp_bias},
                              {"bos_token_id", nullptr},
                              {"eos_token_id", detail::tokens_as_json(c.eos)},
                              {"torch_dtype", detail::torch_name(dtype)}};
  if (c.bos >= 0) j["bos_token_id"] = c.bos;
  if (c.window > 0) {
    j["sliding_window"] = c.window;
    if (qwen2 || qwen3) j["use_sliding_window"] = true;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.layers); ++i)
      j["layer_types"].push_back(c.window_of(i) > 0 ? "sliding_attention" : "full_attention");
  } else if (c.architecture != "llama") {
    j["sliding_window"] = nullptr;  // a key that is missing means some window
  }
  return j;
}

/// save_llama - a model as a folder of Hugging Face, config.json and model.safetensors, in its own dtype: what
/// load_llama reads. Factors that are in the matrices (models/lora.hpp) are not written again.
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
  detail::make_folder(folder, "llama");
  save_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  detail::write_json(folder / "config.json", config, "llama");
}

}  // namespace dfdx::models
