// SPDX-License-Identifier: BSL-1.0
#include "engine.hpp"

#include <dfdx/models.hpp>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace llama {

using namespace dfdx;

namespace {

models::LlamaOptions options_of(std::string const& dtype) {
  if (dtype == "bf16") return {.dtype = DType::bf16};
  if (dtype == "f16") return {.dtype = DType::f16};
  if (dtype == "q8_0") return {.quant = Quant::q8_0};
  if (dtype == "q4_0") return {.quant = Quant::q4_0};
  return {.as_stored = dtype == "stored"};
}

}  // namespace

struct Engine::Parts {
  Options options;
  models::Llama model;
};

Engine::Engine(Options const& o) {
#if defined(_OPENMP)
  if (o.threads > 0) omp_set_num_threads(static_cast<int>(o.threads));
#else
  if (o.threads > 1) throw error("--threads: this program was built without OpenMP");
#endif
  auto parts = std::make_unique<Parts>(
      Parts{o, models::load_llama(std::filesystem::path(o.model), options_of(o.dtype))});
  if (!o.lora.empty()) models::load_lora(o.lora, parts->model);
  parts_ = std::move(parts);
}
Engine::~Engine() = default;

std::string const& Engine::architecture() const { return parts_->model.config.architecture; }
std::int64_t Engine::vocabulary() const { return parts_->model.config.vocabulary; }
std::int32_t Engine::bos() const { return parts_->model.config.bos; }
std::vector<std::int32_t> const& Engine::eos() const { return parts_->model.config.eos; }

std::vector<std::int32_t> Engine::generate(std::vector<std::int32_t> const& prompt,
                                           std::vector<std::int32_t> const& stop,
                                           std::function<bool(std::int32_t)> const& take) const {
  Options const& o = parts_->options;
  models::GenerateOptions how;
  how.tokens = o.tokens;
  // A context of a hundred thousand positions would take more memory than the model.
  how.capacity = o.context > 0 ? o.context : std::min<index_t>(parts_->model.config.context, 8192);
  how.stop = stop;
  return models::generate(parts_->model, prompt, models::Sampler(o.sampling), how, take);
}

Engine::Score Engine::score(std::vector<std::int32_t> const& ids) const {
  models::Score const s = models::score(parts_->model, ids, parts_->options.context);
  return {s.loss, s.perplexity(), s.tokens};
}

}  // namespace llama
