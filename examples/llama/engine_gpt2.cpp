// SPDX-License-Identifier: BSL-1.0
#include "engine_of.hpp"

#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/lora.hpp>

namespace llama {

using namespace dfdx;

std::unique_ptr<Engine> load_gpt2_engine(Options const& o, Weights const& files) {
  DType dtype = DType::f32;
  if (o.dtype == "bf16") dtype = DType::bf16;
  else if (o.dtype == "f16") dtype = DType::f16;
  else if (o.dtype != "f32") throw error("--dtype " + o.dtype + ": GPT-2 is computed in f32, bf16 or f16");
  models::Gpt2 model = models::load_gpt2(files, dtype);
  if (!o.lora.empty()) models::load_lora(o.lora, model);
  return std::make_unique<EngineOf<models::Gpt2>>(o, "gpt2", std::move(model));
}

}  // namespace llama
