// SPDX-License-Identifier: BSL-1.0
// AnyModel - a model whose family the running program knows, for those that read several: what makes texts is compiled
// once for all of them, and apart from what reads their files.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dfdx/models/cache.hpp>
#include <dfdx/models/decoder_model.hpp>
#include <dfdx/models/fingerprint.hpp>

namespace dfdx::models {

/// AnyModel - what generate, score, Context and sessions need of a model, whatever its family; any_model makes it. It
/// shares the model's arrays, so that it is copied at no cost.
struct AnyModel {
  /// Config - what the model's own config says, as far as families have it in common.
  struct Config {
    /// "llama", "mistral", "gpt2", ...
    std::string architecture;
    index_t vocabulary = 0;
    /// Positions of the training, and those that can be computed.
    index_t context = 0, most = 0;
    RopeFrequencies rope{};
    std::int32_t bos = -1;
    std::vector<std::int32_t> eos{};

    index_t positions() const { return most; }
  };

  Config config;
  DecoderModel decoder;
  /// What tells it from other models (models/session.hpp).
  std::function<std::string()> fingerprint;

  /// An empty cache, as the model's own.
  KvCache cache(index_t capacity, std::optional<index_t> batch = {}, Encoding encoding = DType::f32) const {
    if (!decoder.rotary()) capacity = std::min(capacity, decoder.learnt.rows);
    return KvCache::of(static_cast<index_t>(decoder.layers.size()), decoder.kv_heads, capacity,
                       decoder.head_size, batch, encoding, decoder.device);
  }
};

inline DecoderModel decoder_model(AnyModel const& m) { return m.decoder; }

/// any_model - of a Llama, a LlamaModel of static sizes, a Gpt2. Factors of models/lora.hpp come along; what is put in
/// the place of the model's arrays later is not seen.
///
///   models::AnyModel const model = gpt2 ? models::any_model(models::load_gpt2(file))
///                                       : models::any_model(models::load_llama(file));
///   models::generate(model, prompt, sampler);
///
/// Errors    those of DecoderModel
template <class M>
  requires requires(M const& m) { decoder_model(m); }
AnyModel any_model(M model) {
  auto const whole = std::make_shared<M const>(std::move(model));
  auto const& c = whole->config;
  AnyModel r;
  r.decoder = decoder_model(*whole);
  r.fingerprint = [whole] { return detail::fingerprint(*whole); };
  r.config.architecture = r.decoder.family, r.config.vocabulary = r.decoder.vocabulary;
  r.config.context = c.context, r.config.most = c.positions();
  if constexpr (requires { c.architecture; }) r.config.architecture = c.architecture;
  if constexpr (requires { c.rope; }) r.config.rope = c.rope;
  if constexpr (requires { c.eos; }) r.config.bos = c.bos, r.config.eos = c.eos;
  return r;
}

}  // namespace dfdx::models
