// SPDX-License-Identifier: BSL-1.0
// Fuzzes the files of PEFT, adapter_config.json in the first line and adapter_model.safetensors behind it: whatever
// they are, they are refused, or the model runs with the factors.
#include "fuzz/fuzz.hpp"
#include "fuzz/small_model.hpp"

#include <dfdx/models/generate.hpp>
#include <dfdx/models/lora.hpp>

#include <algorithm>

namespace {

bool is_lora(fuzz::Bytes bytes) {
  using namespace dfdx;
  static models::Llama const model = fuzz::small_model();
  auto const end = std::find(bytes.begin(), bytes.end(), std::byte{'\n'});
  auto const line = static_cast<std::size_t>(end - bytes.begin());
  try {
    auto const [config, fault] = detail::parse_json(bytes.first(line), 8);
    if (!fault.empty()) return false;
    Metadata m("memory");
    detail::add_config(m, "config", config);
    models::LoraConfig const c = models::lora_config(m);
    models::Llama with = model;
    if (end == bytes.end()) models::add_lora(with, c, Key{1});
    else models::load_lora(c, safetensors_from(bytes.subspan(line + 1)), with);
    models::KvCache cache = with.cache(4);
    models::Decoder(with, 4)(1, cache);
    models::merge_lora(with);
    return true;
  } catch (error const&) {
    return false;
  }
}

}  // namespace

static fuzz::Reader const lora("lora", is_lora);
