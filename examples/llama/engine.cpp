// SPDX-License-Identifier: BSL-1.0
#include "engine_of.hpp"

#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/lora.hpp>

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

bool is_gpt2(Metadata const& m) {
  for (char const* key : {"config.model_type", "general.architecture"})
    if (m.find(key) != nullptr) return m.text(key) == "gpt2";
  return false;
}

}  // namespace

std::unique_ptr<Engine> load_engine(Options const& o) {
#if defined(_OPENMP)
  if (o.threads > 0) omp_set_num_threads(static_cast<int>(o.threads));
#else
  if (o.threads > 1) throw error("--threads: this program was built without OpenMP");
#endif
  Weights const files = open_weights(o.model);
  if (is_gpt2(files.metadata)) return load_gpt2_engine(o, files);
  models::Llama model = models::load_llama(files, options_of(o.dtype));
  if (!o.lora.empty()) models::load_lora(o.lora, model);
  std::string const architecture = model.config.architecture;
  return std::make_unique<EngineOf<models::Llama>>(o, architecture, std::move(model));
}

}  // namespace llama
