// SPDX-License-Identifier: BSL-1.0
// Fuzzes what config.json says of a model: whatever it is, it is refused, or the model of a few small tensors that
// there are is made of it and can be run.
#include "fuzz/fuzz.hpp"

#include <dfdx/models/clip_text.hpp>
#include <dfdx/models/generate.hpp>
#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/llama_load.hpp>

namespace {

using namespace dfdx;

// The tensors that a model has by its own config, all 0.
template <class Model>
Weights tensors_of(Model const& model) {
  Weights w;
  visit_named(model, [&](std::string const& name, Array const& leaf) { w.add(name, leaf.contiguous()); });
  w.rope = RopeLayout::half_split;
  return w;
}

Weights llama() {
  models::LlamaConfig c;
  c.vocabulary = 5, c.width = 8, c.hidden = 6, c.layers = 2, c.heads = 2, c.kv_heads = 1, c.head_size = 4;
  c.context = 16, c.tied = true;
  return tensors_of(models::detail::outline_of(c));
}
Weights gpt2() {
  models::Gpt2Config c;
  c.vocabulary = 5, c.width = 8, c.hidden = 32, c.layers = 1, c.heads = 2, c.context = 16;
  return tensors_of(models::detail::outline_of(c));
}
Weights clip() {
  models::ClipTextConfig c;
  c.vocabulary = 5, c.width = 8, c.hidden = 6, c.layers = 1, c.heads = 2, c.context = 16;
  return tensors_of(models::detail::outline_of(c));
}

template <class Load>
bool is_taken(Weights weights, nlohmann::json const& config, Load const& load) {
  detail::add_config(weights.metadata, "config", config);
  try {
    auto const m = load(weights);
    Array const tokens = arange(3).to(DType::i32);
    m(tokens);
    if constexpr (models::language_model<decltype(m)>) models::Decoder(m, 4);
    return true;
  } catch (error const&) {
    return false;
  }
}

bool is_config(fuzz::Bytes bytes) {
  static Weights const parts[] = {llama(), gpt2(), clip()};
  auto const* const text = reinterpret_cast<char const*>(bytes.data());
  nlohmann::json const config = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (config.is_discarded()) return false;
  bool const a = is_taken(parts[0], config, [](Weights const& w) { return models::load_llama(w); });
  bool const b = is_taken(parts[1], config, [](Weights const& w) { return models::load_gpt2(w); });
  bool const c = is_taken(parts[2], config, [](Weights const& w) { return models::load_clip_text(w); });
  return a || b || c;
}

}  // namespace

static fuzz::Reader const config("config", is_config);
