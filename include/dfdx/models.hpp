// SPDX-License-Identifier: BSL-1.0
// Published models of language, and those that draw: what <dfdx/dfdx.hpp> leaves out because it needs a JSON library
// (nlohmann-json) and zlib. CMake target: dfdx::models.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/models/any_model.hpp>
#include <dfdx/models/batch.hpp>
#include <dfdx/models/clip_text.hpp>
#include <dfdx/models/generate.hpp>
#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/llama_save.hpp>
#include <dfdx/models/llama_step.hpp>
#include <dfdx/models/lora.hpp>
#include <dfdx/models/session.hpp>
#include <dfdx/models/stable_diffusion.hpp>
