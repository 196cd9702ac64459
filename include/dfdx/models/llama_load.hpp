// SPDX-License-Identifier: BSL-1.0
// Llama from published files.
#pragma once

#include <sstream>

#include <dfdx/io/open_weights.hpp>
#include <dfdx/kernels/reference/quantize.hpp>
#include <dfdx/models/llama_device.hpp>

namespace dfdx::models {

/// LlamaOptions - the dtype of a model's numbers, and what becomes of its matrices: with `as_stored` those in blocks,
/// of f32 or of 16 bits stay in the file, which stays open, so that loading takes neither time nor memory; with `quant`
/// all are quantized whose rows are whole blocks. Such matrices cannot be trained.
struct LlamaOptions {
  DType dtype = DType::f32;
  std::optional<Quant> quant{};
  bool as_stored = false;
};

namespace detail {

inline Llama outline_of(LlamaConfig const& c) {
  Llama m;
  m.config = c;
  auto const projection = [](index_t out, index_t in, bool bias) {
    Projection p;
    p.weight = outline(make_shape(out, in));
    if (bias) p.bias = outline(make_shape(out));
    return p;
  };
  auto const norm = [](index_t n) { return RmsNorm{outline(make_shape(n))}; };
  index_t const q = c.heads * c.head_size, kv = c.kv_heads * c.head_size;
  m.model.embed_tokens.weight = outline(make_shape(c.vocabulary, c.width));
  for (index_t i = 0; i < c.layers; ++i) {
    LlamaBlock<> b;
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
    if (x.name.starts_with("rope_f") || x.name.ends_with(".rotary_emb.inv_freq"))
      wanted.push_back({x.name, x.shape, true});
}

// Rows of queries and keys in the order of Hugging Face's files.
inline Array half_split(Array const& rows, index_t head) {
  index_t const n = rows.shape()[0];
  Array r(rows.meta());
  std::size_t const size = n == 0 ? 0 : static_cast<std::size_t>(rows.size() / n) * size_of(rows.dtype());
  for (index_t i = 0; i < n; ++i) {
    index_t const to = rope_row(i, head, RopeLayout::interleaved, RopeLayout::half_split);
    std::memcpy(r.bytes() + static_cast<std::size_t>(to) * size,
                rows.bytes() + static_cast<std::size_t>(i) * size, size);
  }
  return r;
}

inline bool is_turned(std::string_view name) {
  return name.find(".q_proj.") != name.npos || name.find(".k_proj.") != name.npos;
}

// The same weights with each matrix by itself where a file has several in one, as those of Phi-3: rows of queries, keys
// and values; those of the gates and those that they open. What is of another shape stays, for check to tell.
inline Weights apart(Weights const& w, LlamaConfig const& c) {
  if (c.architecture != "phi3") return w;
  return w.changed([&](Weight& x, Weights& to) {
    struct Part {
      char const* name;
      index_t rows;
    };
    std::vector<Part> parts;
    std::size_t const dot = x.name.find('.', 4);
    if (x.name.ends_with(".attn_qkv.weight"))
      parts = {{"attn_q", c.query_rows()}, {"attn_k", c.kv_rows()}, {"attn_v", c.kv_rows()}};
    else if (x.name.ends_with(".ffn_up.weight")) parts = {{"ffn_gate", c.hidden}, {"ffn_up", c.hidden}};
    index_t rows = 0;
    for (Part const& p : parts) rows += p.rows;
    if (parts.empty() || dot == x.name.npos || x.shape.size() != 2 || x.shape[0] != rows ||
        (!x.dtype && !x.quant))
      return;
    Weight const all = x;
    std::size_t const row = all.bytes.size() / static_cast<std::size_t>(rows);
    index_t first = 0;
    for (Part const& p : parts) {
      if (first > 0) to.add(x);
      x.name = all.name.substr(0, dot + 1) + p.name + ".weight";
      x.shape[0] = p.rows;
      x.bytes =
          all.bytes.subspan(static_cast<std::size_t>(first) * row, static_cast<std::size_t>(p.rows) * row);
      first += p.rows;
    }
  });
}

// The weights of a file by the names of GGUF, if they are the leaves of a model.
inline Weights fitting(std::vector<WantedWeight> wanted, Weights const& files, LlamaConfig const& config) {
  Weights w = apart(with_gguf_names(files), config);
  for (WantedWeight& leaf : wanted) leaf.name = gguf_name(leaf.name);
  add_needless(wanted, w, config);
  w.check(wanted);
  if (files.rope == RopeLayout::unknown)
    refuse_config(files, "it does not say which of its rows rotary embeddings turn together");
  return w;
}

// The numbers of a leaf by its name in a model.
inline Array loaded(Weights const& w, std::string const& name, DType dtype, index_t head) {
  Array const x = w.array(gguf_name(name), dtype);
  return w.rope == RopeLayout::interleaved && is_turned(name) ? half_split(x, head) : x;
}

inline std::string text_of(RopeFrequencies const& r) {
  using Kind = RopeFrequencies::Kind;
  std::ostringstream s;
  s << "of base " << r.base;
  if (r.kind == Kind::plain) return s.str();
  s << (r.kind == Kind::linear    ? ", linear"
        : r.kind == Kind::dynamic ? ", dynamic"
        : r.kind == Kind::llama3  ? ", llama3"
        : r.kind == Kind::yarn    ? ", yarn"
                                  : ", longrope")
    << " by " << r.factor;
  if (r.kind == Kind::llama3) s << " (" << r.low_factor << " to " << r.high_factor << ")";
  if (r.kind == Kind::yarn) s << " (" << r.fast << " to " << r.slow << ")";
  if (r.kind != Kind::linear) s << " beyond " << r.original_context;
  if (r.amplitude != 1) s << " times " << r.amplitude;
  return s.str();
}

// Sizes and options that a file and a model differ in, all of them.
inline void check_equal(Weights const& files, LlamaSizes const& there, LlamaSizes const& here) {
  std::ostringstream wrong;
  auto const compare = [&](char const* what, auto in_file, auto in_model) {
    if (!(in_file == in_model))
      wrong << (wrong.tellp() == 0 ? "" : "; ") << what << ": " << in_file << " in the file, " << in_model
            << " in the model";
  };
  compare("vocabulary", there.vocabulary, here.vocabulary);
  compare("width", there.width, here.width);
  compare("hidden width", there.hidden, here.hidden);
  compare("layers", there.layers, here.layers);
  compare("heads", there.heads, here.heads);
  compare("heads of keys and values", there.kv_heads, here.kv_heads);
  compare("head size", there.head_size, here.head_size);
  compare("context", there.context, here.context);
  compare("window", there.window, here.window);
  // Files have f32 for what a model's text says in decimals.
  compare("epsilon of norms", static_cast<float>(there.norm_eps), static_cast<float>(here.norm_eps));
  auto const yes = [](bool b) { return b ? "yes" : "no"; };
  auto const options = [&](char const* what, bool in_file, bool in_model) {
    if (in_file != in_model) compare(what, yes(in_file), yes(in_model));
  };
  options("the head is the embedding", there.tied, here.tied);
  options("norms of heads", there.normalized_heads, here.normalized_heads);
  options("biases of queries, keys and values", there.attention_bias, here.attention_bias);
  options("biases of attention's results", there.output_bias, here.output_bias);
  options("biases of the hidden layers", there.mlp_bias, here.mlp_bias);
  compare("rotary embeddings", text_of(there.rope), text_of(here.rope));
  if (wrong.tellp() != 0)
    dfdx::detail::raise_file("llama: " + files.source() + " does not fit the model: " + wrong.str());
}

// Calls f(name, layer) with every layer that has a matrix.
template <class F>
void visit_matrices(Llama& m, F const& f) {
  f(std::string("model.embed_tokens.weight"), m.model.embed_tokens);
  visit_projections(m, [&](std::string const& name, Projection& p) { f(name + ".weight", p); });
}

// A matrix as the file has it; none if its numbers are of another kind than products take.
inline std::shared_ptr<StoredMatrix const> left_in_file(Weight const& w,
                                                        std::shared_ptr<Weights const> const& files) {
  StoredMatrix r;
  if (w.quant) r.data.encoding = *w.quant;
  else if (w.dtype && MatrixRows::supports(*w.dtype)) r.data.encoding = *w.dtype;
  else return nullptr;
  r.data.rows = w.shape[0], r.data.columns = w.shape[1];
  r.data.bytes = w.bytes.data(), r.owner = files;
  if (!w.quant && reinterpret_cast<std::uintptr_t>(w.bytes.data()) % size_of(*w.dtype) != 0) {
    auto const copy = std::make_shared<std::vector<std::byte>>(w.bytes.begin(), w.bytes.end());
    r.data.bytes = copy->data(), r.owner = copy;
  }
  return std::make_shared<StoredMatrix const>(std::move(r));
}

// A matrix quantized; its rows become heads split in halves if they are `head` interleaved ones each, 0 if they stay.
inline std::shared_ptr<StoredMatrix const> quantized(Weight const& w, Quant q, index_t head) {
  StoredMatrix r;
  r.data.encoding = q;
  r.data.rows = w.shape[0], r.data.columns = w.shape[1];
  if (r.data.columns % block_length(q) != 0) return nullptr;
  std::size_t const row = r.data.row_bytes();
  auto const bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(r.data.rows) * row);
  std::vector<float> numbers(static_cast<std::size_t>(r.data.columns));
  for (index_t i = 0; i < r.data.rows; ++i) {
    w.read(i * r.data.columns, r.data.columns, numbers.data());
    index_t const to = head > 0 ? rope_row(i, head, RopeLayout::interleaved, RopeLayout::half_split) : i;
    if (!quantize_row(q, numbers.data(), r.data.columns, bytes->data() + static_cast<std::size_t>(to) * row))
      w.fail(std::string("a number is too large for ") + name_of(q) + ", or is none");
  }
  r.data.bytes = bytes->data(), r.owner = bytes;
  return std::make_shared<StoredMatrix const>(std::move(r));
}

}  // namespace detail

/// load_llama - a model from weights, its numbers in that dtype. All that is missing, of another shape or too much in
/// the files is told at once, and no model is made.
///
/// Errors    "weights: m.gguf does not fit the model: output_norm.weight is missing; ..."; "llama: m.gguf: 9000 layers,
///           and 291 tensors"; those of llama_config;
///           "weights: m.gguf: output.weight: a number is too large for Q4_0, or is none"
inline Llama load_llama(Weights const& files, LlamaOptions const& o = {}) {
  LlamaConfig const config = llama_config(files);
  detail::check_layers("llama", files, config.layers);
  Llama m = detail::outline_of(config);
  std::vector<WantedWeight> wanted;
  for (auto const& [name, leaf] : detail::named_leaves(std::as_const(m)))
    wanted.push_back(detail::wanted_weight(name, *leaf));
  Weights w = detail::fitting(std::move(wanted), files, config);
  bool const grouped = std::any_of(w.begin(), w.end(), [](Weight const& x) { return x.group > 0; });
  if (o.as_stored && !o.quant && !grouped) w = with_rope(w, RopeLayout::half_split, config.head_size);
  bool const turn = w.rope == RopeLayout::interleaved;
  if (o.quant || o.as_stored) {
    auto const kept = std::make_shared<Weights const>(w);
    detail::visit_matrices(m, [&](std::string const& name, auto& layer) {
      Weight const& x = w.at(gguf_name(name));
      if (o.quant)
        layer.stored = detail::quantized(x, *o.quant, turn && detail::is_turned(name) ? config.head_size : 0);
      else layer.stored = detail::left_in_file(x, kept);
      if (layer.stored) layer.weight.reset();
    });
  }
  for (auto const& [name, leaf] : detail::named_leaves(m))
    *leaf = detail::loaded(w, name, o.dtype, config.head_size);
  return m;
}
inline Llama load_llama(Weights const& files, DType dtype) { return load_llama(files, {.dtype = dtype}); }
inline Llama load_llama(std::filesystem::path const& path, LlamaOptions const& o = {}) {
  return load_llama(open_weights(path), o);
}
inline Llama load_llama(std::filesystem::path const& path, DType dtype) {
  return load_llama(open_weights(path), {.dtype = dtype});
}

/// load_llama<sizes>(file) - a model of sizes that the compiler knows, which must be those of the file.
///
/// Errors    "llama: m.gguf does not fit the model: width: 64 in the file, 288 in the model; heads: 8 in the file, 6 in
///           the model", all mismatches in one; those of load_llama(file)
template <LlamaSizes S, element T = float>
LlamaModel<S, T> load_llama(Weights const& files) {
  LlamaConfig const config = llama_config(files);
  detail::check_equal(files, config, S);
  if (!config.rope_divisors.empty())
    detail::refuse_config(files, "rotary frequencies that are divided one by one are not supported");
  if (!config.layers_with_window.empty())
    detail::refuse_config(files, "a window of attention in some of the layers is not supported");
  LlamaModel<S, T> m;
  std::vector<WantedWeight> wanted;
  visit_state(std::as_const(m), [&](std::string const& name, Array const& leaf) {
    wanted.push_back(detail::wanted_weight(name, leaf));
  });
  Weights const w = detail::fitting(std::move(wanted), files, config);
  visit(m, [](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if (leaf.empty()) leaf = Leaf::uninitialized();
  });
  visit_state(m, [&](std::string const& name, Array const& leaf) {
    copy_elements(detail::loaded(w, name, leaf.dtype(), config.head_size).contiguous().operand(),
                  leaf.operand());
  });
  return m;
}
template <LlamaSizes S, element T = float>
LlamaModel<S, T> load_llama(std::filesystem::path const& path) {
  return load_llama<S, T>(open_weights(path));
}

/// quantized - the model with its matrices quantized, those whose rows are whole blocks; they cannot be trained.
///
/// Errors    "weights: memory: output.weight: a number is too large for Q4_0, or is none"
inline Llama quantized(Llama const& m, Quant q) {
  Weights w;
  visit_named(m, [&](std::string const& name, Array const& leaf) { w.add(gguf_name(name), leaf); });
  Llama r = m;
  detail::visit_matrices(r, [&](std::string const& name, auto& layer) {
    if (layer.stored) return;
    layer.stored = detail::quantized(w.at(gguf_name(name)), q, 0);
    if (layer.stored) layer.weight.reset();
  });
  return r;
}

}  // namespace dfdx::models
