// SPDX-License-Identifier: BSL-1.0
#include "engine_of.hpp"

#include <dfdx/models/gpt2.hpp>
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

DType gpt2_dtype(std::string const& name) {
  if (name == "bf16") return DType::bf16;
  if (name == "f16") return DType::f16;
  if (name != "f32") throw error("--dtype " + name + ": GPT-2 is computed in f32, bf16 or f16");
  return DType::f32;
}

template <class Model>
std::unique_ptr<Engine> engine_of(Options const& o, std::string const& architecture, Model model) {
  if (!o.lora.empty()) models::load_lora(o.lora, model);
  return std::make_unique<EngineOf<Model>>(o, architecture, std::move(model));
}

}  // namespace

std::unique_ptr<Engine> load_engine(Options const& o) {
#if defined(_OPENMP)
  if (o.threads > 0) omp_set_num_threads(static_cast<int>(o.threads));
#else
  if (o.threads > 1) throw error("--threads: this program was built without OpenMP");
#endif
  Weights const files = open_weights(o.model);
  if (is_gpt2(files.metadata)) return engine_of(o, "gpt2", models::load_gpt2(files, gpt2_dtype(o.dtype)));
  models::Llama model = models::load_llama(files, options_of(o.dtype));
  std::string const architecture = model.config.architecture;
  return engine_of(o, architecture, std::move(model));
}

}  // namespace llama
