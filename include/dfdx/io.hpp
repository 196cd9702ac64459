// SPDX-License-Identifier: BSL-1.0
// Files: what <dfdx/dfdx.hpp> leaves out because it needs a JSON library (nlohmann-json). CMake target: dfdx::io.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/io/checkpoint.hpp>
#include <dfdx/io/safetensors.hpp>
