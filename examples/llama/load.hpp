// SPDX-License-Identifier: BSL-1.0
// What `llama` reads and writes of models, apart from what runs them: readers of files are large, and need not be fast.
#pragma once

#include "options.hpp"

#include <dfdx/models/any_model.hpp>
#include <dfdx/models/generate.hpp>

namespace llama {

using Context = dfdx::models::Context<dfdx::models::AnyModel>;

/// The model of the command line: one of the Llama family, or GPT-2.
dfdx::models::AnyModel load_model(Options const& o);

Context load_session(std::string const& path, dfdx::models::AnyModel const& model, dfdx::index_t capacity);
void save_session(std::string const& path, dfdx::models::AnyModel const& model, Context const& context);

}  // namespace llama
