// SPDX-License-Identifier: BSL-1.0
#include "load.hpp"

#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/lora.hpp>
#include <dfdx/models/session.hpp>

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
models::AnyModel with_factors(Options const& o, Model model) {
  if (!o.lora.empty()) models::load_lora(o.lora, model);
  if (!o.device.is_cpu()) model = to(o.device, model);
  return models::any_model(std::move(model));
}

}  // namespace

models::AnyModel load_model(Options const& o) {
  Weights const files = open_weights(o.model);
  if (is_gpt2(files.metadata)) return with_factors(o, models::load_gpt2(files, gpt2_dtype(o.dtype)));
  return with_factors(o, models::load_llama(files, options_of(o.dtype)));
}

Context load_session(std::string const& path, models::AnyModel const& model, index_t capacity) {
  return models::load_session(path, model, capacity);
}

void save_session(std::string const& path, models::AnyModel const& model, Context const& context) {
  models::save_session(path, model, context);
}

}  // namespace llama
