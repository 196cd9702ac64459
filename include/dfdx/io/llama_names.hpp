// SPDX-License-Identifier: BSL-1.0
// The names that the tensors of Llama and its kin have in files: those of GGUF are the library's own, others become
// these. And which rotary layout a file has. Not part of <dfdx/io.hpp>.
#pragma once

#include <dfdx/io/weights.hpp>

namespace dfdx {

namespace detail {

struct LlamaName {
  std::string_view gguf, hugging_face, meta;
};
inline constexpr LlamaName llama_names[] = {
    {"token_embd.weight", "model.embed_tokens.weight", "tok_embeddings.weight"},
    {"output_norm.weight", "model.norm.weight", "norm.weight"},
    {"output.weight", "lm_head.weight", "output.weight"},
    {"rope_freqs.weight", "", "rope.freqs"}};
// Behind "blk.N.", "model.layers.N." and "layers.N.", before ".weight" or ".bias".
inline constexpr LlamaName llama_block_names[] = {{"attn_norm", "input_layernorm", "attention_norm"},
                                                  {"attn_q", "self_attn.q_proj", "attention.wq"},
                                                  {"attn_k", "self_attn.k_proj", "attention.wk"},
                                                  {"attn_v", "self_attn.v_proj", "attention.wv"},
                                                  {"attn_output", "self_attn.o_proj", "attention.wo"},
                                                  {"attn_q_norm", "self_attn.q_norm", ""},
                                                  {"attn_k_norm", "self_attn.k_norm", ""},
                                                  {"ffn_norm", "post_attention_layernorm", "ffn_norm"},
                                                  {"ffn_gate", "mlp.gate_proj", "feed_forward.w1"},
                                                  {"ffn_down", "mlp.down_proj", "feed_forward.w2"},
                                                  {"ffn_up", "mlp.up_proj", "feed_forward.w3"},
                                                  // Phi-3: several matrices in one
                                                  {"attn_qkv", "self_attn.qkv_proj", ""},
                                                  {"ffn_up", "mlp.gate_up_proj", ""}};

}  // namespace detail

/// gguf_name - the name in GGUF files of a tensor that Hugging Face or Meta call so: those that are called
/// "model.layers.0.mlp.up_proj.weight" and "layers.0.feed_forward.w3.weight" are "blk.0.ffn_up.weight". A name that is
/// not known stays.
inline std::string gguf_name(std::string_view name) {
  for (detail::LlamaName const& n : detail::llama_names)
    if (!name.empty() && (name == n.hugging_face || name == n.meta)) return std::string(n.gguf);
  bool const hugging_face = name.starts_with("model.layers.");
  if (!hugging_face && !name.starts_with("layers.")) return std::string(name);
  std::string_view const rest = name.substr(hugging_face ? 13 : 7);
  std::size_t const dot = rest.find('.'), last = rest.rfind('.');
  if (dot == 0 || dot >= last || last == rest.npos || rest.find_first_not_of("0123456789") != dot)
    return std::string(name);
  std::string_view const part = rest.substr(dot + 1, last - dot - 1), end = rest.substr(last);
  for (detail::LlamaName const& n : detail::llama_block_names)
    if (!part.empty() && part == (hugging_face ? n.hugging_face : n.meta) &&
        (end == ".weight" || end == ".bias"))
      return "blk." + std::string(rest.substr(0, dot)) + "." + std::string(n.gguf) + std::string(end);
  return std::string(name);
}

/// with_gguf_names - the same weights with these names. The order of rows stays, and `rope` says what it is.
///
/// Errors    "weights: m.safetensors: output.weight: the name is given twice"
inline Weights with_gguf_names(Weights const& w) {
  return w.renamed([](Weight const& x) { return gguf_name(x.name); });
}

/// rope_of_names - the layout by whose names the tensors have: Hugging Face's files are split in halves, Meta's
/// interleaved.
inline RopeLayout rope_of_names(Weights const& all) {
  for (Weight const& w : all) {
    if (w.name.starts_with("model.layers.") &&
        (w.name.ends_with(".self_attn.q_proj.weight") || w.name.ends_with(".self_attn.qkv_proj.weight")))
      return RopeLayout::half_split;
    if (w.name.starts_with("layers.") && w.name.ends_with(".attention.wq.weight"))
      return RopeLayout::interleaved;
  }
  return RopeLayout::unknown;
}

/// rope_of_architecture - the layout of a GGUF file: there rows are stored as the architecture's kernels want them.
///
/// Source    llama.cpp, the rope type of each architecture
inline RopeLayout rope_of_architecture(Metadata const& metadata) {
  auto const* const v = metadata.find("general.architecture");
  auto const* const name = v != nullptr ? v->text() : nullptr;
  if (name == nullptr) return RopeLayout::unknown;
  for (char const* a :
       {"llama", "llama4", "mistral3", "baichuan", "internlm2", "minicpm", "command-r", "granite"})
    if (*name == a) return RopeLayout::interleaved;
  for (char const* a : {"qwen2", "qwen2moe", "qwen3", "qwen3moe", "gemma", "gemma2", "gemma3", "phi2", "phi3",
                        "stablelm", "starcoder2", "falcon", "gptneox", "olmo2"})
    if (*name == a) return RopeLayout::half_split;
  return RopeLayout::unknown;
}

/// rope_row - where row `row` of a query or key matrix in layout `from` is in layout `to`; `head` rows are a head.
constexpr index_t rope_row(index_t row, index_t head, RopeLayout from, RopeLayout to) {
  if (from == to) return row;
  index_t const i = row % head, half = head / 2, first = row - i;
  return first + (to == RopeLayout::half_split ? i % 2 * half + i / 2 : i % half * 2 + i / half);
}

/// with_rope - the same weights with the rows of the query and key matrices, of heads of `head` rows, in that layout.
/// Those are copied, in the encoding that they have; the others stay where they are. Names as in GGUF files.
///
/// Errors    "weights: m.gguf: its rotary layout is not known"; "weights: m.gguf: blk.0.attn_q.weight: its rows are not
///           whole heads of 8", "...: its rows are not apart" (of llama2.c's int8, and of
///           types that are not known)
inline Weights with_rope(Weights const& all, RopeLayout to, index_t head) {
  if (all.rope == to) return all;
  if (all.rope == RopeLayout::unknown || to == RopeLayout::unknown)
    detail::raise_file("weights: " + all.source() + ": its rotary layout is not known");
  Weights r = all.changed([&](Weight& w, Weights& owner) {
    bool const turned = w.name.starts_with("blk.") &&
                        (w.name.ends_with(".attn_q.weight") || w.name.ends_with(".attn_k.weight") ||
                         w.name.ends_with(".attn_q.bias") || w.name.ends_with(".attn_k.bias"));
    if (!turned) return;
    index_t const rows = w.shape.empty() ? 0 : w.shape[0];
    if (head < 2 || head % 2 != 0 || rows % head != 0)
      w.fail("its rows are not whole heads of " + std::to_string(head));
    if ((!w.dtype && !w.quant) || rows == 0) w.fail("its rows are not apart");
    std::size_t const size = w.bytes.size() / static_cast<std::size_t>(rows);
    auto const kept = std::make_shared<std::vector<std::byte>>(w.bytes.size());
    for (index_t i = 0; i < rows; ++i)
      std::memcpy(kept->data() + static_cast<std::size_t>(rope_row(i, head, all.rope, to)) * size,
                  w.bytes.data() + static_cast<std::size_t>(i) * size, size);
    owner.keep(kept);
    w.bytes = *kept;
  });
  r.rope = to;
  return r;
}

/// output_head - the matrix of the last layer: output.weight, or where there is none that of the embedding, which is it
/// too ("tied"). Names as in GGUF files.
///
/// Errors    "weights: m.gguf: there is no token_embd.weight"
inline Weight const& output_head(Weights const& w) {
  Weight const* const own = w.find("output.weight");
  return own != nullptr ? *own : w.at("token_embd.weight");
}

}  // namespace dfdx
