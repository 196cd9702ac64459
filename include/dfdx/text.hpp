// SPDX-License-Identifier: BSL-1.0
// Tokenizers: what <dfdx/dfdx.hpp> leaves out because it needs a JSON library (nlohmann-json). It includes nothing of
// the rest of the library but errors and files. CMake target: dfdx::io.
#pragma once

#include <dfdx/text/chat.hpp>
#include <dfdx/text/gguf_vocabulary.hpp>
#include <dfdx/text/load.hpp>
#include <dfdx/text/stop.hpp>
