// SPDX-License-Identifier: BSL-1.0
// What a Llama or one of its kin is made of, as its files say: Hugging Face's config.json, the keys of GGUF, the header
// of llama2.c.
#pragma once

#include <algorithm>

#include <dfdx/io/llama_names.hpp>
#include <dfdx/models/rope_config.hpp>

namespace dfdx::models {

/// LlamaSizes - the sizes and options of a model of the family that say what is computed. As a template argument of
/// LlamaModel they are known to the compiler; where `layers` is 0, as it is unless said otherwise, the running program
/// knows them.
struct LlamaSizes {
  index_t vocabulary = 0, width = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0;
  /// Positions that the model was made for.
  index_t context = 0;
  double norm_eps = 1e-5;
  RopeFrequencies rope{};
  /// How far back a position sees, itself included; 0 for all of it.
  index_t window = 0;
  /// Whether the last layer is the embedding; whether queries and keys are normalized, head by head.
  bool tied = false, normalized_heads = false;
  bool attention_bias = false, output_bias = false, mlp_bias = false;

  constexpr bool known() const { return layers > 0; }
  constexpr index_t query_rows() const { return heads * head_size; }
  constexpr index_t kv_rows() const { return kv_heads * head_size; }
  /// Positions that can be computed: dynamic frequencies are for texts longer than those of the training.
  constexpr index_t positions() const {
    if (rope.kind != RopeFrequencies::Kind::dynamic) return context;
    return static_cast<index_t>(std::min(static_cast<double>(context) * std::max(rope.factor, 1.0), 0x1p31));
  }
};

/// LlamaConfig - what the files of a model of the family say of it: Llama 1 to 3.2, Mistral, Qwen 2 and 3,
/// Phi-3.
struct LlamaConfig : LlamaSizes {
  std::string architecture = "llama";
  RopeDivisors rope_divisors;
  /// For each layer whether `window` is for it; empty where it is for all.
  std::vector<bool> layers_with_window;
  std::int32_t bos = -1;
  std::vector<std::int32_t> eos;

  std::vector<double> frequencies(index_t length) const {
    return rope.of_head(head_size, length, rope_divisors);
  }
  /// How far back a position sees in a layer, itself included; 0 for all of it.
  index_t window_of(std::size_t layer) const {
    bool const all = layer >= layers_with_window.size();
    return all || layers_with_window[layer] ? window : 0;
  }

  /// Errors    "llama: 30 heads do not share 4 of keys and values", "llama: layers: 0"
  void check() const {
    auto const positive = [](char const* what, index_t n) { detail::check_size("llama", what, n); };
    positive("vocabulary", vocabulary);
    positive("width", width);
    positive("hidden width", hidden);
    positive("layers", layers);
    positive("heads", heads);
    positive("heads of keys and values", kv_heads);
    positive("head size", head_size);
    positive("context", context);
    if (heads % kv_heads != 0)
      raise("llama: ", heads, " heads do not share ", kv_heads, " of keys and values");
    positive("heads together", heads * head_size);
    if (head_size % 2 != 0) raise("llama: a head size of ", head_size, ", which is odd");
    detail::check_eps("llama", norm_eps);
    if (window < 0) raise("llama: a window of ", Position{window});
    if (auto const told = static_cast<index_t>(layers_with_window.size()); told != 0 && told != layers)
      raise("llama: it says of ", told, " layers whether they have a window, and has ", layers);
    rope.check();
    for (auto const* all : {&rope_divisors.within, &rope_divisors.beyond}) {
      if (rope.kind == RopeFrequencies::Kind::longrope && static_cast<index_t>(all->size()) != head_size / 2)
        raise("rope: ", static_cast<index_t>(all->size()), " divisors of frequencies for heads of ",
              head_size);
      for (double d : *all)
        if (!(d > 0 && std::isfinite(d))) raise("rope: a divisor of frequencies that is no positive number");
    }
  }
};

namespace detail {

inline constexpr char const* llama_kinds[] = {"llama", "mistral", "qwen2", "qwen3", "phi3"};

[[noreturn]] inline void refuse_config(Weights const& w, std::string const& why) {
  refuse_model("llama", w, why);
}

// Windows of attention as transformers reads them: a Llama has none whatever is said, a Qwen where it is told to use
// them, and there the layers from max_window_layers on, unless layer_types names them.
inline void set_windows(LlamaConfig& c, Weights const& w) {
  Metadata const& m = w.metadata;
  bool const qwen = c.architecture == "qwen2" || c.architecture == "qwen3";
  if (c.architecture == "llama" || (qwen && !m.flag("config.use_sliding_window", false))) return;
  // A key that is not there means the default of the architecture's code, null none.
  bool const none_said = m.is_null("config.sliding_window");
  c.window = m.integer("config.sliding_window", none_said || c.architecture == "phi3" ? 0 : 4096);
  if (c.window == 0) return;
  if (m.find("config.layer_types") != nullptr) {
    for (std::string const& type : m.list<std::string>("config.layer_types")) {
      bool const slides = type == "sliding_attention";
      if (!slides && type != "full_attention")
        refuse_config(w, "layers of type " + dfdx::detail::shown_name(type) + " are not supported");
      c.layers_with_window.push_back(slides);
    }
  } else if (qwen) {
    std::int64_t const first = m.integer("config.max_window_layers", 28);
    if (c.layers <= 0 || c.layers > index_t{1} << 20) return;  // check() says so
    for (index_t i = 0; i < c.layers; ++i) c.layers_with_window.push_back(i >= first);
  }
  auto const& with = c.layers_with_window;
  bool const all = std::find(with.begin(), with.end(), false) == with.end();
  bool const none = !all && std::find(with.begin(), with.end(), true) == with.end();
  if (none) c.window = 0;
  if (all || none) c.layers_with_window.clear();
}

inline LlamaConfig config_of_hugging_face(Weights const& w) {
  Metadata const& m = w.metadata;
  LlamaConfig c;
  c.architecture = m.find("config.model_type") != nullptr ? m.text("config.model_type") : "llama";
  bool known = false;
  for (char const* a : llama_kinds) known = known || c.architecture == a;
  if (!known)
    refuse_config(w, "models of type " + dfdx::detail::shown_name(c.architecture) + " are not supported");
  if (m.find("config.hidden_act") != nullptr && m.text("config.hidden_act") != "silu")
    refuse_config(w,
                  "an activation other than silu: " + dfdx::detail::shown_name(m.text("config.hidden_act")));
  c.vocabulary = m.integer("config.vocab_size");
  c.width = m.integer("config.hidden_size");
  c.hidden = m.integer("config.intermediate_size");
  c.layers = m.integer("config.num_hidden_layers");
  c.heads = m.integer("config.num_attention_heads");
  c.kv_heads = m.integer("config.num_key_value_heads", c.heads);
  if (c.heads <= 0) refuse_config(w, "a model without heads");
  c.head_size = m.integer("config.head_dim", c.architecture == "qwen3" ? 128 : c.width / c.heads);
  c.context = m.integer("config.max_position_embeddings", 2048);
  c.norm_eps = m.number("config.rms_norm_eps", 1e-6);
  RopeConfig rope = rope_of_hugging_face(w, c.context);
  c.rope = rope.rope, c.rope_divisors = std::move(rope.divisors);
  set_windows(c, w);
  // Files that do not say whether the head is the embedding have a head, or have not.
  c.tied = m.flag("config.tie_word_embeddings", w.find("lm_head.weight") == nullptr);
  c.normalized_heads = c.architecture == "qwen3";
  bool const told = m.flag("config.attention_bias", false);
  c.output_bias = told && (c.architecture == "llama" || c.architecture == "qwen3");
  c.attention_bias = c.output_bias || c.architecture == "qwen2";
  c.mlp_bias = c.architecture == "llama" && m.flag("config.mlp_bias", false);
  std::vector<std::int32_t> const bos = token_list(m, "config.bos_token_id");
  c.bos = bos.empty() ? -1 : bos[0];
  c.eos = token_list(m, "config.eos_token_id");
  return c;
}

// Keys of GGUF; files of llama2.c are read as if they had them.
inline LlamaConfig config_of_gguf(Weights const& w) {
  Metadata const& m = w.metadata;
  LlamaConfig c;
  c.architecture = m.text("general.architecture");
  bool known = false;
  for (char const* a : llama_kinds) known = known || c.architecture == a;
  if (!known)
    refuse_config(w, "models of type " + dfdx::detail::shown_name(c.architecture) + " are not supported");
  std::string const in = c.architecture + ".";
  if (m.integer(in + "expert_count", 0) != 0) refuse_config(w, "models with experts are not supported");
  c.width = m.integer(in + "embedding_length");
  c.hidden = m.integer(in + "feed_forward_length");
  c.layers = m.integer(in + "block_count");
  c.heads = m.integer(in + "attention.head_count");
  c.kv_heads = m.integer(in + "attention.head_count_kv", c.heads);
  if (c.heads <= 0) refuse_config(w, "a model without heads");
  c.head_size =
      m.integer(in + "attention.key_length", m.integer(in + "rope.dimension_count", c.width / c.heads));
  c.context = m.integer(in + "context_length");
  c.norm_eps = m.number(in + "attention.layer_norm_rms_epsilon");
  c.window = m.integer(in + "attention.sliding_window", 0);
  RopeConfig rope = rope_of_gguf(w, in, c.head_size, c.context);
  c.rope = rope.rope, c.rope_divisors = std::move(rope.divisors);
  Weight const& table = w.at("token_embd.weight");
  c.vocabulary = table.shape.empty() ? 0 : table.shape[0];
  c.tied = w.find("output.weight") == nullptr;
  c.normalized_heads = w.find("blk.0.attn_q_norm.weight") != nullptr;
  c.attention_bias = w.find("blk.0.attn_q.bias") != nullptr;
  c.output_bias = w.find("blk.0.attn_output.bias") != nullptr;
  c.mlp_bias = w.find("blk.0.ffn_up.bias") != nullptr;
  std::vector<std::int32_t> const bos = token_list(m, "tokenizer.ggml.bos_token_id");
  c.bos = bos.empty() ? -1 : bos[0];
  c.eos = token_list(m, "tokenizer.ggml.eos_token_id");
  return c;
}

}  // namespace detail

/// llama_config - what the files of a model say of it: `w` from open_weights.
///
/// Errors    "llama: m.gguf: models of type gemma are not supported"; "weights: m.gguf: there is no
///           llama.block_count"; those of LlamaConfig::check
inline LlamaConfig llama_config(Weights const& w) {
  bool const hugging_face = w.metadata.find("config.model_type") || w.metadata.find("config.hidden_size");
  if (!hugging_face && w.metadata.find("general.architecture") == nullptr)
    detail::refuse_config(w, "it does not say what model this is: a folder with a config.json is needed");
  LlamaConfig const c = hugging_face ? detail::config_of_hugging_face(w) : detail::config_of_gguf(w);
  c.check();
  return c;
}

}  // namespace dfdx::models
