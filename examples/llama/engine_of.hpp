// SPDX-License-Identifier: BSL-1.0
// The engine of one kind of model.
#pragma once

#include "engine.hpp"

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/batch.hpp>
#include <dfdx/models/session.hpp>

namespace llama {

template <class Model>
class EngineOf final : public Engine {
 public:
  EngineOf(Options const& o, std::string architecture, Model model)
      : options_(o), architecture_(std::move(architecture)), model_(std::move(model)) {}

  std::string architecture() const override { return architecture_; }
  std::int64_t vocabulary() const override { return model_.config.vocabulary; }
  std::int32_t bos() const override { return model_.config.bos; }
  std::vector<std::int32_t> const& eos() const override { return model_.config.eos; }
  std::int64_t capacity() const override {
    // A context of a hundred thousand positions would take more memory than the model.
    return options_.context > 0 ? options_.context : std::min<dfdx::index_t>(model_.config.positions(), 8192);
  }

  std::vector<std::int32_t> generate(std::vector<std::int32_t> const& prompt,
                                     std::vector<std::int32_t> const& stop,
                                     std::function<bool(std::int32_t)> const& take) override {
    if (!context_) context_.emplace(first_context());
    reused_ = context_->common(prompt);
    return dfdx::models::generate(*context_, prompt, dfdx::models::Sampler(options_.sampling), how(stop),
                                  take);
  }
  std::vector<std::vector<std::int32_t>> generate_all(
      std::vector<std::vector<std::int32_t>> const& prompts, std::vector<std::int32_t> const& stop,
      std::function<bool(std::size_t, std::int32_t)> const& take) const override {
    return dfdx::models::generate(model_, prompts, {dfdx::models::Sampler(options_.sampling)}, how(stop),
                                  take);
  }
  std::size_t reused() const override { return reused_; }
  Score score(std::vector<std::int32_t> const& ids) const override {
    dfdx::models::Score const s = dfdx::models::score(model_, ids, options_.context);
    return {s.loss, s.perplexity(), s.tokens};
  }
  void save_session() const override {
    if (!options_.session.empty() && context_)
      dfdx::models::save_session(options_.session, model_, *context_);
  }

 private:
  dfdx::Encoding cache() const {
    if (options_.cache == "f16") return dfdx::DType::f16;
    if (options_.cache == "bf16") return dfdx::DType::bf16;
    if (options_.cache == "q8_0") return dfdx::Quant::q8_0;
    return dfdx::DType::f32;
  }
  dfdx::models::GenerateOptions how(std::vector<std::int32_t> const& stop) const {
    dfdx::models::GenerateOptions r;
    r.tokens = options_.tokens, r.keep = options_.keep, r.stop = stop;
    r.capacity = capacity(), r.cache = cache();
    return r;
  }
  dfdx::models::Context<Model> first_context() const {
    if (!options_.session.empty() && std::filesystem::exists(options_.session))
      return dfdx::models::load_session(options_.session, model_, capacity());
    return dfdx::models::Context<Model>(model_, capacity(), cache());
  }

  Options options_;
  std::string architecture_;
  Model model_;
  std::optional<dfdx::models::Context<Model>> context_;
  std::size_t reused_ = 0;
};

}  // namespace llama
